"""Examines a cluster again and again with one store while a situation goes on, as `kelpie doctor --watch`."""

import asyncio
import time
from collections.abc import Container, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from kelpie.client.settings import Settings
from kelpie.doctor.case import Case
from kelpie.doctor.diagnosis import Diagnosis
from kelpie.doctor.finding import Finding, Severity
from kelpie.examination import Examination
from kelpie.model.time import Instant
from kelpie.observations import Observations
from kelpie.store import Store
from tests.doctor.matrix.situations import KINDS_OF_GROUPS, Situation
from tests.doctor.matrix.world import World

_EVERY_S = 1.5
_START_LIMIT_S = 120.0
_LIMIT_S = 400.0
_RHYTHM = 8
"""So many looks at groups that consume come before anything happens to them."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What one examination saw, and what followed from it."""

    now: Instant
    rows: Observations
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Watching(Examination):
    """An examination that keeps the rows that it judged."""

    judged: list[tuple[Instant, Observations]] = field(default_factory=list)

    def _judge(self, rows: Observations, now: Instant | None) -> tuple[Diagnosis, Sequence[Case]]:
        assert now is not None
        self.judged.append((now, Observations().add(rows)))
        return Examination._judge(self, rows, now)


def watch(world: World, situation: Situation, folder: Path) -> list[Moment]:
    """All that the doctor saw, from when every group had committed until the situation was over."""
    moments: list[Moment] = []
    watching = Watching(Settings.of(world.servers), store=Store(folder))
    deadline = time.monotonic() + _START_LIMIT_S
    with world.alive(), ThreadPoolExecutor(1) as pool:
        acting: Future[None] | None = None
        while acting is None or not acting.done():
            begun = time.monotonic()
            examined = asyncio.run(watching.examine())
            now, rows = watching.judged.pop()
            if acting is not None or _all_commit(examined.cases):
                moments.append(Moment(now, rows, examined.diagnosis.findings))
            elif time.monotonic() > deadline:
                raise TimeoutError(f"not all groups committed within {_START_LIMIT_S:.0f} s")
            world.examined()
            if acting is None and len(moments) >= _RHYTHM:
                acting = pool.submit(situation.act, world)
                deadline = time.monotonic() + _LIMIT_S
            if acting is not None and time.monotonic() > deadline:
                raise TimeoutError(f"{situation.name} did not end within {_LIMIT_S:.0f} s")
            time.sleep(max(0.0, _EVERY_S - (time.monotonic() - begun)))
        acting.result()
    return moments


def _all_commit(cases: Iterable[Case]) -> bool:
    return {case.group for case in cases if case.committed} >= KINDS_OF_GROUPS


def loud(findings: Iterable[Finding], named: Container[str] = ()) -> dict[str, set[str | None]]:
    """Code → groups, of what is above a notice and follows from no other finding; notices of named codes."""
    found: dict[str, set[str | None]] = {}
    for finding in findings:
        if finding.code in named or (finding.severity > Severity.NOTICE and not finding.caused_by):
            found.setdefault(finding.code, set()).add(finding.group)
    return found


def wrong(situation: Situation, moments: Sequence[Moment]) -> list[str]:
    """Where the doctor said something else than it should, moment by moment, ready to be read."""
    start = moments[0].now
    words = [
        f"{situation.name}, {(moment.now - start) / 1000:.1f} s: {finding.code} {finding.severity.word}: "
        f"{finding.summary}"
        for moment in moments
        for finding in moment.findings
        if finding.severity > Severity.NOTICE
        and not finding.caused_by
        and finding.group not in situation.on_the_way.get(finding.code, ())
    ]
    last = loud(moments[-1].findings, situation.at_the_end)
    if last != situation.at_the_end:
        words.append(f"{situation.name}, at the end: {last} instead of {dict(situation.at_the_end)}")
    return words
