"""The dashboard and the alerts in dashboards/, held to what /metrics really has."""

import asyncio
import json
import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kelpie.client import SyncAdmin
from kelpie.client.settings import Settings
from kelpie.doctor.diagnosis import Diagnosis
from kelpie.examination import Examination
from kelpie.lab import SyncCluster, virtual_time
from kelpie.lab.scenarios import Environment, Moment, Stage, scenarios
from kelpie.model.names import TopicPartition
from kelpie.real.ports import free
from kelpie.store import Store
from kelpie.web.exposition import Exposition
from kelpie.web.families import families_in
from kelpie.web.metrics import Families
from kelpie.web.watch import Watch
from tests import programs
from tests.doctor.building import NOW
from tests.web.looks import a_healthy_cluster
from tests.web.watching import looked

FOLDER = Path(__file__).parents[2] / "dashboards"
DASHBOARD, ALERTS = FOLDER / "kelpie.json", FOLDER / "kelpie-alerts.yml"
NAMES = {family.name for family in families_in(Families)}
_HALF_AN_HOUR = 60
"""In steps of 30 s."""
PROMTOOL = programs.find("promtool")
_ILL = r'kelpie_group_finding\{.*code="KLP101",severity="critical"\} 1'
needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="there is no promtool here: make programs")


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


def _firing(texts: Sequence[str], tmp_path: Path) -> set[str]:
    """Names of the alerts that fire, as promtool says, within half an hour. `texts`: scrapes, 30 s apart; the
    last one stands until the end.
    """
    values: dict[str, list[str]] = {}
    for number, text in enumerate(texts):
        for family in text_string_to_metric_families(text):
            for each in family.samples:
                known = values.setdefault(f"{each.name}{{{_inside(each.labels)}}}", ["_"] * number)
                known.append(f"{each.value}")
    end = f"x{_HALF_AN_HOUR - len(texts)}"
    series = [{"series": name, "values": f"{' '.join(known)}+0{end}"} for name, known in values.items()]
    # What is expected never holds where an alert fires, and then promtool says which ones do.
    expectations = [
        {"expr": 'ALERTS{alertstate="firing"}', "eval_time": f"{minute}m", "exp_samples": []}
        for minute in range(1, 31)
    ]
    test = {"interval": "30s", "input_series": series, "promql_expr_test": expectations}
    path = tmp_path / "test.json"
    data: dict[str, Any] = {"rule_files": [str(ALERTS)], "evaluation_interval": "30s", "tests": [test]}
    path.write_text(json.dumps(data), encoding="utf-8")
    done = _promtool("test", "rules", str(path))
    said = done.stdout + done.stderr
    firing = set(re.findall(r'alertname="(\w+)"', said))
    assert bool(firing) == (done.returncode != 0), said
    return firing


def _promtool(*arguments: str) -> "subprocess.CompletedProcess[str]":
    assert PROMTOOL is not None
    return subprocess.run([PROMTOOL, *arguments], capture_output=True, text=True, timeout=120, check=False)


def _inside(labels: dict[str, str]) -> str:
    return ",".join(f"{name}={json.dumps(value)}" for name, value in labels.items())


@needs_promtool
def test_the_rules_parse() -> None:
    done = _promtool("check", "rules", str(ALERTS))
    assert done.returncode == 0, done.stderr


@needs_promtool
def test_no_alert_fires_on_a_healthy_cluster(tmp_path: Path) -> None:
    rows = a_healthy_cluster("billing", offset=12)
    with Watch("main", Examination(evidence=rows), 3600) as watch:
        looked(watch)
        text = _young(Exposition([watch]).text().decode())
    assert _firing([text], tmp_path) == set()


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
    firing = _firing([_young(text)], tmp_path)
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
    """Nobody listens where its brokers should be."""
    (port,) = free(1)
    late_ms = 0
    settings = replace(Settings.of(f"127.0.0.1:{port}"), request_timeout_s=1, connect_timeout_s=1)
    examination = Examination(settings, clock=lambda: NOW + late_ms)
    with Watch("main", examination, 3600) as watch:
        looked(watch)
        late_ms = 900_000
        text = Exposition([watch]).text().decode()
    assert _firing([text], tmp_path) == {"KafkaClusterDoesNotAnswer", "KelpieLookIsOld"}


