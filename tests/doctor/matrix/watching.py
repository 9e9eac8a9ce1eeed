"""Examines a cluster again and again with one store while a situation goes on, as `kelpie doctor --watch`."""

import asyncio
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from kelpie.client.security import Protocol, Sasl, Secret, Security
from kelpie.client.settings import Settings
from kelpie.client.survey import wall_clock
from kelpie.doctor.case import Case
from kelpie.doctor.diagnosis import Diagnosis
from kelpie.doctor.finding import Finding, Severity
from kelpie.examination import Examination
from kelpie.model.time import Instant
from kelpie.observations import Observations
from kelpie.store import Store
from tests.doctor.matrix.cluster import AUDITOR, LOGIN, PASSWORD
from tests.doctor.matrix.kinds import COMMIT_NOTHING
from tests.doctor.matrix.situations import Situation, chosen
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
    """All that the doctor saw, from when every group was at work until the situation was over."""
    _await_commits(world)
    situation.prepare(world)
    moments: list[Moment] = []
    watching = Watching(_settings(world, situation), store=Store(folder), clock=_clock(situation)).repeated()
    deadline = time.monotonic() + _LIMIT_S
    with ThreadPoolExecutor(1) as pool:
        acting: Future[None] | None = None
        while acting is None or not acting.done():
            begun = time.monotonic()
            examined = asyncio.run(watching.examine())
            moments.append(Moment(*watching.judged.pop(), examined.diagnosis.findings))
            world.examined()
            if acting is None and len(moments) >= _RHYTHM:
                acting = pool.submit(situation.act, world)
            if acting is not None and time.monotonic() > deadline:
                raise TimeoutError(f"{situation.name} did not end within {_LIMIT_S:.0f} s")
            time.sleep(max(0.0, _EVERY_S - (time.monotonic() - begun)))
        acting.result()
    return moments


def _settings(world: World, situation: Situation) -> Settings:
    if not situation.by_auditor:
        return Settings.of(world.servers)
    sasl = Sasl("PLAIN", AUDITOR, Secret(PASSWORD))
    return Settings.of(world.cluster.addresses(LOGIN), security=Security(Protocol.SASL_PLAINTEXT, sasl=sasl))


def _clock(situation: Situation) -> Callable[[], Instant]:
    return lambda: wall_clock() + situation.clock_ahead_ms


def _await_commits(world: World) -> None:
    """Until each group has committed, or is stable if it commits nothing."""
    deadline = time.monotonic() + _START_LIMIT_S
    watching = Watching(Settings.of(world.servers))
    while lacking := world.kinds - set(_at_work(asyncio.run(watching.examine()).cases)):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not at work within {_START_LIMIT_S:.0f} s: {sorted(lacking)}")
        time.sleep(_EVERY_S)


def _at_work(cases: Iterable[Case]) -> Iterator[str]:
    for case in cases:
        is_stable = case.described is not None and case.described.state == "Stable"
        if case.committed or (case.group in COMMIT_NOTHING and is_stable):
            yield case.group


def loud(findings: Iterable[Finding], named: Container[str] = ()) -> dict[str, set[str | None]]:
    """Code → groups, of what is above a notice and follows from no other finding; notices of named codes."""
    found: dict[str, set[str | None]] = {}
    for finding in findings:
        if not finding.caused_by and (finding.code in named or finding.severity > Severity.NOTICE):
            found.setdefault(finding.code, set()).add(finding.group)
    return found


def wrong(situation: Situation, moments: Sequence[Moment], kinds: frozenset[str]) -> list[str]:
    """Where the doctor said something else than it should, moment by moment, ready to be read."""
    start = moments[0].now
    proven = situation.proven
    at_the_end = chosen(proven(moments[-1].rows) if proven else situation.at_the_end, kinds)
    over = situation.may_be_over
    words = [
        f"{situation.name}, {(moment.now - start) / 1000:.1f} s: {finding.code} {finding.severity.word}: "
        f"{finding.summary}"
        for moment in moments
        for finding in moment.findings
        if finding.severity > Severity.NOTICE
        and not finding.caused_by
        and finding.group not in situation.on_the_way.get(finding.code, ())
    ]
    last = loud(moments[-1].findings, at_the_end)
    if _without(last, over) != _without(at_the_end, over):
        words.append(f"{situation.name}, at the end: {last} instead of {at_the_end}")
    return words


def _without(found: Mapping[str, set[str | None]], groups: Set[str]) -> dict[str, set[str | None]]:
    left = {code: of - groups for code, of in found.items()}
    return {code: of for code, of in left.items() if of}
