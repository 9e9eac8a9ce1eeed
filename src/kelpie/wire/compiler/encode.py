"""From a layout to a function `(message, write)` that hands pieces of bytes to `write`.

How it is fast: neighbouring fixed-width fields, and the length in front of the next string or array, are
packed by one call; so are arrays of numbers together with the fields around them (`RunPackers`). Arrays of
structs are loops in the same function.
"""

from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Any

from kelpie.wire.compiler.layout import ArrayOf, Blob, FieldAt, Kind, Layout, StructOf, Text, part
from kelpie.wire.compiler.source import UVARINTS, RunPackers, Source
from kelpie.wire.malformed import Unencodable
from kelpie.wire.schema import Fixed

Encoder = Callable[[Any, Callable[[bytes], None]], None]

_INT32 = Struct(">i").pack


def compile_encoder(layout: Layout) -> Encoder:
    return _EncoderWriter(layout.version, layout.flexible).whole(layout)


class _EncoderWriter:
    def __init__(self, version: int, flexible: bool) -> None:
        self._version = version
        self._flexible = flexible
        self._source = Source()
        self._source.names.update(
            uvarint=UVARINTS, int32=_INT32, Unencodable=Unencodable, write_tags=write_tags
        )
        self._run: list[tuple[str, str]] = []
        """Fixed-width values not yet packed: struct code and expression. A pad byte has no expression."""
        self._arrays: list[tuple[int, str, str]] = []
        """Arrays of fixed-width values among them: position in the run, element code, variable."""

    def whole(self, layout: Layout) -> Encoder:
        source = self._source
        with source.block("def encode(m, w):"):
            self._struct(layout, "m")
            self._flush()
            source.line("return")
        return source.function("encode", f"encode {layout.cls.__name__} v{layout.version}")

    def _struct(self, layout: Layout, target: str) -> None:
        """Writes a struct. What is left in the run is its end: the caller goes on with it or flushes."""
        for absent in layout.absent:
            if absent.strict:
                self._refuse_loss(layout, target, absent.name, absent.default)
        for at in layout.fields:
            self._field(at, f"{target}.{at.name}")
        if layout.flexible:
            self._tags(layout, target)

    def _refuse_loss(self, layout: Layout, target: str, name: str, default: Any) -> None:
        message = f"{layout.cls.__name__} v{layout.version} cannot carry {name}"
        with self._source.block(f"if {self._differs(f'{target}.{name}', default)}:"):
            self._source.line(f"raise Unencodable({message!r})")

    def _differs(self, value: str, default: Any) -> str:
        if default is None:
            return f"{value} is not None"
        if default == []:
            return value
        return f"{value} != {default!r}"

    def _field(self, at: FieldAt, value: str) -> None:
        if at.nullable:
            self._optional(at.kind, value)
        else:
            self._value(at.kind, value)

    def _value(self, kind: Kind, value: str) -> None:
        source = self._source
        match kind:
            case Fixed():
                self._run.append((kind.code, value))
            case StructOf():
                inner = source.fresh("m")
                source.line(f"{inner} = {value}")
                self._struct(part(kind.cls, self._version, self._flexible), inner)
            case ArrayOf(Fixed() as element):
                array = source.fresh("a")
                source.line(f"{array} = {value}")
                self._arrays.append((len(self._run), element.code, array))
            case Text():
                encoded = source.fresh("s")
                source.line(f"{encoded} = {value}.encode()")
                self._counted(encoded, "h")
                source.line(f"if {encoded}: w({encoded})")
            case Blob():
                blob = source.fresh("s")
                source.line(f"{blob} = {value}")
                self._counted(blob, "i")
                source.line(f"w({blob})")
            case ArrayOf():
                items = source.fresh("a")
                source.line(f"{items} = {value}")
                self._counted(items, "i")
                self._loop(kind.element, items)

    def _optional(self, kind: Kind, value: str) -> None:
        """Only a struct has a byte in front that says whether it is there; other kinds have a length."""
        source = self._source
        held = source.fresh("v")
        source.line(f"{held} = {value}")
        present: list[tuple[str, str]] = []
        if isinstance(kind, StructOf):
            null, present = ("b", "-1"), [("b", "1")]
        elif self._flexible:
            null = ("x", "")
        else:
            null = ("h" if kind == Text() else "i", "-1")
        before, arrays = self._run, self._arrays
        with source.block(f"if {held} is None:"):
            self._run = [*before, null]
            self._flush()
        with source.block("else:"):
            self._run, self._arrays = [*before, *present], list(arrays)
            self._value(kind, held)
            self._flush()

    def _counted(self, value: str, code: str) -> None:
        """Writes what was gathered, and the length of what comes next."""
        source = self._source
        count = source.fresh("n")
        if not self._flexible:
            self._run.append((code, f"len({value})"))
            self._flush()
            return
        source.line(f"{count} = len({value}) + 1")
        before, arrays = list(self._run), list(self._arrays)
        with source.block(f"if {count} < 128:"):
            self._run.append(("B", count))
            self._flush()
        with source.block("else:"):
            self._run, self._arrays = before, arrays
            self._flush()
            source.line(f"w(uvarint[{count}])")

    def _loop(self, element: Kind, items: str) -> None:
        source = self._source
        item = source.fresh("m")
        with source.block(f"for {item} in {items}:"):
            if isinstance(element, StructOf):
                self._struct(part(element.cls, self._version, self._flexible), item)
            else:
                self._value(element, item)
            self._flush()

    def _tags(self, layout: Layout, target: str) -> None:
        source = self._source
        if not layout.tagged:
            self._run.append(("x", ""))
            return
        self._flush()
        parts = source.fresh("tags")
        source.line(f"{parts} = []")
        for at in layout.tagged:
            value = f"{target}.{at.name}"
            with source.block(f"if {self._differs(value, at.default)}:"):
                pieces, outer = source.fresh("pieces"), source.fresh("w")
                source.line(f"{pieces} = []")
                source.line(f"{outer} = w; w = {pieces}.append")
                if at.presence_byte:
                    self._run.append(("b", "1"))
                self._field(at, value)
                self._flush()
                source.line(f"w = {outer}")
                source.line(f"{parts}.append(({at.tag}, b''.join({pieces})))")
        source.line(f"write_tags({parts}, w)")

    def _flush(self) -> None:
        source = self._source
        run, self._run = self._run, []
        arrays, self._arrays = self._arrays, []
        if arrays:
            self._flush_with_arrays(run, arrays)
        elif run:
            codes = "".join(code for code, _ in run)
            values = ", ".join(value for code, value in run if code != "x")
            if not values:
                source.line(f"w({bytes(len(codes))!r})")
            else:
                source.line(f"w({source.constant('pack', _pack(codes))}({values}))")

    def _flush_with_arrays(self, run: list[tuple[str, str]], arrays: list[tuple[int, str, str]]) -> None:
        source = self._source
        template: list[str] = []
        values: list[str] = []
        start = 0
        for position, code, array in arrays:
            template += ["".join(letter for letter, _ in run[start:position]), code]
            values += [value for letter, value in run[start:position] if letter != "x"]
            values += [
                f"uvarint[len({array}) + 1]" if self._flexible else f"int32(len({array}))",
                f"*{array}",
            ]
            start = position
        template.append("".join(letter for letter, _ in run[start:]))
        values += [value for letter, value in run[start:] if letter != "x"]
        packers = source.constant("pack_run", _run_packers(tuple(template), self._flexible))
        lengths = "".join(f"len({array}), " for _, _, array in arrays)
        source.line(f"w({packers}[{lengths}]({', '.join(values)}))")


def write_tags(tags: list[tuple[int, bytes]], write: Callable[[bytes], None]) -> None:
    write(UVARINTS[len(tags)])
    for tag, payload in tags:
        write(UVARINTS[tag])
        write(UVARINTS[len(payload)])
        write(payload)


@cache
def _pack(codes: str) -> Callable[..., bytes]:
    return Struct(">" + codes).pack


_run_packers = cache(RunPackers)
