"""A log, or a range of one, to events: only the lines that may mean something are taken apart.

    bytes ─► lines with words of interest (compiled) ─► the entries that they are of ─► the evidence's reader

What comes out is what `kelpie.evidence.logs` says of the whole file; that reader is the judge, and it reads
every entry that reaches it here. A range begins at the first line that begins an entry, and ends where the
next range begins. What a range cannot know is left open and told with it: numbers of lines, which group a
client belongs to, the zone of times (see `log_parts`).

Some logs must be read from their beginning, line by line: those without a date, those that containers
wrapped. `Whole` says so.
"""

import gc
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import tzinfo
from functools import cache
from pathlib import Path
from typing import BinaryIO

from kelpie.evidence.logs import LogReader
from kelpie.evidence.logs.entries import ALONE, Entries, Entry, begin
from kelpie.evidence.logs.java_broker import GONE
from kelpie.evidence.logs.layouts import Head, parse_head
from kelpie.evidence.logs.lines import LARGEST_LINE
from kelpie.evidence.logs.markers import BRACKETED, LONGEST_SURE, Why, markers
from kelpie.evidence.logs.matching import Found, split_prefix
from kelpie.evidence.logs.reading import quoted
from kelpie.evidence.logs.times import Stamp
from kelpie.observations import EventKind
from kelpie.pipeline.decoding.marked_lines import Brackets, Marked, Words, count_lines

RANGE_BYTES = 32 << 20
_MOST_AT_ONCE = 8 * RANGE_BYTES
_BEGINNING = 1 << 20
_UNBOUNDED = 1 << 62
_BOM = b"\xef\xbb\xbf"
_MOST_BYTES_OF_A_LINE = 4 * LARGEST_LINE + 4
_LEVELS = b"(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL) "
_SURE_HEAD = re.compile(
    rb"\[[ -~]{4}-[ -~]{2}-[ -~]{15}\] " + _LEVELS + rb"|%[0-7]\|\d{10}\.\d{1,9}\|[A-Z_0-9]+\|[^|\n]*\| "
    rb"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})? " + _LEVELS
)
"""The usual layouts: a line like this has a head, and nobody needs to take it apart to know."""
_MEANS, _MOMENT, _GUESS = int(Why.MEANS), int(Why.MOMENT), int(Why.GUESS)
_INSTANCE, _IN_BRACKET = int(Why.INSTANCE), int(Why.BRACKET)
_NUMBERED = re.compile(r":(\d+)$")


class Whole(Exception):
    """This log cannot be read in parts, or without its lines that mean nothing."""


@dataclass(slots=True)
class Row:
    """An event, before it is known which group it is of, if it does not say."""

    stamp: Stamp | None
    line: int
    kind: EventKind
    fields: dict[str, str | int]
    details: dict[str, str]
    text: str
    part: int
    once: int | None
    """A broker that is gone, if nothing in this range says so before: perhaps an earlier range does."""


@cache
def _words() -> Words:
    marks = {word.encode(): int(why) for word, why in markers().items()}
    return Words.of(marks, bracketed=_IN_BRACKET, sure=_MEANS)


class RangeReader(LogReader):
    """The evidence's reader, with rows in place of events; what only a whole file can tell is left open."""

    def __init__(self, name: str, zone: tzinfo | None) -> None:
        super().__init__(name, zone, most=_UNBOUNDED)
        self.rows: list[Row] = []
        self.brokers_told: set[int] = set()
        """Brokers that came or went in this range."""
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
        number = entry.number
        part = self.rows[-1].part + 1 if self.rows and self.rows[-1].line == number else 0
        self.rows.append(Row(stamp, number, kind, fields, details, quoted(entry), part, self._once))


def read_range(
    path: Path, name: str, zone: tzinfo | None, begins: int, ends: int, *, encoding: str = "utf-8"
) -> RangeReader:
    """What the entries say that begin in this range of bytes. Raises Whole, OSError."""
    if encoding not in ("utf-8", "utf-8-sig"):
        raise Whole
    with path.open("rb") as file:
        start = 0 if begins == 0 else _first_head(file, begins, ends)
        end = _first_head(file, min(ends, os.fstat(file.fileno()).st_size), None)
        if end - start > _MOST_AT_ONCE:
            raise Whole
        file.seek(start)
        text = file.read(end - start) if start < min(end, ends) else b""
    reader = RangeReader(name, zone)
    if begins == 0:
        text = text.removeprefix(_BOM)
        offset, number = _read_beginning(reader, text)
    else:
        offset, number = 0, 0
    _Region(reader, text[offset:] if offset else text, number).read()
    reader.reading.lines = count_lines(text)
    if reader.in_sequence:
        raise Whole
    return reader


