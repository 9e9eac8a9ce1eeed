"""What a rule says. Data first: renderers make text of it.

A verdict is present (a Finding), absent, or undetermined, and then it says what is missing. Too little data
is never the same as all is well.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from enum import IntEnum
from fnmatch import fnmatchcase
from operator import attrgetter
from typing import Any, Protocol

from kelpie.model.time import Instant
from kelpie.observations import Event
from kelpie.observations.acknowledgement import Acknowledgement


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

    @classmethod
    def of(cls, word: str) -> "Severity":
        """From its word, in any case. Raises KeyError."""
        return cls[word.upper()]


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
    said_by: str = ""
    """The code of a finding that says this already, if it is the cause: then it need not be said twice."""


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

    def linked(self, name: str, caused_by: tuple[str, ...]) -> "Finding":
        """The same with this id and these causes. There may be thousands, and `dataclasses.replace` takes
        four times as long.
        """
        values = (*_but_links(self), name, caused_by, self.acknowledged)
        return Finding(*values)


_LINKS = ("id", "caused_by", "acknowledged")
"""The last fields."""
_but_links: Callable[[Finding], tuple[Any, ...]] = attrgetter(
    *(field.name for field in fields(Finding) if field.name not in _LINKS)
)


def is_covered(finding: Finding, known: Acknowledgement, now: Instant) -> bool:
    """Whether a person knows about this finding: not beyond the time, and not if it got worse."""
    if finding.code != known.code or now >= known.until or finding.severity > Severity.of(known.severity):
        return False
    return names_group(known.group, finding.group)


def names_group(pattern: str | None, group: str | None) -> bool:
    """Whether an acknowledgement of this name or pattern means the group. None is the cluster."""
    if pattern is None or group is None:
        return pattern is group
    return pattern == group or fnmatchcase(group, pattern)


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
