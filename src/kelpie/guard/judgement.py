"""When what was seen is fatal: sightings and time go in, a verdict comes out. No input or output.

sign                 fatal
rebalance-failed     at once: nothing tries again until the group changes
client-failed        at once: the client says that it cannot go on
fenced               at once for a static member, whose client has stopped; a member that was fenced by its
                     epoch joins again by itself, so only if it does not
poll-limit           if the consumer does not join again; known only if the process logs its joins
coordinator-lookup   if lookups have failed again and again, for the whole time limit
pattern              at once: a pattern of the user's own
start-failed         no line: the process could not be started again
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from kelpie.errors import ErrorCode
from kelpie.guard.sightings import Sighting
from kelpie.observations import EventKind as Kind

_STATIC = (ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNRELEASED_INSTANCE_ID)
_BACK = (Kind.JOINING, Kind.JOINED, Kind.ASSIGNED, Kind.REVOKED)
"""What only a consumer does that polls again."""
_PROGRESS = (Kind.JOINED, Kind.ASSIGNED, Kind.CONSUMED)
_FEWEST_FAILURES = 3
_LONGEST_SILENCE_S = 90.0
"""Clients look up again within their request timeout, 30 s for most. Such a silence ends a series."""
_QUIET_AFTER_FOUND_S = 45.0
"""A coordinator that was found, and not lost for so long, serves. A dead one is given up within 30 s."""


class Sign(StrEnum):
    REBALANCE_FAILED = "rebalance-failed"
    COORDINATOR_LOOKUP = "coordinator-lookup"
    FENCED = "fenced"
    POLL_LIMIT = "poll-limit"
    CLIENT_FAILED = "client-failed"
    PATTERN = "pattern"
    START_FAILED = "start-failed"


_SIGNS = {
    Kind.REBALANCE_FAILED: Sign.REBALANCE_FAILED,
    Kind.LOOKUP_FAILED: Sign.COORDINATOR_LOOKUP,
    Kind.COORDINATOR_LOST: Sign.COORDINATOR_LOOKUP,
    Kind.FENCED: Sign.FENCED,
    Kind.POLL_INTERVAL_EXCEEDED: Sign.POLL_LIMIT,
    Kind.CLIENT_FAILED: Sign.CLIENT_FAILED,
    None: Sign.PATTERN,
}


@dataclass(frozen=True, slots=True)
class Fatal:
    """The consumer will not recover by itself."""

    sign: Sign
    detail: str
    """In which form, or since when; may be empty."""
    text: str
    """The line that decided."""


@dataclass(frozen=True, slots=True)
class Limits:
    lookup_s: float = 300.0
    """So long lookups of the coordinator may fail."""
    return_s: float = 300.0
    """Within this time a consumer joins again that was fenced or polled too late."""


def sign_of(sighting: Sighting) -> Sign | None:
    """The sign that a sighting belongs to; None for one that shows that all is well."""
    return _SIGNS.get(sighting.kind)


class Judgement:
    """Of one run of a process."""

    def __init__(self, limits: Limits, signs: frozenset[Sign] = frozenset(Sign)) -> None:
        """`signs`: which of them count."""
        self._limits, self._signs = limits, signs
        self._lookups = _Lookups(limits.lookup_s)
        self._logs_joins = False
        self._absent: Fatal | None = None
        """Fatal at the deadline, unless the consumer joins again before."""
        self.deadline: float | None = None

    def see(self, sighting: Sighting, now: float) -> Fatal | None:
        """What follows from a sighting at once."""
        kind, sign = sighting.kind, sign_of(sighting)
        if kind in _BACK:
            self._logs_joins = True
            self._absent = self.deadline = None
        if kind in _PROGRESS:
            self._lookups.end()
        elif kind is Kind.COORDINATOR_FOUND:
            self._lookups.found(now)
        if sign is None or sign not in self._signs:
            return None
        if sign is Sign.COORDINATOR_LOOKUP:
            detail = self._lookups.failed(now)
            return Fatal(sign, detail, sighting.text) if detail else None
        if sign is Sign.POLL_LIMIT or (sign is Sign.FENCED and sighting.error not in _STATIC):
            self._await_return(Fatal(sign, "", sighting.text), now)
            return None
        return Fatal(sign, sighting.form, sighting.text)

    def tick(self, now: float) -> Fatal | None:
        """What follows from time alone."""
        if self._absent is None or self.deadline is None or now < self.deadline:
            return None
        fatal = replace(self._absent, detail=f"it did not join again within {self._limits.return_s:g} s")
        self._absent = self.deadline = None
        return fatal

    def _await_return(self, fatal: Fatal, now: float) -> None:
        if self._logs_joins and self._absent is None:
            self._absent, self.deadline = fatal, now + self._limits.return_s


class _Lookups:
    """Failures to find a coordinator, or to keep one, that follow each other closely."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._first = self._last = 0.0
        self._found: float | None = None
        self._count = 0

    def failed(self, now: float) -> str:
        """Since when it has been so, once that is too long; else nothing."""
        since_found = 0.0 if self._found is None else now - self._found
        if self._count and (now - self._last > _LONGEST_SILENCE_S or since_found > _QUIET_AFTER_FOUND_S):
            self.end()
        if not self._count:
            self._first = now
        self._count += 1
        self._last, self._found = now, None
        lasted = now - self._first
        if lasted < self._limit_s or self._count < _FEWEST_FAILURES:
            return ""
        return f"{self._count} failures in {lasted:.0f} s"

    def found(self, now: float) -> None:
        if self._count and self._found is None:
            self._found = now

    def end(self) -> None:
        self._count, self._found = 0, None