@needs_promtool
def test_a_kelpie_that_is_gone_is_told(tmp_path: Path) -> None:
    other = "up 1\n"
    assert _firing([other], tmp_path) == {"KelpieIsNotScraped"}


@needs_promtool
def test_a_defect_of_kelpie_is_told(tmp_path: Path, wait_until: Callable[..., None]) -> None:
    def broken(_: Diagnosis) -> Diagnosis:
        raise ArithmeticError("as a defect would")

    with Watch("main", Examination(evidence=a_healthy_cluster("billing")), 0.01, broken) as watch:
        wait_until(lambda: watch.failures > 2)
        text = Exposition([watch]).text().decode()
    assert _firing([text], tmp_path) == {"KelpieLooksFail"}


class Scraped:
    """A scenario of the lab on a virtual clock, looked at and scraped whenever it shows something."""

    def __init__(self, scenario: str, folder: Path, looks: int, every_s: float) -> None:
        """`looks`: at each incident, `every_s` apart."""
        self.texts: list[str] = []
        self._scenario = scenarios()[scenario]
        self._folder = folder
        self._looks, self._every_s = looks, every_s
        self._watch: Watch | None = None

    def play(self) -> list[str]:
        """What the incident was scraped as."""
        virtual_time.run(self._play())
        return self.texts

    async def _play(self) -> None:
        async with Stage(
            self._scenario.personas[0],
            lambda _: None,
            observer=self._look,
            logs=self._folder / "logs",
            environment=Environment.virtual(),
        ) as stage:
            await self._scenario.run(stage)
        assert not stage.failures

    async def _look(self, moment: Moment) -> None:
        if self._watch is None:
            store = Store(self._folder / "store")
            self._watch = Watch("lab", Examination(moment.settings, store=store, clock=moment.clock), 30)
        await self._watch._look(moment.clock())
        for _ in range(0 if moment.is_calm else self._looks):
            await asyncio.sleep(self._every_s)
            await self._watch._look(moment.clock())
            self.texts.append(_young(Exposition([self._watch]).text().decode()))


@needs_promtool
@pytest.mark.parametrize(
    ("scenario", "looks", "every_s", "alerts"),
    [
        ("lag-grows", 1, 900.0, {"KafkaGroupFallsBehind"}),
        ("rewound", 1, 30.0, {"KafkaGroupNeedsCare"}),
        ("rebalance-storm", 2, 6.0, {"KafkaGroupRebalancesAgainAndAgain"}),
        # Fifteen minutes of clients that try again and again take a while.
        pytest.param("coordinator-outage", 1, 900.0, {"KafkaGroupCannotBeSeen"}, marks=pytest.mark.wide),
        ("offsets-topic-at-risk", 1, 30.0, {"KafkaBrokerLossWouldStopGroups"}),
    ],
)
def test_a_scenario_raises_the_alerts_about_it(
    scenario: str, looks: int, every_s: float, alerts: set[str], tmp_path: Path
) -> None:
    assert alerts <= _firing(Scraped(scenario, tmp_path, looks, every_s).play(), tmp_path)


def test_each_alert_is_shown_to_fire() -> None:
    """An alert that no test names may never fire."""
    named = Path(__file__).read_text(encoding="utf-8")
    alerts = re.findall(r"- alert: (\w+)", ALERTS.read_text(encoding="utf-8"))
    assert [alert for alert in alerts if f'"{alert}"' not in named] == []


def _young(text: str) -> str:
    """As if it were scraped right after the look: tests take their time, and so do clocks in evidence."""
    return re.sub(r"(?m)^(kelpie_look_age_seconds\S*) .*$", r"\1 1", text)
