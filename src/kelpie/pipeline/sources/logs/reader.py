"""The evidence's reader of logs, for a part of a file: rows in place of events, and some things left open.

It reads entries one by one, whoever finds them: `ranges` hands over those of a range that may mean
something; `read_whole` all of a file that must be read from its beginning, line by line. Those are logs
without a date, and those that containers wrapped.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import tzinfo
from pathlib import Path

from kelpie.evidence.logs import LogReader
from kelpie.evidence.logs.entries import Entries, Entry
from kelpie.evidence.logs.hints import Layout
from kelpie.evidence.logs.java_broker import GONE
from kelpie.evidence.logs.layouts import parse_head
from kelpie.evidence.logs.lines import LARGEST_LINE, read_lines
from kelpie.evidence.logs.matching import Found
from kelpie.evidence.logs.reading import MOST_EVENTS_OF_A_KIND, quoted
from kelpie.evidence.logs.times import Stamp
from kelpie.observations import EventKind

BOM = b"\xef\xbb\xbf"
MOST_BYTES_OF_A_LINE = 4 * LARGEST_LINE + 4
_BEGINNING = 1 << 20
_UNBOUNDED = 1 << 62


class Whole(Exception):
    """This log cannot be read in parts, or without its lines that mean nothing."""


@dataclass(slots=True)
class Row:
    """An event, before it is known which group it is of, if it does not say."""

    stamp: Stamp | None
    line: int
    level: str
    kind: EventKind
    fields: dict[str, str | int]
    details: dict[str, str]
    text: str
    part: int
    once: int | None
    """A broker that is gone, if nothing in this range says so before: perhaps an earlier range does."""


class RowReader(LogReader):
    """The evidence's reader, with rows in place of events; what only a whole file can tell is left open."""

    def __init__(self, name: str, zone: tzinfo | None, *, most: int = _UNBOUNDED) -> None:
        super().__init__(name, zone, most=most)
        self.rows: list[Row] = []
        self.brokers_told: set[int] = set()
        """Brokers that came or went in this part."""
        self.is_plain = True
        """Whether lines stand for themselves in what follows, so that it can be read apart."""
        self._once: int | None = None

    def _repeats(self, found: Found) -> bool:
        self._once = None
        node = found.fields.get("node")
        if found.kind in (EventKind.BROKER_FENCED, EventKind.BROKER_UNFENCED) and isinstance(node, int):
            gone = found.kind is EventKind.BROKER_FENCED and found.fields.get("reason") == GONE
            if gone and node not in self.brokers_told:
                self._once = node
            self.brokers_told.add(node)
        return super()._repeats(found)

    def _keep(
        self,
        kind: EventKind,
        fields: dict[str, str | int],
        details: dict[str, str],
        entry: Entry,
        stamp: Stamp | None,
    ) -> None:
        number, rows = entry.number, self.rows
        part = rows[-1].part + 1 if rows and rows[-1].line == number else 0
        level = entry.head.level
        rows.append(Row(stamp, number, level, kind, fields, details, quoted(entry), part, self._once))


def read_whole(
    path: Path, name: str, zone: tzinfo | None, encoding: str, layout: Layout | None = None
) -> RowReader:
    """All of a file, line by line; only so many events of a kind, for they must fit into memory."""
    reader = RowReader(name, zone, most=MOST_EVENTS_OF_A_KIND)
    entries = Entries(layout)
    for entry in entries.read(read_lines(path, encoding)):
        reader.entry(entry)
    reader.reading.lines, reader.reading.heads = entries.lines, entries.heads
    return reader


def read_beginning(reader: RowReader, text: bytes) -> tuple[int, int]:
    """Every line, until it is sure that lines stand for themselves; where that is, after how many lines.

    Raises Whole.
    """
    entries = Entries()
    at = number = 0

    def lines() -> Iterator[tuple[int, str]]:
        nonlocal at, number
        while at < len(text):
            end = end_of_line(text, at)
            line = decoded(text, at, end)
            if entries.is_plain and parse_head(line) is not None:
                return
            number += 1
            at = end + 1
            yield number, line

    for entry in entries.read_numbered(lines()):
        if entries.wrapper:
            raise Whole
        reader.entry(entry)
    reader.reading.heads = entries.heads
    return min(at, len(text)), number


def can_be_split(path: Path, encoding: str) -> bool:
    """Whether a log can be read in ranges, as far as its beginning tells."""
    if encoding not in ("utf-8", "utf-8-sig"):
        return False
    with path.open("rb") as file:
        beginning = file.read(_BEGINNING).removeprefix(BOM)
    reader = RowReader("", None)
    try:
        offset, _ = read_beginning(reader, beginning)
    except Whole:
        return False
    return offset < len(beginning) and not reader.in_sequence


def end_of_line(text: bytes, start: int) -> int:
    end = text.find(b"\n", start)
    return len(text) if end < 0 else end


def decoded(text: bytes, start: int, end: int) -> str:
    """As `lines.read_lines` hands a line out."""
    if end - start > MOST_BYTES_OF_A_LINE:
        end = start + MOST_BYTES_OF_A_LINE
    line = text[start:end].decode("utf-8", "replace")
    return line[:LARGEST_LINE].rstrip("\r\n")
