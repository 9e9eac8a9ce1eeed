"""Lines that contain any of some words, found in bytes without looking at all of them.

Wu and Manber's way: no word is shorter than `width`, so a window of that width is enough to see whether one
can begin here; the last three bytes of the window tell by how much it can go on. In a log, that is some four
bytes at a step. Which line a word is in is known from the places of all newlines.

Some lines say the same as others do, in a bracket that comes a thousand times: a word may be marked as one of
a bracket, and a line with a bracket that is known already (`Brackets`) is not told again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kelpie.pipeline.decoding.compiled import compiled
from kelpie.pipeline.decoding.compiled import word as eight_bytes

_BLOCK = 1 << 20
_GRAM = 3
_BITS = 15
_NEWLINE, _OPEN, _CLOSE = 10, 91, 93
_COLON, _COMMA, _SPACE = 58, 44, 32
_SEED = np.uint64(0x9E3779B97F4A7C15)


class Marked(NamedTuple):
    """A line of interest."""

    start: int
    end: int
    """Without its newline."""
    number: int
    """Counted from the first line of the text, which is 0."""
    why: int
    """The marks of words in it; 0 for a line that is long, or of JSON."""


class Brackets:
    """Brackets that are known, by their hashes; and marks that are of no interest any more."""

    def __init__(self) -> None:
        self.ignored = 0
        self.table = np.zeros(1 << 10, np.uint64)
        self._count = 0

    def add(self, text: bytes) -> None:
        """With its brackets."""
        if self._count * 2 >= len(self.table):
            old = self.table[self.table != 0]
            self.table = np.zeros(2 * len(self.table), np.uint64)
            for known in old:
                _insert(self.table, known)
        self._count += _learn(self.table, np.frombuffer(text, np.uint8))


@dataclass(frozen=True, slots=True)
class Words:
    width: int
    shifts: NDArray[np.uint8]
    buckets: NDArray[np.int32]
    """By gram: where the words whose window ends with it begin in `order`."""
    order: NDArray[np.int32]
    text: NDArray[np.uint8]
    starts: NDArray[np.int32]
    marks: NDArray[np.uint8]
    bracketed: int
    """The mark of words that stand in brackets."""
    sure: int
    """A line with this mark is of interest, whatever else is in it."""

    @classmethod
    def of(cls, words: Mapping[bytes, int], *, bracketed: int, sure: int) -> "Words":
        """Words of four bytes or more, without newlines, and their marks: bits of a byte."""
        width = min(map(len, words))
        assert width > _GRAM
        shifts = np.full(1 << _BITS, width - _GRAM + 1, np.uint8)
        by_gram: dict[int, list[int]] = {}
        for number, word in enumerate(words):
            for place in range(width - _GRAM + 1):
                gram = _gram_of(word[place : place + _GRAM])
                shifts[gram] = min(int(shifts[gram]), width - _GRAM - place)
            by_gram.setdefault(_gram_of(word[width - _GRAM : width]), []).append(number)
        counts = np.zeros((1 << _BITS) + 1, np.int32)
        for gram, numbers in by_gram.items():
            counts[gram + 1] = len(numbers)
        order = [number for gram in sorted(by_gram) for number in by_gram[gram]]
        return cls(
            width,
            shifts,
            np.cumsum(counts, dtype=np.int32),
            np.array(order, np.int32),
            np.frombuffer(b"".join(words), np.uint8),
            np.cumsum([0, *map(len, words)], dtype=np.int32),
            np.array(list(words.values()), np.uint8),
            bracketed,
            sure,
        )

    def lines(self, text: bytes, longest: int, known: Brackets) -> Iterator[Marked]:
        """Lines with words in them, those longer than `longest`, and those of JSON with escapes.

        While these are looked at, brackets may become known.
        """
        start = number = 0
        while start < len(text):
            end = text.find(b"\n", min(start + _BLOCK, len(text) - 1))
            end = len(text) if end < 0 else end + 1
            block = np.frombuffer(text, np.uint8, end - start, start)
            room = np.empty(len(block) + 1, np.int64)
            ends = room[: _newlines(block, room)]
            yield from self._of_block(text, block, ends, start, number, longest, known)
            number += len(ends)
            start = end

    def _of_block(
        self,
        text: bytes,
        block: NDArray[np.uint8],
        ends: NDArray[np.int64],
        start: int,
        number: int,
        longest: int,
        known: Brackets,
    ) -> Iterator[Marked]:
        starts = np.concatenate((np.zeros(1, np.int64), ends[:-1] + 1))
        marks = np.zeros(len(ends), np.uint8)
        _search(
            block,
            ends,
            marks,
            self.shifts,
            self.buckets,
            self.order,
            self.text,
            self.starts,
            self.marks,
            self.width,
            self.bracketed,
            self.sure,
            known.table,
        )
        marks &= np.uint8(255 & ~known.ignored)
        wanted = (marks != 0) | (ends - starts > longest)
        for at in self._escaped(text, start, start + len(block)):
            wanted[int(np.searchsorted(ends, at - start))] = True
        lines = np.flatnonzero(wanted)
        table = np.stack((starts[lines] + start, ends[lines] + start, lines + number, marks[lines]), axis=1)
        yield from map(Marked._make, table.tolist())

    @staticmethod
    def _escaped(text: bytes, start: int, end: int) -> Iterator[int]:
        """Lines that begin with a brace and have escapes: any word may hide there."""
        at = start if text.startswith(b"{", start) else text.find(b"\n{", start, end) + 1
        while at > 0 or (at == 0 and text.startswith(b"{")):
            close = text.find(b"\n", at, end)
            close = end if close < 0 else close
            if text.find(b"\\", at, close) >= 0:
                yield at
            if close >= end:
                return
            at = text.find(b"\n{", close, end) + 1
            if at == 0:
                return


def count_lines(text: bytes) -> int:
    """The last one may lack its end."""
    return text.count(b"\n") + (not text.endswith(b"\n") if text else 0)


def _gram_of(three: bytes) -> int:
    number = three[0] | three[1] << 8 | three[2] << 16
    return (number * 0x9E3779B1 & 0xFFFFFFFF) >> (32 - _BITS)


@compiled
def _newlines(text: Any, found: Any):  # type: ignore[no-untyped-def]
    """Where lines end: at newlines, and the last one with the text. Eight bytes at a time."""
    count = 0
    size = len(text)
    begin = np.int64(text.ctypes.data)
    ones, tops = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
    newlines = ones * np.uint64(_NEWLINE)
    at = 0
    while at < size:
        if at + 8 <= size:
            eight = eight_bytes(begin + at) ^ newlines
            if (eight - ones) & ~eight & tops == 0:
                at += 8
                continue
        for place in range(at, min(at + 8, size)):
            if text[place] == _NEWLINE:
                found[count] = place
                count += 1
        at += 8
    if size and text[size - 1] != _NEWLINE:
        found[count] = size
        count += 1
    return count


@compiled
def _hash(text: Any, start: Any, end: Any):  # type: ignore[no-untyped-def]
    value = _SEED
    for at in range(start, end):
        value = (value ^ np.uint64(text[at])) * np.uint64(0xFF51AFD7ED558CCD)
        value ^= value >> np.uint64(32)
    return value | np.uint64(1)


@compiled
def _insert(table: Any, value: Any):  # type: ignore[no-untyped-def]
    mask = np.uint64(len(table) - 1)
    at = (value >> np.uint64(7)) & mask
    while table[at] != 0:
        if table[at] == value:
            return 0
        at = (at + np.uint64(1)) & mask
    table[at] = value
    return 1


@compiled
def _learn(table: Any, text: Any):  # type: ignore[no-untyped-def]
    return _insert(table, _hash(text, 0, len(text)))


@compiled
def _is_known(table: Any, value: Any):  # type: ignore[no-untyped-def]
    mask = np.uint64(len(table) - 1)
    at = (value >> np.uint64(7)) & mask
    while table[at] != 0:
        if table[at] == value:
            return True
        at = (at + np.uint64(1)) & mask
    return False


@compiled
def _bracket(text: Any, word: Any, start: Any, end: Any):  # type: ignore[no-untyped-def]
    """The hash of the bracket that the word stands in; 0 for none."""
    first = word
    while first > start and text[first] != _OPEN:
        first -= 1
    last = word
    while last < end:
        if text[last] == _CLOSE and last + 1 < end:
            after = text[last + 1]
            if after in (_SPACE, _COLON, _COMMA):
                break
        last += 1
    if text[first] != _OPEN or last >= end:
        return np.uint64(0)
    return _hash(text, first, last + 1)


@compiled
def _search(  # type: ignore[no-untyped-def]
    text: Any,
    ends: Any,
    found: Any,
    shifts: Any,
    buckets: Any,
    order: Any,
    words: Any,
    starts: Any,
    marks: Any,
    width: Any,
    bracketed: Any,
    sure: Any,
    known: Any,
):
    size = np.uint64(len(text))
    window = np.uint64(width)
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    at = np.uint64(0)
    line = 0
    in_bracket = -1
    while at + window <= size:
        tail = at + window
        number = (
            np.uint32(text[tail - three])
            | np.uint32(text[tail - two]) << np.uint32(8)
            | np.uint32(text[tail - one]) << np.uint32(16)
        )
        gram = np.uint32(number * np.uint32(0x9E3779B1)) >> np.uint32(32 - _BITS)
        shift = shifts[gram]
        if shift != 0:
            at += np.uint64(shift)
            continue
        skip = False
        for place in range(buckets[gram], buckets[gram + 1]):
            word = order[place]
            first = starts[word]
            length = starts[word + 1] - first
            if at + np.uint64(length) > size:
                continue
            same = True
            for letter in range(length):
                if text[at + np.uint64(letter)] != words[first + letter]:
                    same = False
                    break
            if not same:
                continue
            while ends[line] < at:
                line += 1
            mark = marks[word]
            if mark == bracketed:
                if in_bracket == line:
                    mark = sure
                else:
                    in_bracket = line
                    begin = 0 if line == 0 else ends[line - 1] + 1
                    value = _bracket(text, np.int64(at), begin, ends[line])
                    if value != 0 and _is_known(known, value):
                        mark = 0
            found[line] |= np.uint8(mark)
            if mark & sure:
                skip = True
        if skip:
            at = np.uint64(ends[line] + 1)
        else:
            at += one
