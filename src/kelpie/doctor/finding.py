"""What a rule says. Data first: renderers make text of it.

A verdict is present (a Finding), absent, or undetermined, and then it says what is missing. Too little data
is never the same as all is well.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from fnmatch import fnmatchcase
from typing import Protocol

from kelpie.model.time import Instant
from kelpie.observations import Event


class Severity(IntEnum):
    """How bad. The exit status of `kelpie doctor` follows from the worst finding."""

    NOTICE = 1
    """Worth knowing; nothing is lost yet."""
    WARNING = 2
    """It will hurt, or hurts a little."""
    CRITICAL = 3
    """Groups do not consume, or data is lost."""

    @property
    def word(self) -> str:
        return self.name.lower()


class ObservedRow(Protocol):
    """A row of observations."""

    @property
    def source(self) -> str: ...
    @property
    def at(self) -> Instant | None: ...


@dataclass(frozen=True, slots=True)
class Evidence:
    """A raw value that was seen: what, when, where."""

    text: str
    source: str = ""
    at: Instant | None = None

    @classmethod
    def of(cls, row: ObservedRow, text: str) -> "Evidence":
        """What a row says, with its time and source."""
        return cls(text, row.source, row.at)


def quotes(events: Iterable[Event]) -> list[Evidence]:
    """Lines of logs, as they stand."""
    return [Evidence.of(event, event.text) for event in events]


@dataclass(frozen=True, slots=True)
class Remedy:
    """What to do now. `command` has this cluster's own names in it, ready to be pasted."""

    text: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """A person knows about a finding, for a while. `kelpie ack` makes it, the store keeps it."""

    group: str | None
    """A name or a pattern ("billing-*"). None: what concerns the cluster as a whole."""
    code: str
    severity: Severity
    """A finding that is worse than this is told as if nobody knew about it."""
    until: Instant
    by: str
    why: str
    at: Instant
    """When it was acknowledged."""

    def covers(self, finding: "Finding", now: Instant) -> bool:
        if finding.code != self.code or finding.severity > self.severity or now >= self.until:
            return False
        if self.group is None or finding.group is None:
            return self.group is finding.group
        return self.group == finding.group or fnmatchcase(finding.group, self.group)


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault that is there. `group` is None when it concerns the cluster as a whole."""

    code: str
    name: str
    severity: Severity
    group: str | None
    summary: str
    """One sentence with names and numbers: "Group billing-1 has no coordinator: …"."""
    why: str
    """The consequences."""
    evidence: tuple[Evidence, ...]
    remedies: tuple[Remedy, ...] = ()
    cause: str = ""
    """Findings with the same code and cause are one incident: "__consumer_offsets-25"."""
    brokers: tuple[int, ...] = ()
    partitions: tuple[str, ...] = ()
    """As Kafka writes them: "orders-3"."""
    members: tuple[str, ...] = ()
    since: Instant | None = None
    until: Instant | None = None
    """Set when it is over."""
    check: str = ""
    """A command of Kafka's own tools that shows the same without Kelpie. Empty: there is none."""
    id: str = ""
    """The same in every examination that finds it; `causes.linked` sets it, and the next field."""
    caused_by: tuple[str, ...] = ()
    """Ids of the findings that explain this one."""
    acknowledged: Acknowledgement | None = None
    """Somebody knows about it: it does not count for the verdict and the exit status."""


@dataclass(frozen=True, slots=True)
class Absent:
    """The rule looked for its fault, and it is not there."""


@dataclass(frozen=True, slots=True)
class Undetermined:
    """The rule cannot decide; `missing` is what it lacks."""

    missing: tuple[str, ...]


ABSENT = Absent()

Judgement = Finding | Absent | Undetermined


def undetermined(*missing: str) -> Undetermined:
    return Undetermined(missing)
