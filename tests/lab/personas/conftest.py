"""The fixture `cluster`, and the comparison of what the lab and real Kafka said."""

import re
from collections.abc import Callable, Iterator

import pytest

from kelpie.lab import SyncCluster
from kelpie.real.cluster import RealCluster
from tests.lab.personas import RELEASES
from tests.lab.personas.cluster import OFFSETS_PARTITIONS, Cluster, newest
from tests.lab.personas.transcript import difference

CONFIG = {"group.initial.rebalance.delay.ms": 0, "group.min.session.timeout.ms": 500}
"""As real clusters are set up for tests."""


@pytest.fixture(scope="session")
def labs() -> Iterator[dict[str, SyncCluster]]:
    """Clusters of one broker each, by persona; opened when first asked for."""
    opened: dict[str, SyncCluster] = {}
    yield opened
    for lab in opened.values():
        lab.__exit__(None, None, None)


@pytest.fixture(scope="session")
def warm() -> set[RealCluster | SyncCluster]:
    """The clusters that are known to be ready."""
    return set()


@pytest.fixture(scope="session")
def said() -> dict[str, tuple[str, list[str]]]:
    """What was heard in a test on the first of the two kinds of cluster, until it is compared."""
    return {}


@pytest.fixture
def cluster(
    request: pytest.FixtureRequest,
    real_kafka: Callable[..., RealCluster],
    labs: dict[str, SyncCluster],
    warm: set[RealCluster | SyncCluster],
    said: dict[str, tuple[str, list[str]]],
) -> Iterator[Cluster]:
    """One broker, shared by all tests of a persona. At the end, what it said is held against its twin."""
    persona, kind = request.param
    brokers: RealCluster | SyncCluster
    if kind == "real":
        brokers = real_kafka(RELEASES[persona])
    elif persona in labs:
        brokers = labs[persona]
    else:
        lab = SyncCluster(
            1,
            persona=persona,
            offsets_partitions=OFFSETS_PARTITIONS,
            config=CONFIG,
            log_folder=request.getfixturevalue("tmp_path_factory").mktemp(f"logs-{persona}"),
        )
        brokers = labs[persona] = lab.open()
    test = f"{request.node.parent.name}::{request.node.name}".replace(f"-{kind}", "")
    group = re.sub(r"\W+", "-", request.node.name.replace(f"-{kind}", "")).strip("-")
    cluster = Cluster(persona, kind, brokers, group, newest(persona))
    if brokers not in warm:
        cluster.warm_up()
        warm.add(brokers)
    yield cluster
    cluster.close()
    compare(said, test, kind, cluster.transcript.lines)


def compare(said: dict[str, tuple[str, list[str]]], test: str, kind: str, lines: list[str]) -> None:
    """The second of the two to end is held against the first."""
    twin = said.pop(test, None)
    if twin is None or twin[0] == kind:
        said[test] = (kind, lines)
        return
    lab, real = (lines, twin[1]) if kind == "lab" else (twin[1], lines)
    differs = difference(lab, real)
    if differs:
        pytest.fail(f"The lab does not answer as real Kafka does.\n{differs}", pytrace=False)