@contextmanager
def without_collector() -> Iterator[None]:
    """For whoever reads many ranges: rows have no cycles, and looking for some takes long."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def can_be_split(path: Path, encoding: str) -> bool:
    """Whether a log can be read in ranges, as far as its beginning tells."""
    if encoding not in ("utf-8", "utf-8-sig"):
        return False
    with path.open("rb") as file:
        beginning = file.read(_BEGINNING).removeprefix(_BOM)
    reader = RangeReader("", None)
    try:
        offset, _ = _read_beginning(reader, beginning)
    except Whole:
        return False
    return offset < len(beginning) and not reader.in_sequence


def shifted(where: str, by: int) -> str:
    """A place in a file, which ends with the number of a line, when `by` lines stand before."""
    return _NUMBERED.sub(lambda match: f":{int(match[1]) + by}", where)


def _read_beginning(reader: RangeReader, text: bytes) -> tuple[int, int]:
    """Every line, until it is sure that lines stand for themselves; where that is, after how many lines."""
    entries = Entries()
    at = number = 0

    def lines() -> Iterator[tuple[int, str]]:
        nonlocal at, number
        while at < len(text):
            end = _end_of_line(text, at)
            line = _decoded(text, at, end)
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


class _Region:
    """Bytes that begin with the head of an entry; entries are given to the reader, those of interest only."""

    def __init__(self, reader: RangeReader, text: bytes, lines_before: int) -> None:
        self._reader, self._text, self._before = reader, text, lines_before
        self._next = 0
        """Where the first entry begins that was not looked at."""
        self._number = 0
        """And the number of its line."""
        self._last_time = ""
        self._known = Brackets()
        """Those that name a client and its group, both noted."""
        self._noted: set[str] = set()
        self._parsed: tuple[int, Head | None] = (-1, None)

    def read(self) -> None:
        reader = self._reader
        while reader.first is None and self._next < len(self._text):
            self._entry(self._next, self._number)
        for line in _words().lines(self._text, LONGEST_SURE, self._known):
            if line.start >= self._next and self._is_wanted(line):
                self._entry(*self._beginning_of(line))
        self._find_last_time()

    def _is_wanted(self, line: Marked) -> bool:
        why, reader = line.why, self._reader
        if why == 0 or why & _MEANS:
            return True
        if why & _MOMENT and not reader.betrayed:
            return True
        if why & _GUESS and reader.groups.are_unknown:
            return True
        if why & _INSTANCE and self._text.startswith(b"%", line.start):
            names = self._text[line.start : line.end].split(b"|", 4)
            return len(names) < 5 or names[3].decode("utf-8", "replace") not in reader.groups.of_client
        return bool(why & _IN_BRACKET)

    def _beginning_of(self, line: Marked) -> tuple[int, int]:
        """The line that begins the entry which this line is of: where it is, and its number."""
        start, number = line.start, line.number
        while start > self._next and not self._begins(start):
            start = self._line_before(start)
            number -= 1
        return start, number

    def _entry(self, start: int, number: int) -> None:
        """Give this entry to the reader, with all its lines."""
        text = self._text
        end = _end_of_line(text, start)
        line = _decoded(text, start, end)
        head = self._head(start, line)
        if head is None:
            time = self._time_before(start)
            entry = begin(self._before + number + 1, line, Head("", "", "", line), time)
        else:
            self._reader.reading.heads += 1
            entry = begin(self._before + number + 1, line, head, head.time)
        at = end + 1
        number += 1
        while at < len(text) and not self._begins(at):
            end = _end_of_line(text, at)
            entry.add(_decoded(text, at, end))
            at = end + 1
            number += 1
        self._next, self._number = min(at, len(text)), number
        self._last_time = entry.time
        reader = self._reader
        reader.entry(entry)
        known_by_now = (0 if reader.groups.are_unknown else _GUESS) | (_MOMENT if reader.betrayed else 0)
        self._known.ignored = known_by_now
        if head is not None and not head.facility and BRACKETED in head.message:
            self._note_bracket(head)

    def _note_bracket(self, head: Head) -> None:
        who, _ = split_prefix(head.message)
        if who not in self._noted:
            self._noted.add(who)
            if who.count(BRACKETED) == 1 and "[" not in who:
                self._known.add(f"[{who}]".encode())

    def _begins(self, start: int) -> bool:
        if _SURE_HEAD.match(self._text, start) is not None:
            return True
        if self._text[start : start + 1] in (b" ", b"\t", b"}", b"*", b"\n", b""):
            return False
        line = _decoded(self._text, start, _end_of_line(self._text, start))
        return self._head(start, line) is not None or line.startswith(ALONE)

    def _head(self, start: int, line: str) -> Head | None:
        if self._parsed[0] != start:
            self._parsed = start, parse_head(line)
        return self._parsed[1]

    def _time_before(self, start: int) -> str:
        """The time of the entry before: what tools print among the lines of a log has none of its own."""
        while start > self._next:
            start = self._line_before(start)
            head = parse_head(_decoded(self._text, start, _end_of_line(self._text, start)))
            if head is not None:
                return head.time
        return self._last_time

    def _find_last_time(self) -> None:
        start = len(self._text)
        while start > self._next:
            start = self._line_before(start)
            head = parse_head(_decoded(self._text, start, _end_of_line(self._text, start)))
            if head is not None and head.time:
                self._reader.last_time = head.time
                return

    def _line_before(self, start: int) -> int:
        return self._text.rfind(b"\n", 0, start - 1) + 1


def _end_of_line(text: bytes, start: int) -> int:
    end = text.find(b"\n", start)
    return len(text) if end < 0 else end


def _decoded(text: bytes, start: int, end: int) -> str:
    """As `lines.read_lines` hands a line out."""
    if end - start > _MOST_BYTES_OF_A_LINE:
        end = start + _MOST_BYTES_OF_A_LINE
    line = text[start:end].decode("utf-8", "replace")
    return line[:LARGEST_LINE].rstrip("\r\n")


def _first_head(file: BinaryIO, at: int, limit: int | None) -> int:
    """Where the first line begins, at or behind this place, that begins an entry; the end, if none does."""
    file.seek(max(0, at - 1))
    if at > 0:
        _pass_line(file)
    while limit is None or file.tell() < limit:
        start = file.tell()
        beginning = file.readline(_MOST_BYTES_OF_A_LINE)
        if not beginning:
            return start
        if not beginning.endswith(b"\n"):
            _pass_line(file)
        beginning = beginning.removesuffix(b"\n")
        if parse_head(_decoded(beginning, 0, len(beginning))) is not None:
            return start
    return file.tell()


def _pass_line(file: BinaryIO) -> None:
    while (part := file.readline(_MOST_BYTES_OF_A_LINE)) and not part.endswith(b"\n"):
        pass
