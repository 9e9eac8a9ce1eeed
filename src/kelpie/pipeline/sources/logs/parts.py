"""Merges the parts of one log that were read separately into what a reader of the whole file would know.

A part is what a task returns to the driver beside its rows; its size depends on the groups and clients that
the log names, not on its lines. Merging is exact: it raises `Unjoinable` where only a reader of all earlier
lines could know. `Known` is what follows from the whole file for the rows of one part.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kelpie.evidence.logs import LogReader, LogReading
from kelpie.evidence.logs.attribution import NAMES_ITS_GROUP, Groups
from kelpie.evidence.logs.hints import LogLayout
from kelpie.evidence.logs.pauses import BACK, Client, Returns, limits_of
from kelpie.evidence.logs.times import Float, Stamp
from kelpie.evidence.logs.zookeeper_consumer import Connectors
from kelpie.model.time import Instant
from kelpie.observations import EventKind, Setting
from kelpie.pipeline.sources.logs.reader import Row, RowReader

_NUMBERED = re.compile(r":(\d+)$")


class Unjoinable(Exception):
    """The file must be read as a whole."""


class Return(NamedTuple):
    """A line that shows a client back after a pause."""

    line: int
    stamp: Stamp | None


@dataclass(slots=True)
class Part:
    """What a reader knows after a part of a file, without its rows."""

    name: str
    lines: int
    heads: int
    unknown: int
    first: Stamp | None
    last: Stamp | None
    has_times: bool
    times_completed: bool
    offset: Mapping[Float, int]
    groups: Groups
    settings: Sequence[Setting]
    broker: dict[str, str] | None
    broker_source: str
    release: str
    brokers: Mapping[int, bool]
    """Brokers that came or went: whether each was gone at the end."""
    left_out: Counter[EventKind]
    """Events beyond the limit of their kind."""
    ungrouped: set[str]
    """Clients whose events do not name a group."""
    returns: Mapping[Client, Return]
    """The first return of each client."""
    late: set[Client]
    """Clients that polled too late."""
    away: set[Client]
    """Clients that polled too late and have not returned."""
    connectors: Connectors


@dataclass(frozen=True, slots=True)
class Known:
    """What a part of a log could not know by itself: from the whole file, and from all files."""

    lines_before: int = 0
    repeated: frozenset[int] = frozenset()
    """Brokers that an earlier part reported as gone: the first such event of this part is dropped."""
    offset: Mapping[Float, int] = field(default_factory=dict)
    """What has to be added to times."""
    of_client: Mapping[str, str] = field(default_factory=dict)
    """Groups by client."""
    only: tuple[str, str] | None = None
    """The group of all other clients, and how that is known."""
    limits: Mapping[str, str] = field(default_factory=dict)
    """max.poll.interval.ms by group."""
    later: Returns = field(default_factory=dict)
    """When clients return in later parts."""
    shift_ms: int | None = 0
    """Added to times of a log without a date. None: the date is not known."""
    named: str | None = None
    """The group that the name of the file names."""


@dataclass(frozen=True, slots=True)
class Merged:
    """A log whose parts were merged."""

    reading: LogReading
    known: Sequence[Known]
    """By part."""
    ungrouped: bool
    """Whether some events have a group that nothing in the file names."""


class Task(NamedTuple):
    """A range of a file; all of it, if it must be read line by line."""

    name: str
    path: str
    encoding: str
    layout: LogLayout | None = None
    piece: int = 0
    pieces: int = 1
    begins: int = 0
    ends: int = 0
    whole: bool = False


@dataclass(frozen=True, slots=True)
class LogTaskResult:
    """What a task read."""

    task: Task
    part: Part | None = None
    """None: the file must be read as a whole, or cannot be read."""
    rows: str = ""
    """The staged file with its rows."""
    count: int = 0
    reason: str = ""
    """Why the file cannot be used."""
    last_entry: int | None = None
    """Where the last entry of the file begins, if this is that entry and nothing else."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows that were read, and what they still lack."""

    source: str
    log: str
    rows: str
    count: int
    known: Known
    skip: int = 0
    """The number of first rows that the table has already."""


def part_of(reader: RowReader) -> Part:
    late = {_who(row) for row in reader.rows if row.kind is EventKind.POLL_INTERVAL_EXCEEDED}
    return Part(
        reader.reading.name,
        reader.reading.lines,
        reader.reading.heads,
        reader.reading.unknown,
        reader.first,
        reader.last(),
        bool(reader.last_time),
        reader.times_completed,
        reader.clock.offset,
        reader.groups,
        reader.settings,
        reader.broker,
        reader.broker_source,
        reader.release,
        {node: node in reader.gone for node in reader.changed_brokers},
        reader.left_out,
        {client_of(row) for row in reader.rows if is_ungrouped(row)},
        _returns(reader.rows),
        late,
        _away(reader.rows) if late else set(),
        reader.connectors,
    )


