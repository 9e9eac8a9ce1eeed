"""Structures that carry their own version, or record type, in their first two bytes."""

import struct
from typing import Any, TypeVar

from kelpie.wire import compiler
from kelpie.wire.malformed import Malformed
from kelpie.wire.schema import declaration_of

T = TypeVar("T")
_PREFIX = struct.Struct(">h")
SIZE = _PREFIX.size


def number(data: bytes, what: str) -> int:
    """The number in front. `what` names it in the error."""
    if len(data) < SIZE:
        raise Malformed(f"{len(data)} bytes are too few for the {what}", offset=0)
    read: int = _PREFIX.unpack_from(data)[0]
    return read


def decode(cls: type[T], data: bytes) -> T:
    """Reads a structure in the version that it names. Raises Malformed, also for a version not known."""
    version = number(data, f"version of {cls.__name__}")
    known = declaration_of(cls).versions
    if version not in known:
        raise Malformed(f"version {version} of {cls.__name__} is unknown; known are {known}", offset=0)
    return compiler.decode(cls, version, data, SIZE)


def encode(message: Any, version: int, prefix: int | None = None) -> bytes:
    """Writes a structure behind its version, or behind another number."""
    return _PREFIX.pack(version if prefix is None else prefix) + compiler.encode(message, version)
