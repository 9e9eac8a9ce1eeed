"""A range of a log to events: only the lines that may mean something are taken apart.

    bytes ─► lines with words of interest (compiled) ─► the entries that they are of ─► the evidence's reader

The result is the same as that of `kelpie.evidence.logs` for the whole file, and the same reader reads each
entry here. A range begins at the first line that begins an entry, and ends where the next range begins. What
a range cannot know is left open for `parts`: line numbers, the group of a client, the zone of times.
"""

import os
import re
from datetime import tzinfo
from functools import cache
from typing import BinaryIO

from kelpie.evidence.logs.entries import ALONE, begin
from kelpie.evidence.logs.layouts import Head, parse_head
from kelpie.evidence.logs.markers import BRACKETED, LONGEST_SURE, Why, markers
from kelpie.evidence.logs.matching import split_prefix
from kelpie.pipeline.decoding.marked_lines import Brackets, Lines, Marked, Words
from kelpie.pipeline.sources.logs.reader import (
    BOM,
    MOST_BYTES_OF_A_LINE,
    RowReader,
    Whole,
    decoded,
    end_of_line,
    read_beginning,
)
from kelpie.places import Place

_MOST_AT_ONCE = 1 << 28
_LAST_BYTES = 1 << 16
_LEVELS = b"(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL) "
_SURE_HEAD = re.compile(
    rb"\[[ -~]{4}-[ -~]{2}-[ -~]{15}\] " + _LEVELS + rb"|%[0-7]\|\d{10}\.\d{1,9}\|[A-Z_0-9]+\|[^|\n]*\| "
    rb"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})? " + _LEVELS
)
"""The usual layouts: a line like this certainly begins an entry, and need not be parsed to know that."""
_NO_HEADS = (b"\t", b" ", b"}", b"*", b"\n")
_MEANS, _MOMENT, _GUESS = int(Why.MEANS), int(Why.MOMENT), int(Why.GUESS)
_INSTANCE, _IN_BRACKET = int(Why.INSTANCE), int(Why.BRACKET)


@cache
def _words() -> Words:
    marks = {word.encode(): int(why) for word, why in markers().items()}
    return Words.of(marks, bracketed=_IN_BRACKET, sure=_MEANS)


def read_range(
    path: Place, name: str, zone: tzinfo | None, begins: int, ends: int, *, encoding: str = "utf-8"
) -> RowReader:
    """Reads the entries that begin in this range of bytes. Raises Whole, OSError."""
    if encoding not in ("utf-8", "utf-8-sig"):
        raise Whole
    with path.open("rb") as file:
        start = 0 if begins == 0 else _first_head(file, begins, ends)
        end = _first_head(file, min(ends, file.seek(0, os.SEEK_END)), None)
        if end - start > _MOST_AT_ONCE:
            raise Whole
        file.seek(start)
        text = file.read(end - start) if start < min(end, ends) else b""
    reader = RowReader(name, zone)
    offset = number = 0
    if begins == 0:
        text = text.removeprefix(BOM)
        offset, number = read_beginning(reader, text)
        reader.is_plain = offset < len(text)
    region = _Region(reader, text[offset:] if offset else text, number)
    reader.reading.lines = number + region.read()
    if reader.in_sequence:
        raise Whole
    return reader