def merged(parts: Sequence[Part]) -> Merged:
    """Merges the parts of one file, in their order. Raises Unjoinable."""
    reader = _Joined(parts[0].name)
    before: list[int] = []
    repeated: list[frozenset[int]] = []
    for part in parts:
        before.append(reader.reading.lines)
        repeated.append(frozenset(node for node in part.brokers if node in reader.gone))
        reader.go_on(part)
    reader.finish()
    only, of_client = reader.groups.only(), reader.groups.of_client
    later = _later(reader, parts)
    known = [
        Known(
            before[place],
            repeated[place],
            reader.clock.offset,
            {client: of_client[client] for client in part.ungrouped if client in of_client},
            only if part.ungrouped else None,
            *later[place],
        )
        for place, part in enumerate(parts)
    ]
    ungrouped = only is None and any(not part.ungrouped <= of_client.keys() for part in parts)
    return Merged(reader.reading, known, ungrouped)


def folded(parts: Sequence[Part]) -> Part:
    """These parts as one part. Raises Unjoinable."""
    reader = _Joined(parts[0].name)
    away: set[Client] = set()
    for part in parts:
        reader.go_on(part)
        away = (away - part.returns.keys()) | part.away
    return Part(
        parts[0].name,
        reader.reading.lines,
        reader.reading.heads,
        reader.reading.unknown,
        reader.first,
        reader.last_stamp,
        any(part.has_times for part in parts),
        reader.times_completed,
        reader.clock.offset,
        reader.groups,
        list(dict.fromkeys(reader.settings)),
        reader.broker,
        reader.broker_source,
        reader.release,
        {node: node in reader.gone for part in parts for node in part.brokers},
        reader.left_out,
        set().union(*(part.ungrouped for part in parts)),
        {},
        set().union(*(part.late for part in parts)),
        away,
        reader.connectors,
    )


def client_of(row: Row) -> str:
    """The name by which its group is looked up."""
    return row.details.get("instance") or str(row.fields.get("client_id") or "")


def is_ungrouped(row: Row) -> bool:
    return "group" not in row.fields and not row.kind.value.startswith(NAMES_ITS_GROUP)


def _who(row: Row) -> Client:
    get = row.fields.get
    return get("group"), get("client_id"), row.details.get("instance")  # type: ignore[return-value]  # Names.


def _away(rows: Sequence[Row]) -> set[Client]:
    away: set[Client] = set()
    for row in rows:
        if row.kind is EventKind.POLL_INTERVAL_EXCEEDED:
            away.add(_who(row))
        elif row.kind in BACK:
            away.discard(_who(row))
    return away


def _returns(rows: Sequence[Row]) -> dict[Client, Return]:
    returns: dict[Client, Return] = {}
    for row in rows:
        if row.kind in BACK:
            returns.setdefault(_who(row), Return(row.line, row.stamp))
    return returns


def _later(reader: "_Joined", parts: Sequence[Part]) -> list[tuple[Mapping[str, str], Returns]]:
    """By part, for clients that polled too late in it: their limits, and when they return in later parts."""
    limits = limits_of(reader.settings)
    groups, only = reader.groups, reader.groups.only()

    def attributed(who: Client) -> Client:
        group, client, instance = who
        known = (group, "") if group is not None else groups.of(instance or client or "", only)
        return None if known is None else known[0], client, instance

    by_part: list[tuple[Mapping[str, str], Returns]] = []
    later: dict[Client, Instant | None] = {}
    for part in reversed(parts):
        late = {attributed(who)[0] for who in part.late}
        away = set(map(attributed, part.away))
        late_limits = {group: limits[group] for group in late if group in limits}
        by_part.append((late_limits, {who: later[who] for who in away if who in later}))
        # Sorted backwards: the first return in the file is the last one set.
        for who in sorted(part.returns, key=lambda who: -part.returns[who].line):
            stamp = part.returns[who].stamp
            at = None if stamp is None else stamp.at + reader.clock.offset.get(stamp.float, 0)
            later[attributed(who)] = at
    return by_part[::-1]


class _Joined(LogReader):
    """A reader that takes in whole parts instead of lines."""

    last_stamp: Stamp | None = None

    def last(self) -> Stamp | None:
        return self.last_stamp

    def go_on(self, part: Part) -> None:
        lines = self.reading.lines
        later = Groups()
        if part.groups.guessed is not None:
            group, where = part.groups.guessed
            later.guessed = group, _shifted(where, lines)
        later.sure = {group: _shifted(where, lines) for group, where in part.groups.sure.items()}
        later.of_client, later.instances = part.groups.of_client, part.groups.instances
        if not self.groups.go_on(later) or not self.connectors.go_on(part.connectors):
            raise Unjoinable(part.name)
        self.settings += [
            Setting(setting.of, setting.name, setting.value, _shifted(setting.source, lines))
            for setting in part.settings
        ]
        if self.broker is None and part.broker is not None:
            self.broker, self.broker_source = part.broker, _shifted(part.broker_source, lines)
        self.release = part.release or self.release
        self.first = self.first or part.first
        if part.has_times:
            self.last_stamp = part.last
        if not self.times_completed and part.times_completed:
            self.times_completed = True
            self.clock.offset = dict(part.offset)
        for node, is_gone in part.brokers.items():
            (self.gone.add if is_gone else self.gone.discard)(node)
        self.left_out += part.left_out
        self.reading.lines += part.lines
        self.reading.heads += part.heads
        self.reading.unknown += part.unknown


def _shifted(where: str, by: int) -> str:
    """A place that ends with a line number, moved by so many lines."""
    return _NUMBERED.sub(lambda match: f":{int(match[1]) + by}", where) if by else where
