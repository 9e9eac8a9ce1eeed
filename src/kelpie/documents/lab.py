"""`kelpie lab up`, `list` and `run` with `--json`."""

from collections.abc import Iterable
from typing import Literal

from kelpie.api.laboratory import Play
from kelpie.documents.declaring import TypedDict, document
from kelpie.lab.cluster import Cluster
from kelpie.lab.scenarios import Scenario


@document
class LabClusterDocument(TypedDict):
    """A cluster of the lab that has started. Printed once; the cluster then runs until it is ended."""

    version: Literal[1]
    persona: str
    """The release that the brokers pass for."""
    brokers: list[int]
    """Their node ids."""
    bootstrap: str
    control: str | None
    """The address of the HTTP control API."""
    pages: str | None
    """The address of its pages. null: it has none."""
    attribution: str | None
    """The plan by which the group of a fetch is known. null: nothing is counted."""


@document
class ScenarioData(TypedDict):
    name: str
    summary: str
    description: str
    personas: list[str]
    """The releases that it can be played with; the first one is the default."""
    needs_zookeeper: bool
    """It needs a real ZooKeeper, and so Java."""


@document
class ScenariosDocument(TypedDict):
    """The scenarios that can be played."""

    version: Literal[1]
    scenarios: list[ScenarioData]


@document
class PlayDocument(TypedDict):
    """What happened in a scenario."""

    version: Literal[1]
    scenario: str
    persona: str
    told: list[str]
    """What happened, step by step."""
    failures: list[str]
    """What should have happened and did not."""


def lab_cluster_document(cluster: Cluster, pages: str = "") -> LabClusterDocument:
    return {
        "version": 1,
        "persona": cluster.persona.name,
        "brokers": list(cluster.node_ids),
        "bootstrap": cluster.bootstrap_servers,
        "control": cluster.control_address,
        "pages": pages or None,
        "attribution": cluster.attribution,
    }


def scenarios_document(scenarios: Iterable[Scenario]) -> ScenariosDocument:
    return {
        "version": 1,
        "scenarios": [
            {
                "name": scenario.name,
                "summary": scenario.summary,
                "description": scenario.description,
                "personas": list(scenario.personas),
                "needs_zookeeper": scenario.needs_zookeeper,
            }
            for scenario in scenarios
        ],
    }


def play_document(play: Play) -> PlayDocument:
    return {
        "version": 1,
        "scenario": play.scenario.name,
        "persona": play.persona,
        "told": list(play.told),
        "failures": list(play.failures),
    }
