"""From a layout to a function `(buffer, position) -> (message, position)`.

How it is fast: neighbouring fixed-width fields, and the length in front of the next string or array, are
read by one `unpack_from`; arrays are loops in the same function, so an element costs no call; objects are
made without `__init__`.

How it is safe: a position only ever grows, counts are checked against the bytes that are left, and reading
past the end raises or leaves the position behind the end, which the caller checks once. The explainer
(`kelpie.wire.compiler.explain`), which reads the same layout slowly, then says what is wrong. An entry of one
byte can become an object of some hundred, so the entries of all arrays together have a limit, too.
"""

from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Any

from kelpie.wire.compiler.layout import ArrayOf, Blob, FieldAt, Kind, Layout, StructOf, Text, least_size, part
from kelpie.wire.compiler.source import (
    ArrayUnpackers,
    Source,
    TooManyEntries,
    UnreadableBytes,
    read_uvarint,
    skip_tags,
)
from kelpie.wire.schema import Fixed

Decoder = Callable[[bytes, int], tuple[Any, int]]


MOST_ENTRIES = 3_000_000
"""Of all arrays of a message. One answer may hold 2,000 groups with 1,000 partitions each."""


def compile_decoder(layout: Layout, *, lenient: bool = False, counted: bool = False) -> Decoder:
    """`lenient`: a string that is not UTF-8 is read with replacement characters, and does not raise.

    `counted`: more than MOST_ENTRIES entries raise TooManyEntries. A message of fewer bytes cannot have them.
    """
    return _DecoderWriter(layout.version, layout.flexible, lenient, counted).whole(layout)