class _Region:
    """Bytes that begin with the head of an entry. Gives the entries of interest to the reader."""

    def __init__(self, reader: RowReader, text: bytes, lines_before: int) -> None:
        self._reader, self._text, self._before = reader, text, lines_before
        self._next = 0
        """Where the next entry begins."""
        self._number = 0
        """The number of its line."""
        self._last_time = ""
        self._known = Brackets()
        """Brackets whose client and group the reader knows."""
        self._noted: set[str] = set()
        self._parsed: tuple[int, Head | None] = (-1, None)

    def read(self) -> int:
        """Reads all. Returns the number of lines."""
        reader = self._reader
        while reader.first is None and self._next < len(self._text):
            self._entry(self._next, self._number)
        lines = Lines(_words(), self._text, LONGEST_SURE, self._known)
        for line in lines:
            if line.start >= self._next and self._is_wanted(line):
                self._entry(*self._beginning_of(line))
        self._find_last_time()
        return lines.count

    def _is_wanted(self, line: Marked) -> bool:
        why, reader = line.why, self._reader
        if why == 0 or why & _MEANS:
            return True
        if why & _MOMENT and not reader.times_completed:
            return True
        if why & _GUESS and reader.groups.are_unknown:
            return True
        if why & _INSTANCE and self._text.startswith(b"%", line.start):
            names = self._text[line.start : line.end].split(b"|", 4)
            return len(names) < 5 or names[3].decode("utf-8", "replace") not in reader.groups.of_client
        return bool(why & _IN_BRACKET)

    def _beginning_of(self, line: Marked) -> tuple[int, int]:
        """Position and number of the line that begins the entry of this line."""
        start, number = line.start, line.number
        while start > self._next and not self._begins(start):
            start = self._line_before(start)
            number -= 1
        return start, number

    def _entry(self, start: int, number: int) -> None:
        """Gives the entry that begins here to the reader, with all its lines."""
        text = self._text
        end = end_of_line(text, start)
        line = decoded(text, start, end)
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
            end = end_of_line(text, at)
            entry.add(decoded(text, at, end))
            at = end + 1
            number += 1
        self._next, self._number = min(at, len(text)), number
        self._last_time = entry.time
        reader = self._reader
        reader.entry(entry)
        ignored = 0 if reader.groups.are_unknown else _GUESS
        self._known.ignored = ignored | (_MOMENT if reader.times_completed else 0)
        if head is not None and not head.facility and BRACKETED in head.message:
            self._note_bracket(head)

    def _note_bracket(self, head: Head) -> None:
        who, _ = split_prefix(head.message)
        if who not in self._noted:
            self._noted.add(who)
            if who.count(BRACKETED) == 1 and "[" not in who:
                self._known.add(f"[{who}]".encode())

    def _begins(self, start: int) -> bool:
        if self._text.startswith(_NO_HEADS, start):
            return False
        if _SURE_HEAD.match(self._text, start) is not None:
            return True
        line = decoded(self._text, start, end_of_line(self._text, start))
        return self._head(start, line) is not None or line.startswith(ALONE)

    def _head(self, start: int, line: str) -> Head | None:
        if self._parsed[0] != start:
            self._parsed = start, parse_head(line)
        return self._parsed[1]

    def _time_before(self, start: int) -> str:
        """The time of the entry before: lines that tools print into a log have no time."""
        while start > self._next:
            start = self._line_before(start)
            head = parse_head(decoded(self._text, start, end_of_line(self._text, start)))
            if head is not None:
                return head.time
        return self._last_time

    def _find_last_time(self) -> None:
        start = len(self._text)
        while start > self._next:
            start = self._line_before(start)
            head = parse_head(decoded(self._text, start, end_of_line(self._text, start)))
            if head is not None and head.time:
                self._reader.last_time = head.time
                return

    def _line_before(self, start: int) -> int:
        return self._text.rfind(b"\n", 0, start - 1) + 1


def _first_head(file: BinaryIO, at: int, limit: int | None) -> int:
    """Position of the first line from `at` on that begins an entry; the end if there is none."""
    file.seek(max(0, at - 1))
    if at > 0:
        _pass_line(file)
    while limit is None or file.tell() < limit:
        start = file.tell()
        beginning = file.readline(MOST_BYTES_OF_A_LINE)
        if not beginning:
            return start
        if not beginning.endswith(b"\n"):
            _pass_line(file)
        beginning = beginning.removesuffix(b"\n")
        if parse_head(decoded(beginning, 0, len(beginning))) is not None:
            return start
    return file.tell()


def _pass_line(file: BinaryIO) -> None:
    while (part := file.readline(MOST_BYTES_OF_A_LINE)) and not part.endswith(b"\n"):
        pass


def last_head(path: Place, begins: int, ends: int) -> int | None:
    """Position of the last entry that begins in this range. Raises OSError."""
    with path.open("rb") as file:
        start = max(begins, ends - _LAST_BYTES)
        file.seek(start)
        text = file.read(ends - start)
    line = len(text)
    while line > 0:
        line = text.rfind(b"\n", 0, line - 1) + 1
        if line == 0 and start > begins:
            return None  # The line may have begun before.
        if parse_head(decoded(text, line, end_of_line(text, line))) is not None:
            return start + line
    return None
