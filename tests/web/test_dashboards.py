"""The dashboard and the alerts in dashboards/, held to what /metrics really has."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kelpie.client import SyncAdmin
from kelpie.client.settings import Settings
from kelpie.examination import Examination
from kelpie.lab import SyncCluster
from kelpie.model.names import TopicPartition
from kelpie.store import Store
from kelpie.web.exposition import Exposition
from kelpie.web.families import families_in
from kelpie.web.metrics import Families
from kelpie.web.watch import Watch
from tests.web.looks import a_healthy_cluster
from tests.web.watching import looked

FOLDER = Path(__file__).parents[2] / "dashboards"
DASHBOARD, ALERTS = FOLDER / "kelpie.json", FOLDER / "kelpie-alerts.yml"
NAMES = {family.name for family in families_in(Families)}
PROMTOOL = shutil.which("promtool")
_ILL = r'kelpie_group_finding\{.*code="KLP101",severity="critical"\} 1'
needs_promtool = pytest.mark.skipif(
    PROMTOOL is None, reason="there is no promtool here: apt-get install prometheus"
)


@pytest.mark.parametrize("path", [DASHBOARD, ALERTS], ids=lambda path: path.name)
def test_every_metric_that_is_named_is_exported(path: Path) -> None:
    named = set(re.findall(r"\bkelpie_[a-z_]+", path.read_text(encoding="utf-8")))
    assert named
    assert named <= NAMES


def test_each_panel_of_the_dashboard_asks_for_something() -> None:
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) > 15
    for panel in panels:
        assert panel["title"]
        assert all("kelpie_" in target["expr"] for target in panel["targets"]), panel["title"]
    places = [panel["gridPos"] for panel in panels]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    cells = [
        (x, y)
        for place in places
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells)), "no panel lies on another"


def _firing(text: str, tmp_path: Path) -> set[str]:
    """Names of the alerts that fire when these numbers have stood for half an hour, as promtool says."""
    series = [
        {"series": f"{each.name}{{{_inside(each.labels)}}}", "values": f"{each.value}+0x120"}
        for family in text_string_to_metric_families(text)
        for each in family.samples
    ]
    alerts = re.findall(r"- alert: (\w+)", ALERTS.read_text(encoding="utf-8"))
    expected = {name: _fires(name, series, tmp_path) for name in alerts}
    return {name for name, fires in expected.items() if fires}


def _fires(alert: str, series: list[dict[str, str]], tmp_path: Path) -> bool:
    """promtool says whether an expectation holds: here, that the alert does not fire."""
    expression = f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)'
    test = {
        "interval": "30s",
        "input_series": series,
        "promql_expr_test": [
            {"expr": expression, "eval_time": "30m", "exp_samples": [{"labels": "{}", "value": 0}]}
        ],
    }
    path = tmp_path / "test.json"
    data: dict[str, Any] = {"rule_files": [str(ALERTS)], "evaluation_interval": "30s", "tests": [test]}
    path.write_text(json.dumps(data), encoding="utf-8")
    assert PROMTOOL is not None
    done = subprocess.run(
        [PROMTOOL, "test", "rules", str(path)], capture_output=True, text=True, timeout=120, check=False
    )
    said = done.stdout + done.stderr
    assert ("SUCCESS" in said) != ("exp" in said), said
    return done.returncode != 0


def _inside(labels: dict[str, str]) -> str:
    return ",".join(f"{name}={json.dumps(value)}" for name, value in labels.items())


@needs_promtool
def test_the_rules_parse() -> None:
    assert PROMTOOL is not None
    done = subprocess.run(
        [PROMTOOL, "check", "rules", str(ALERTS)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


@needs_promtool
def test_no_alert_fires_on_a_healthy_cluster(tmp_path: Path) -> None:
    rows = a_healthy_cluster("billing", offset=12)
    with Watch("main", Examination(evidence=rows), 3600) as watch:
        looked(watch)
        text = _young(Exposition([watch]).text().decode())
    assert _firing(text, tmp_path) == set()


@needs_promtool
def test_a_coordinator_that_dies_raises_the_alerts_that_name_it(
    tmp_path: Path, wait_until: Callable[..., None]
) -> None:
    """The lab's coordinator outage: the only replica of an offsets partition goes with its broker."""
    with SyncCluster(2, offsets_partitions=2, replication=1) as cluster:
        cluster.create_topic("orders", partitions=1, replication=2)
        with SyncAdmin(cluster.bootstrap_servers, patience_s=30) as admin:
            for number in range(4):
                admin.commit(f"billing-{number}", {TopicPartition("orders", 0): 0})
        settings = replace(Settings.of(cluster.bootstrap_servers), request_timeout_s=1, connect_timeout_s=1)
        with Watch("lab", Examination(settings, store=Store(tmp_path)), 0.05) as watch:
            exposition = Exposition([watch])
            looked(watch)
            cluster.kill(2)
            wait_until(
                lambda: 'kelpie_broker_alive{cluster="lab",broker="2"} 0' in exposition.text().decode()
            )
            wait_until(lambda: re.search(_ILL, exposition.text().decode()))
            text = exposition.text().decode()
    firing = _firing(_young(text), tmp_path)
    assert firing >= {
        "KafkaBrokerIsDead",
        "KafkaOffsetsPartitionHasNoLeader",
        "KafkaGroupsWithoutCoordinator",
        "KafkaGroupIsIll",
    }
    assert not firing & {
        "KafkaClusterDoesNotAnswer",
        "KelpieLookIsOld",
        "KelpieLooksFail",
        "KelpieIsNotScraped",
    }


@needs_promtool
def test_a_cluster_that_is_silent_and_a_look_that_is_old_are_told(tmp_path: Path) -> None:
    lines = ['kelpie_cluster_answers{cluster="main"} 0', 'kelpie_look_age_seconds{cluster="main"} 900']
    assert _firing("\n".join(lines) + "\n", tmp_path) == {
        "KafkaClusterDoesNotAnswer",
        "KelpieLookIsOld",
        "KelpieIsNotScraped",
    }


def _young(text: str) -> str:
    """As if it were scraped right after the look: tests take their time, and so do clocks in evidence."""
    return re.sub(r"(?m)^(kelpie_look_age_seconds\S*) .*$", r"\1 1", text)
