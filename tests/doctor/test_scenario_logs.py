"""Faults of membership told from the lab's logs alone, as from those of a cluster that is out of reach."""

from pathlib import Path

import pytest

from kelpie.doctor.cases import build
from kelpie.doctor.diagnosis import diagnose_all
from kelpie.doctor.finding import Severity
from kelpie.evidence import read_evidence
from kelpie.lab import virtual_time
from kelpie.lab.scenarios import Environment, Moment, Stage, scenarios

_FROM_LOGS = ("KLP201", "KLP203", "KLP204", "KLP205", "KLP206", "KLP209", "KLP210")


@pytest.mark.parametrize(
    ("name", "persona"),
    [
        ("rebalance-storm", "3.9"),
        ("session-expired", "2.8"),
        ("static-member-fenced", "4.3"),
        ("static-member-fenced", "2.8"),
        ("group-full", "3.9"),
        ("zombie-commits", "3.9"),
    ],
)
def test_the_logs_alone_tell_it(name: str, persona: str, tmp_path: Path) -> None:
    """Each release has its own words, and the doctor reads them all; while all is well they tell nothing."""
    shown: list[bool] = []

    async def look(moment: Moment) -> None:
        diagnosis = diagnose_all(*build(read_evidence([moment.logs])))
        told = {
            (finding.code, finding.group)
            for finding in diagnosis.findings
            if finding.code in _FROM_LOGS and finding.severity >= Severity.WARNING
        }
        assert told == {(code, group) for code, groups in moment.finds.items() for group in groups}
        shown.append(moment.is_calm)

    async def play() -> None:
        environment = Environment.virtual()
        logs = tmp_path / "logs"
        async with Stage(persona, lambda _: None, observer=look, logs=logs, environment=environment) as stage:
            await scenarios()[name].run(stage)

    virtual_time.run(play())
    assert shown == [True, False]
