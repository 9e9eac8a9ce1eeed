"""Every scenario of the lab that shows a fault: the doctor finds that one, and nothing while all is well."""

import asyncio
from pathlib import Path

import pytest

from kelpie.client.zookeeper_survey import ZooKeeperPlace
from kelpie.doctor.diagnosis import Diagnosis
from kelpie.doctor.finding import Severity
from kelpie.doctor.rules import rules
from kelpie.evidence import read_evidence
from kelpie.examination import Examination
from kelpie.lab import virtual_time
from kelpie.lab.scenarios import Environment, Moment, Stage, scenarios
from kelpie.observations import Observations
from kelpie.store import Store

_PATIENCE_S, _REAL_PATIENCE_S = 15.0, 60.0
_INTERVAL_S = 2.2
"""Between two looks at ZooKeeper: rules need two seconds."""


class Play:
    """One scenario, observed by the doctor, which remembers its earlier surveys.

    It runs on a virtual clock, or with a real ZooKeeper in real time.
    """

    def __init__(self, name: str, folder: Path, zookeeper: str | None = None) -> None:
        self.scenario = scenarios()[name]
        self._zookeeper = zookeeper
        self.shown: list[Moment] = []
        self.differences: list[str] = []
        self._logs = folder / "logs"
        self._store = Store(folder / "store")

    async def run(self) -> list[str]:
        """What the scenario expected and did not see."""

        async def zookeeper() -> str:
            return self._zookeeper or ""

        is_real = self._zookeeper is not None
        async with Stage(
            self.scenario.personas[0],
            lambda _: None,
            observer=self._examine,
            logs=self._logs,
            environment=Environment() if is_real else Environment.virtual(),
            zookeeper=zookeeper if is_real else None,
            patience_s=_REAL_PATIENCE_S if is_real else _PATIENCE_S,
        ) as stage:
            await self.scenario.run(stage)
        return stage.failures

    async def _examine(self, moment: Moment) -> None:
        self.shown.append(moment)
        evidence = read_evidence([moment.logs]) if moment.needs_logs else Observations()
        place = ZooKeeperPlace(moment.zookeeper, interval_s=_INTERVAL_S) if moment.zookeeper else None
        examination = Examination(
            moment.settings, evidence=evidence, store=self._store, clock=moment.clock, zookeeper=place
        )
        if moment.seconds_of_history:
            await examination.examine()
            await asyncio.sleep(moment.seconds_of_history)
        diagnosis, answered, _ = await examination.examine()
        assert answered
        found, expected = _found(diagnosis, moment), _expected(moment)
        if found != expected:
            lines = [f"expected {expected}, found {found}:"]
            lines += [
                f"  {finding.code} {finding.severity.name} {finding.summary}"
                for finding in diagnosis.findings
            ]
            lines += [
                f"  {each.code} undetermined for {each.groups}: {each.missing}" for each in diagnosis.open
            ]
            self.differences.append("\n".join(lines))

    def judge(self, failures: list[str]) -> None:
        assert not self.differences, "\n".join(self.differences)
        assert not failures
        assert any(moment.is_calm for moment in self.shown), "it shows no moment at which all is well"
        assert any(not moment.is_calm for moment in self.shown), "it shows no incident"


def _expected(moment: Moment) -> dict[str, list[str]]:
    return {code: sorted(groups) for code, groups in sorted(moment.finds.items())}


def _found(diagnosis: Diagnosis, moment: Moment) -> dict[str, list[str]]:
    """What is worth a warning, and what the scenario tells of though it is worth less; who has it."""
    found: dict[str, set[str]] = {}
    for finding in diagnosis.findings:
        if finding.severity >= Severity.WARNING or finding.code in moment.finds:
            groups = found.setdefault(finding.code, set())
            groups |= {finding.group} if finding.group is not None else set()
    return {code: sorted(groups) for code, groups in sorted(found.items())}


@pytest.mark.parametrize(
    "name", sorted(name for name, scenario in scenarios().items() if not scenario.needs_zookeeper)
)
def test_the_doctor_finds_what_a_scenario_shows_and_nothing_else(name: str, tmp_path: Path) -> None:
    """The injected fault is found, with exactly the groups that have it; the healthy run stays silent."""
    play = Play(name, tmp_path)
    play.judge(virtual_time.run(play.run()))


NO_SCENARIO = {
    "KLP603": "brokers of the lab have no TLS; tests/client/test_security.py shows it on real Kafka"
}
"""Rules whose fault the lab cannot show, and why."""


def test_every_rule_has_its_scenario() -> None:
    """What its page says under "Reproduce" must be true."""
    for rule in rules().values():
        if rule.code in NO_SCENARIO:
            continue
        words = rule.page.rpartition("Reproduce: kelpie ")[2].split()
        assert words[:2] == ["lab", "run"], f"{rule.code} does not say how to reproduce it"
        assert words[2] in scenarios(), f"{rule.code} names a scenario that is not there"