class _DecoderWriter:
    def __init__(self, version: int, flexible: bool, lenient: bool, counted: bool) -> None:
        self._version = version
        self._flexible = flexible
        self._counted = counted
        self._decode = 'decode("utf-8", "replace")' if lenient else "decode()"
        self._source = Source()
        self._source.names.update(
            new=object.__new__,
            read_uvarint=read_uvarint,
            skip_tags=skip_tags,
            UnreadableBytes=UnreadableBytes,
            TooManyEntries=TooManyEntries,
        )
        self._run: list[tuple[str, int, str]] = []

    def whole(self, layout: Layout) -> Decoder:
        source = self._source
        with source.block("def decode(b, p):"):
            source.line("end = len(b)")
            if self._counted:
                source.line(f"left = {MOST_ENTRIES}")
            self._struct(layout, "m")
            source.line("return m, p")
        return source.function("decode", f"decode {layout.cls.__name__} v{layout.version}")

    def _struct(self, layout: Layout, target: str) -> None:
        source = self._source
        source.line(f"{target} = new({source.constant(layout.cls.__name__, layout.cls)})")
        for absent in layout.absent:
            self._default(f"{target}.{absent.name}", absent.default)
        for at in layout.fields:
            self._field(at, f"{target}.{at.name}")
        if layout.flexible:
            self._tags(layout, target)
        self._flush()

    def _default(self, target: str, default: Any) -> None:
        value = repr(default) if isinstance(default, int | str | bytes | float | list | None) else None
        self._source.line(f"{target} = {value or self._source.constant('default', default)}")

    def _field(self, at: FieldAt, target: str) -> None:
        if isinstance(at.kind, StructOf) and at.nullable:
            self._optional_struct(at.kind, target)
        else:
            self._value(at.kind, at.nullable, target)

    def _value(self, kind: Kind, nullable: bool, target: str) -> None:
        match kind:
            case Fixed():
                self._run.append((kind.code, kind.size, target))
            case StructOf():
                inner = self._source.fresh("m")
                self._flush()
                self._struct(part(kind.cls, self._version, self._flexible), inner)
                self._source.line(f"{target} = {inner}")
            case Text():
                self._text(nullable, target)
            case Blob():
                self._blob(nullable, target)
            case ArrayOf():
                self._array(kind.element, nullable, target)

    def _length(self, code: str, size: int) -> str:
        """Reads the length in front of a value: −1 for null."""
        source = self._source
        length = source.fresh("n")
        if not self._flexible:
            self._run.append((code, size, length))
            self._flush()
            return length
        self._run.append(("B", 1, length))
        self._flush()
        source.line(f"if {length} > 127: {length}, p = read_uvarint(b, p - 1)")
        source.line(f"{length} -= 1")
        return length

    def _null_or_refuse(self, nullable: bool, length: str, target: str) -> None:
        """Ends the branches on a length: null where that is legal, otherwise an error for the explainer."""
        if nullable:
            self._source.line(f"elif {length} == -1: {target} = None")
        self._source.line("else: raise UnreadableBytes")

    def _text(self, nullable: bool, target: str) -> None:
        source = self._source
        length = self._length("h", 2)
        with source.block(f"if {length} > 0:"):
            source.line(f"q = p + {length}")
            source.line(f"{target} = b[p:q].{self._decode}")
            source.line("p = q")
        source.line(f'elif {length} == 0: {target} = ""')
        self._null_or_refuse(nullable, length, target)

    def _blob(self, nullable: bool, target: str) -> None:
        source = self._source
        length = self._length("i", 4)
        with source.block(f"if {length} >= 0:"):
            source.line(f"q = p + {length}")
            source.line(f"{target} = b[p:q]")
            source.line("p = q")
        self._null_or_refuse(nullable, length, target)

    def _array(self, element: Kind, nullable: bool, target: str) -> None:
        source = self._source
        count = self._length("i", 4)
        smallest = least_size(element, self._version, self._flexible)
        product = count if smallest == 1 else f"{count} * {smallest}"
        source.line(f"if {product} > end - p: raise UnreadableBytes")
        if self._counted and not isinstance(element, Fixed):
            source.line(f"left -= {count}")
            source.line("if left < 0: raise TooManyEntries")
        with source.block(f"if {count} >= 0:"):
            if isinstance(element, Fixed):
                table = source.constant("unpack_array", _array_unpackers(element.code))
                source.line(f"{target} = list({table}[{count}](b, p))")
                source.line(f"p += {product}")
            else:
                self._loop(element, count, target)
        self._null_or_refuse(nullable, count, target)

    def _loop(self, element: Kind, count: str, target: str) -> None:
        source = self._source
        items, add, item = source.fresh("a"), source.fresh("add"), source.fresh("m")
        source.line(f"{target} = {items} = []")
        source.line(f"{add} = {items}.append")
        with source.block(f"for _ in range({count}):"):
            if isinstance(element, StructOf):
                self._struct(part(element.cls, self._version, self._flexible), item)
            else:
                self._value(element, False, item)
                self._flush()
            source.line(f"{add}({item})")

    def _optional_struct(self, kind: StructOf, target: str) -> None:
        """A struct that may be null has a byte in front: negative is null (KIP-848's messages use it)."""
        source = self._source
        mark = source.fresh("n")
        self._run.append(("b", 1, mark))
        self._flush()
        source.line(f"if {mark} < 0: {target} = None")
        with source.block("else:"):
            self._value(kind, False, target)

    def _tags(self, layout: Layout, target: str) -> None:
        source = self._source
        for at in layout.tagged:
            self._default(f"{target}.{at.name}", at.default)
        count = source.fresh("t")
        self._run.append(("B", 1, count))
        self._flush()
        if not layout.tagged:
            source.line(f"if {count}: p = skip_tags(b, p - 1)")
            return
        with source.block(f"if {count}:"):
            source.line(f"{count}, p = read_uvarint(b, p - 1)")
            with source.block(f"for _ in range({count}):"):
                tag, stop = source.fresh("tag"), source.fresh("stop")
                source.line(f"{tag}, p = read_uvarint(b, p)")
                source.line(f"{stop}, p = read_uvarint(b, p)")
                source.line(f"{stop} += p")
                source.line(f"if {stop} > end: raise UnreadableBytes")
                for keyword, at in zip(["if"] + ["elif"] * len(layout.tagged), layout.tagged, strict=False):
                    with source.block(f"{keyword} {tag} == {at.tag}:"):
                        if at.presence_byte:
                            self._optional_tagged_struct(at, f"{target}.{at.name}")
                        else:
                            self._field(at, f"{target}.{at.name}")
                            self._flush()
                        source.line(f"if p != {stop}: raise UnreadableBytes")
                source.line(f"else: p = {stop}")

    def _optional_tagged_struct(self, at: FieldAt, target: str) -> None:
        """A byte in front says whether the struct is present; Kafka 4 writes null, too."""
        source = self._source
        source.line("p += 1")
        source.line(f"if b[p - 1] == 0: {target} = None")
        source.line("elif b[p - 1] != 1: raise UnreadableBytes")
        with source.block("else:"):
            self._field(at, target)
            self._flush()

    def _flush(self) -> None:
        """Reads the fixed-width values gathered so far."""
        if not self._run:
            return
        source = self._source
        run, self._run = self._run, []
        codes = "".join(code for code, _, _ in run)
        size = sum(size for _, size, _ in run)
        if codes == "B":
            source.line(f"{run[0][2]} = b[p]")
        else:
            unpack = source.constant("unpack", _unpack_from(codes))
            source.line("".join(f"{target}, " for _, _, target in run).rstrip() + f" = {unpack}(b, p)")
        source.line(f"p += {size}")


@cache
def _unpack_from(codes: str) -> Callable[..., tuple[Any, ...]]:
    return Struct(">" + codes).unpack_from


_array_unpackers = cache(ArrayUnpackers)
