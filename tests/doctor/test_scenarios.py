"""Every scenario of the lab that shows a fault: the doctor finds that one, and nothing while all is well."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kelpie.cli.examining import Examination
from kelpie.client.settings import Settings
from kelpie.doctor.diagnosis import Diagnosis
from kelpie.doctor.finding import Severity
from kelpie.doctor.rules import rules
from kelpie.evidence import read_evidence
from kelpie.lab.scenarios import Moment, Stage, scenarios
from kelpie.observations import Observations
from kelpie.store import Store

_AT_ONCE = 4
"""Scenarios wait most of the time: for sessions to end, for records to come."""


@dataclass
class Outcome:
    """What came of a scenario."""

    shown: list[Moment] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    error: Exception | None = None


class Play:
    """One scenario, with the doctor for an audience. It remembers from one look to the next."""

    def __init__(self, name: str, folder: Path) -> None:
        self.scenario = scenarios()[name]
        self.outcome = Outcome()
        self.logs = folder / "logs"
        self.logs.mkdir()
        self._store = Store(folder / "store")

    async def run(self) -> None:
        persona = self.scenario.personas[0]
        async with Stage(persona, lambda _: None, observer=self._look, logs=self.logs) as stage:
            await self.scenario.run(stage)
        self.outcome.failures = stage.failures

    async def _look(self, moment: Moment) -> None:
        self.outcome.shown.append(moment)
        evidence = read_evidence([moment.logs]) if moment.needs_logs else Observations()
        settings = Settings.of(moment.cluster.bootstrap_servers)
        examination = Examination(settings, evidence=evidence, store=self._store)
        if moment.seconds_of_history:
            await examination.look()
            await asyncio.sleep(moment.seconds_of_history)
        diagnosis, answered = await examination.look()
        assert answered
        found, expected = _found(diagnosis, moment), _expected(moment)
        if found != expected:
            told = [f"  {it.code} {it.severity.name} {it.summary}" for it in diagnosis.findings]
            told += [f"  {it.code} undetermined for {it.group}: {it.missing}" for it in diagnosis.open]
            self.outcome.differences.append("\n".join([f"expected {expected}, found {found}:", *told]))


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


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """Of all scenarios that were chosen, a few at a time."""
    chosen = [
        item.callspec.params["name"]
        for item in request.session.items
        if item.nodeid.startswith(request.node.nodeid) and hasattr(item, "callspec")
    ]
    plays = {name: Play(name, tmp_path_factory.mktemp(name)) for name in chosen}

    async def play_all() -> None:
        turn = asyncio.Semaphore(_AT_ONCE)

        async def play(one: Play) -> None:
            async with turn:
                try:
                    await one.run()
                except Exception as error:
                    one.outcome.error = error

        await asyncio.gather(*map(play, plays.values()))

    asyncio.run(play_all())
    return {name: play.outcome for name, play in plays.items()}


@pytest.mark.parametrize("name", sorted(scenarios()))
def test_the_doctor_finds_what_a_scenario_shows_and_nothing_else(
    name: str, outcomes: dict[str, Outcome]
) -> None:
    """The injected fault is found, with exactly the groups that have it; the healthy run stays silent."""
    outcome = outcomes[name]
    if outcome.error is not None:
        raise outcome.error
    assert not outcome.differences, "\n".join(outcome.differences)
    assert not outcome.failures
    assert any(moment.is_calm for moment in outcome.shown), "it shows no moment at which all is well"
    assert any(not moment.is_calm for moment in outcome.shown), "it shows no incident"


def test_every_rule_has_its_scenario() -> None:
    """What its page says under "Reproduce" must be true."""
    for rule in rules().values():
        command = rule.page.rpartition("Reproduce: kelpie lab run ")[2].split()
        assert command, f"{rule.code} does not say how to reproduce it"
        assert command[0] in scenarios(), f"{rule.code} names a scenario that is not there"
