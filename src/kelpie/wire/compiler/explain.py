"""Reads a layout slowly and says where it breaks.

The fast decoder only knows that something went wrong. This one is run then, over the same bytes: it keeps the
path and the position of every field, and raises `Malformed` with both. It also returns messages that the fast
decoder refuses and Kafka does not: a string that is not UTF-8 is read as Java reads it, with replacement
characters.
"""

import struct
from typing import Any, NoReturn

from kelpie.wire.compiler.layout import ArrayOf, Blob, FieldAt, Kind, Layout, StructOf, Text, least_size, part
from kelpie.wire.malformed import Malformed
from kelpie.wire.schema import Fixed


class Explainer:
    """One slow pass over one message."""

    def __init__(self, buffer: bytes, position: int, layout: Layout) -> None:
        self._buffer = buffer
        self._layout = layout
        self._path = [layout.cls.__name__ + f" v{layout.version}"]
        self.position = position

    def message(self) -> Any:
        return self._struct(self._layout)

    def refuse(self, reason: str, offset: int | None = None) -> NoReturn:
        raise Malformed(
            reason, offset=self.position if offset is None else offset, path=".".join(self._path)
        ) from None

    def _struct(self, layout: Layout) -> Any:
        made = object.__new__(layout.cls)
        for name, default in [(at.name, at.default) for at in layout.absent + layout.tagged]:
            setattr(made, name, [] if default == [] else default)
        for at in layout.fields:
            setattr(made, at.name, self._field(at))
        if layout.flexible:
            self._tags(layout, made)
        return made

    def _field(self, at: FieldAt) -> Any:
        self._path.append(at.name)
        if isinstance(at.kind, StructOf) and at.nullable and self._fixed("b", 1) < 0:
            value = None
        else:
            value = self._value(at.kind, at.nullable)
        self._path.pop()
        return value

    def _value(self, kind: Kind, nullable: bool) -> Any:
        match kind:
            case Fixed():
                return self._fixed(kind.code, kind.size)
            case StructOf():
                return self._struct(part(kind.cls, self._layout.version, self._layout.flexible))
            case Text():
                length = self._length("h", 2, nullable)
                return None if length < 0 else self._take(length).decode("utf-8", "replace")
            case Blob():
                length = self._length("i", 4, nullable)
                return None if length < 0 else self._take(length)
            case ArrayOf():
                return self._array(kind.element, nullable)

    def _array(self, element: Kind, nullable: bool) -> list[Any] | None:
        start = self.position
        count = self._length("i", 4, nullable)
        if count < 0:
            return None
        left = len(self._buffer) - self.position
        if count * least_size(element, self._layout.version, self._layout.flexible) > left:
            self.refuse(f"{count} elements cannot fit in the {left} bytes that are left", start)
        items = []
        for index in range(count):
            self._path.append(f"[{index}]")
            items.append(self._value(element, False))
            self._path.pop()
        return items

    def _tags(self, layout: Layout, made: Any) -> None:
        known = {at.tag: at for at in layout.tagged}
        for _ in range(self._uvarint()):
            tag = self._uvarint()
            size = self._uvarint()
            start = self.position
            at = known.get(tag)
            if at is None:
                self._take(size)
                continue
            if start + size > len(self._buffer):
                self.refuse(f"tagged field {tag} of {size} bytes passes the end of the message")
            present = self._fixed("b", 1) if at.presence_byte else 1
            if present not in (0, 1):
                self.refuse(f"tagged field {tag} has an unknown presence byte", start)
            setattr(made, at.name, self._field(at) if present else None)
            if self.position != start + size:
                self.refuse(f"tagged field {tag} is {self.position - start} bytes long, not {size}", start)

    def _length(self, code: str, size: int, nullable: bool) -> int:
        start = self.position
        length: int = self._uvarint() - 1 if self._layout.flexible else self._fixed(code, size)
        if length < -1:
            self.refuse(f"length {length} is negative", start)
        if length == -1 and not nullable:
            self.refuse("null where the field cannot be null", start)
        return length

    def _uvarint(self) -> int:
        start = self.position
        value = 0
        for shift in range(0, 35, 7):
            byte: int = self._fixed("B", 1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value > 0xFFFFFFFF:
                    break
                return value
        self.refuse("a varint is longer than 32 bits", start)

    def _fixed(self, code: str, size: int) -> Any:
        return struct.unpack(">" + code, self._take(size))[0]

    def _take(self, size: int) -> bytes:
        start = self.position
        left = len(self._buffer) - start
        if size > left:
            self.refuse(f"{size} bytes are needed and {max(left, 0)} are left")
        self.position = start + size
        return self._buffer[start : self.position]
