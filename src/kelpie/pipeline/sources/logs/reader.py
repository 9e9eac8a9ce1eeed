"""The reader of `evidence.logs` for a part of a file: makes rows, and leaves open what a whole file tells.

It reads entry by entry. `ranges` gives it the entries of a range that may mean something; `read_whole` gives
it all entries of a file that must be read line by line: a log without a date, or one in a container's format.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import tzinfo

from kelpie.evidence.logs import LogReader
from kelpie.evidence.logs.entries import Entries, LogEntry
from kelpie.evidence.logs.hints import LogLayout
from kelpie.evidence.logs.java_broker import GONE
from kelpie.evidence.logs.layouts import parse_head
from kelpie.evidence.logs.lines import LARGEST_LINE, read_lines
from kelpie.evidence.logs.log_reader import MOST_EVENTS_OF_A_KIND, quoted
from kelpie.evidence.logs.matching import Fields, Meaning
from kelpie.evidence.logs.times import Stamp
from kelpie.observations import EventKind
from kelpie.places import Place

BOM = b"\xef\xbb\xbf"
MOST_BYTES_OF_A_LINE = 4 * LARGEST_LINE + 4
_BEGINNING = 1 << 20
_UNBOUNDED = 1 << 62


class Whole(Exception):
    """This log cannot be read in ranges: it needs all lines, from the first on."""


@dataclass(slots=True)
class Row:
    """An event whose group may not be known yet."""

    stamp: Stamp | None
    line: int
    level: str
    kind: EventKind
    fields: Fields
    details: dict[str, str]
    text: str
    part: int
    once: int | None
    """The broker that is gone, in the first such event of a range; an earlier range may have one."""


class RowReader(LogReader):
    """Makes rows instead of events, and leaves open what only a whole file tells."""

    def __init__(self, name: str, zone: tzinfo | None, *, most: int = _UNBOUNDED) -> None:
        super().__init__(name, zone, most=most)
        self.rows: list[Row] = []
        self.changed_brokers: set[int] = set()
        """Brokers that came or went in this part."""
        self.is_plain = True
        """Whether each later line can be read without the lines before it."""
        self._once: int | None = None

    def _repeats(self, meaning: Meaning) -> bool:
        self._once = None
        node = meaning.fields.get("node")
        if meaning.kind in (EventKind.BROKER_FENCED, EventKind.BROKER_UNFENCED) and isinstance(node, int):
            gone = meaning.kind is EventKind.BROKER_FENCED and meaning.fields.get("reason") == GONE
            if gone and node not in self.changed_brokers:
                self._once = node
            self.changed_brokers.add(node)
        return super()._repeats(meaning)

    def _keep(
        self, kind: EventKind, fields: Fields, details: dict[str, str], entry: LogEntry, stamp: Stamp | None
    ) -> None:
        number, rows = entry.number, self.rows
        part = rows[-1].part + 1 if rows and rows[-1].line == number else 0
        level = entry.head.level
        rows.append(Row(stamp, number, level, kind, fields, details, quoted(entry), part, self._once))


def read_whole(
    path: Place, name: str, zone: tzinfo | None, encoding: str, layout: LogLayout | None = None
) -> RowReader:
    """Reads a whole file, line by line. Events of each kind are limited, for they must fit into memory."""
    reader = RowReader(name, zone, most=MOST_EVENTS_OF_A_KIND)
    entries = Entries(layout)
    for entry in entries.read(read_lines(path, encoding)):
        reader.entry(entry)
    reader.reading.lines, reader.reading.heads = entries.lines, entries.heads
    return reader


def read_beginning(reader: RowReader, text: bytes) -> tuple[int, int]:
    """Reads all lines up to where ranges can be read. Returns that position and its line number.

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


def can_be_split(path: Place, encoding: str) -> bool:
    """Whether a log can be read in ranges, judging by its beginning."""
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
    """A line as `lines.read_lines` yields it."""
    if end - start > MOST_BYTES_OF_A_LINE:
        end = start + MOST_BYTES_OF_A_LINE
    line = text[start:end].decode("utf-8", "replace")
    return line[:LARGEST_LINE].rstrip("\r\n")
