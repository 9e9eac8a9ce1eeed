"""Parts of one log, read apart, put together again: what the reader of the whole file would know at its end.

A part is what a task hands to the driver beside its rows; it grows with the groups and clients that a log
names, not with its lines. Merging goes by the order of the parts, and is exact: `Unjoinable` is raised where
only a reader that has seen all lines before could tell. What follows for the rows of each part is `Known`.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kelpie.evidence.logs import LogReader, Reading
from kelpie.evidence.logs.attribution import OF_SERVERS, Groups
from kelpie.evidence.logs.pauses import BACK, Client, Returns, limits_of
from kelpie.evidence.logs.times import Float, Stamp
from kelpie.model.time import Instant
from kelpie.observations import EventKind, Setting
from kelpie.pipeline.sources.logs.reader import Row, RowReader

_NUMBERED = re.compile(r":(\d+)$")


class Unjoinable(Exception):
    """The file must be read in one go."""


@dataclass(slots=True)
class Part:
    """All that a reader knows when it has read a part of a file, but for its rows."""

    name: str
    lines: int
    heads: int
    unknown: int
    first: Stamp | None
    last: Stamp | None
    has_times: bool
    betrayed: bool
    offset: Mapping[Float, int]
    groups: Groups
    settings: Sequence[Setting]
    broker: dict[str, str] | None
    broker_source: str
    release: str
    brokers: Mapping[int, bool]
    """Those that came or went: whether they were gone in the end."""
    left_out: Counter[EventKind]
    """Events that were too many of their kind."""
    ungrouped: set[str]
    """Clients of events that do not say their group."""
    returns: Mapping[Client, tuple[int, Stamp | None]]
    """Who was back after a pause, by what its line says: the first such line, and when."""
    late: set[Client]
    """Who polled too late."""
    away: set[Client]
    """Who polled too late, and was not back so far."""


@dataclass(frozen=True, slots=True)
class Known:
    """What a part of a log could not know by itself, and what all files together told of it."""

    lines_before: int = 0
    repeated: frozenset[int] = frozenset()
    """Brokers that were known to be gone: this part's first word of it goes."""
    offset: Mapping[Float, int] = field(default_factory=dict)
    """What is missing in times."""
    of_client: Mapping[str, str] = field(default_factory=dict)
    """Groups by client."""
    only: tuple[str, str] | None = None
    """The group of all others, and what told it."""
    limits: Mapping[str, str] = field(default_factory=dict)
    """max.poll.interval.ms by group."""
    later: Returns = field(default_factory=dict)
    """Who is back first in later parts."""
    shift_ms: int | None = 0
    """From the times in a log without a date to the real ones. None: nobody knows them."""
    named: str | None = None
    """The group that the name of the file gives away."""


@dataclass(frozen=True, slots=True)
class Merged:
    """A log whose parts were put together."""

    reading: Reading
    known: Sequence[Known]
    """By part."""
    ungrouped: bool
    """Whether nothing in the file tells the group of some events."""


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
        reader.betrayed,
        reader.clock.offset,
        reader.groups,
        reader.settings,
        reader.broker,
        reader.broker_source,
        reader.release,
        {node: node in reader.gone for node in reader.brokers_told},
        reader.left_out,
        {client_of(row) for row in reader.rows if is_ungrouped(row)},
        _returns(reader.rows),
        late,
        _away(reader.rows) if late else set(),
    )


def merged(parts: Sequence[Part]) -> Merged:
    """Parts of one file, in their order. Raises Unjoinable."""
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
    """What a reader of all of these at once would know. Raises Unjoinable."""
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
        reader.betrayed,
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
    )


def client_of(row: Row) -> str:
    """By what its group is looked up."""
    return row.details.get("instance") or str(row.fields.get("client_id") or "")


def is_ungrouped(row: Row) -> bool:
    return "group" not in row.fields and not row.kind.value.startswith(OF_SERVERS)


def _who(row: Row) -> Client:
    get = row.fields.get
    return get("group"), get("client_id"), row.details.get("instance")  # type: ignore[return-value]  # Names.


def _away(rows: Sequence[Row]) -> set[Client]:
    found: set[Client] = set()
    for row in rows:
        if row.kind is EventKind.POLL_INTERVAL_EXCEEDED:
            found.add(_who(row))
        elif row.kind in BACK:
            found.discard(_who(row))
    return found


def _returns(rows: Sequence[Row]) -> dict[Client, tuple[int, Stamp | None]]:
    found: dict[Client, tuple[int, Stamp | None]] = {}
    for row in rows:
        if row.kind in BACK:
            found.setdefault(_who(row), (row.line, row.stamp))
    return found


def _later(reader: "_Joined", parts: Sequence[Part]) -> list[tuple[Mapping[str, str], Returns]]:
    """For those who polled too late in a part: their limits, and when they are back in later parts."""
    limits = limits_of(reader.settings)
    groups, only = reader.groups, reader.groups.only()

    def attributed(who: Client) -> Client:
        group, client, instance = who
        told = (group, "") if group is not None else groups.of(instance or client or "", only)
        return None if told is None else told[0], client, instance

    found: list[tuple[Mapping[str, str], Returns]] = []
    later: dict[Client, Instant | None] = {}
    for part in reversed(parts):
        late = {attributed(who)[0] for who in part.late}
        away = set(map(attributed, part.away))
        own = {group: limits[group] for group in late if group in limits}
        found.append((own, {who: later[who] for who in away if who in later}))
        # The last one that is noted is the first in the file.
        for who, (_, stamp) in sorted(part.returns.items(), key=lambda it: -it[1][0]):
            at = None if stamp is None else stamp.at + reader.clock.offset.get(stamp.float, 0)
            later[attributed(who)] = at
    return found[::-1]


class _Joined(LogReader):
    """A reader of whole parts."""

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
        if not self.groups.go_on(later):
            raise Unjoinable(part.name)
        self.settings += [
            Setting(it.of, it.name, it.value, _shifted(it.source, lines)) for it in part.settings
        ]
        if self.broker is None and part.broker is not None:
            self.broker, self.broker_source = part.broker, _shifted(part.broker_source, lines)
        self.release = part.release or self.release
        self.first = self.first or part.first
        if part.has_times:
            self.last_stamp = part.last
        if not self.betrayed and part.betrayed:
            self.betrayed = True
            self.clock.offset = dict(part.offset)
        for node, is_gone in part.brokers.items():
            (self.gone.add if is_gone else self.gone.discard)(node)
        self.left_out += part.left_out
        self.reading.lines += part.lines
        self.reading.heads += part.heads
        self.reading.unknown += part.unknown


def _shifted(where: str, by: int) -> str:
    """A place in a file, which ends with the number of a line, when `by` lines stand before."""
    return _NUMBERED.sub(lambda match: f":{int(match[1]) + by}", where) if by else where
