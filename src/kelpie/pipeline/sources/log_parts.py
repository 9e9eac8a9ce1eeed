"""Ranges of one log, read apart, put together again: what the reader of the whole file would know at its end.

A part is plain data, so that a task can hand it to the driver; it grows with the groups and clients that a
log names, not with its lines. Merging goes by the order of the ranges, and is exact: `Unjoinable` is raised
where only a reader that has seen all lines before could tell.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kelpie.evidence.logs import LogReader
from kelpie.evidence.logs.attribution import Groups
from kelpie.evidence.logs.times import Float, Stamp
from kelpie.observations import EventKind, Setting
from kelpie.pipeline.sources.log_ranges import RangeReader, Row, shifted

_SERVER = ("broker: ", "controller: ")

Part = dict[str, Any]


class Unjoinable(Exception):
    """The file must be read in one go."""


@dataclass(slots=True)
class Merged:
    """A log whose parts were put together; its rows still have what follows from that to be set right."""

    reader: "_Joined"
    lines_before: list[int] = field(default_factory=list)
    """By part."""
    repeated: list[tuple[int, int]] = field(default_factory=list)
    """Part and broker: that the broker is gone was known before, so this part's first word of it goes."""
    zone_ms: int = 0
    """What is missing in times without a zone."""
    has_pauses: bool = False
    ungrouped_clients: set[str] = field(default_factory=set)
    """Of events that do not say their group."""
    ungrouped: bool = False
    """Whether nothing tells the group of some of these."""


def part_of(reader: RangeReader) -> Part:
    groups = reader.groups
    return {
        "name": reader.reading.name,
        "lines": reader.reading.lines,
        "heads": reader.reading.heads,
        "unknown": reader.reading.unknown,
        "first": reader.first,
        "last": reader.last() if reader.last_time else False,
        "betrayed": reader.betrayed,
        "offset": {str(int(it)): by for it, by in reader.clock.offset.items()},
        "guessed": groups.guessed,
        "sure": groups.sure,
        "of_client": groups.of_client,
        "instances": sorted(groups.instances),
        "settings": [(it.of, it.name, it.value, it.source) for it in reader.settings],
        "broker": reader.broker,
        "broker_source": reader.broker_source,
        "release": reader.release,
        "brokers": {str(node): node in reader.gone for node in reader.brokers_told},
        "ungrouped": sorted({client_of(row) for row in reader.rows if is_ungrouped(row)}),
        "has_pauses": any(row.kind is EventKind.POLL_INTERVAL_EXCEEDED for row in reader.rows),
    }


def merged(parts: Sequence[Part]) -> Merged:
    """Parts of one file, in their order. Raises Unjoinable."""
    reader = _Joined(parts[0]["name"])
    found = Merged(reader)
    lines = 0
    gone: set[int] = set()
    for index, part in enumerate(parts):
        found.lines_before.append(lines)
        found.repeated += [(index, int(node)) for node in part["brokers"] if int(node) in gone]
        for node, is_gone in part["brokers"].items():
            (gone.add if is_gone else gone.discard)(int(node))
        _go_on(reader, part, lines)
        found.has_pauses |= part["has_pauses"]
        lines += part["lines"]
    reader.reading.lines = lines
    reader.finish()
    found.zone_ms = reader.clock.offset.get(Float.ZONE, 0)
    found.ungrouped_clients = {client for part in parts for client in part["ungrouped"]}
    known = reader.groups.of_client
    found.ungrouped = reader.groups.only() is None and not found.ungrouped_clients <= set(known)
    return found


def client_of(row: Row) -> str:
    """By what its group is looked up."""
    return row.details.get("instance") or str(row.fields.get("client_id") or "")


def is_ungrouped(row: Row) -> bool:
    return "group" not in row.fields and not row.kind.value.startswith(_SERVER)


class _Joined(LogReader):
    last_stamp: Stamp | None = None

    def last(self) -> Stamp | None:
        return self.last_stamp


def _stamp(data: Sequence[int] | None) -> Stamp | None:
    return None if data is None else Stamp(data[0], Float(data[1]))


def _go_on(reader: _Joined, part: Part, lines: int) -> None:
    later = Groups()
    if part["guessed"] is not None:
        group, where = part["guessed"]
        later.guessed = group, shifted(where, lines)
    later.sure = {group: shifted(where, lines) for group, where in part["sure"].items()}
    later.of_client, later.instances = part["of_client"], set(part["instances"])
    if not reader.groups.go_on(later):
        raise Unjoinable(part["name"])
    reader.settings += [
        Setting(of, name, value, shifted(source, lines)) for of, name, value, source in part["settings"]
    ]
    if reader.broker is None and part["broker"] is not None:
        reader.broker, reader.broker_source = part["broker"], shifted(part["broker_source"], lines)
    reader.release = part["release"] or reader.release
    reader.first = reader.first or _stamp(part["first"])
    if part["last"] is not False:
        reader.last_stamp = _stamp(part["last"])
    if not reader.betrayed and part["betrayed"]:
        reader.betrayed = True
        reader.clock.offset = {Float(int(it)): by for it, by in part["offset"].items()}
    reader.reading.heads += part["heads"]
    reader.reading.unknown += part["unknown"]
