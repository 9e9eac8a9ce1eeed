"""Python source under construction, and the run-time pieces that generated functions call."""

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

LONGEST_CACHED = 256
"""Packers of longer arrays are made when they are needed and not kept: a peer must not fill our memory."""


class Source:
    """Lines of one function, and the names it refers to."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}
        self._depth = 0
        self._serial = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1

    def fresh(self, stem: str) -> str:
        """A variable name that nothing else in this function has."""
        self._serial += 1
        return f"{stem}{self._serial}"

    def constant(self, stem: str, value: Any) -> str:
        """Makes `value` known to the function; equal values share a name."""
        for name, known in self.names.items():
            if known is value:
                return name
        name = self.fresh(stem)
        self.names[name] = value
        return name

    def function(self, name: str, about: str) -> Callable[..., Any]:
        """Compiles what was written. `about` is the file name that tracebacks and profilers show."""
        exec(compile("\n".join(self.lines) + "\n", f"<{about}>", "exec"), self.names)  # noqa: S102 - made here
        made: Callable[..., Any] = self.names[name]
        return made


class ArrayUnpackers(dict[int, Callable[[bytes, int], tuple[Any, ...]]]):
    """`unpack_from` for an array of so many values of one width."""

    def __init__(self, code: str) -> None:
        super().__init__()
        self._code = code

    def __missing__(self, count: int) -> Callable[[bytes, int], tuple[Any, ...]]:
        made = struct.Struct(">" + self._code * count).unpack_from
        if count <= LONGEST_CACHED:
            self[count] = made
        return made


class RunPackers(dict[tuple[int, ...], Callable[..., bytes]]):
    """`pack` for fixed values with arrays of fixed values between them, by the lengths of those arrays.

    A template like ("hiii", "i", "", "i", "x") alternates fixed codes and the code of one array's elements.
    The count before each array is passed in as bytes.
    """

    LIMIT = 4096

    def __init__(self, template: tuple[str, ...], compact: bool) -> None:
        super().__init__()
        self._template = template
        self._compact = compact

    def __missing__(self, lengths: tuple[int, ...]) -> Callable[..., bytes]:
        parts = [">", self._template[0]]
        for position, length in enumerate(lengths):
            width = len(uvarint(length + 1)) if self._compact else 4
            parts += [
                f"{width}s",
                self._template[2 * position + 1] * length,
                self._template[2 * position + 2],
            ]
        made = struct.Struct("".join(parts)).pack
        if sum(lengths) <= LONGEST_CACHED and len(self) < self.LIMIT:
            self[lengths] = made
        return made


def uvarint(value: int) -> bytes:
    """Seven bits a byte, lowest first, the high bit set on all but the last."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class Uvarints(dict[int, bytes]):
    """Remembers the encodings of small numbers."""

    def __missing__(self, value: int) -> bytes:
        made = uvarint(value)
        if value < 1 << 14:
            self[value] = made
        return made


UVARINTS = Uvarints()


class UnreadableBytes(Exception):
    """The fast decoder gives up; the explainer says why."""


class TooManyEntries(Exception):
    """The arrays of a message have more entries together than a decoder makes objects for."""


def read_uvarint(buffer: bytes, position: int) -> tuple[int, int]:
    """Reads an unsigned varint of up to 32 bits: its value, and the position behind it."""
    value = shift = 0
    while True:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                raise UnreadableBytes
            return value, position
        shift += 7
        if shift > 28:
            raise UnreadableBytes


def skip_tags(buffer: bytes, position: int) -> int:
    """Steps over tagged fields that this version does not know."""
    count, position = read_uvarint(buffer, position)
    for _ in range(count):
        _, position = read_uvarint(buffer, position)
        size, position = read_uvarint(buffer, position)
        position += size
        if position > len(buffer):
            raise UnreadableBytes
    return position
