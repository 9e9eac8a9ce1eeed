"""From a declared schema to one encoder and one decoder per class and version, made on first use."""

import struct
from typing import Any, TypeVar

from kelpie.wire.compiler.decode import MOST_ENTRIES, Decoder, compile_decoder
from kelpie.wire.compiler.encode import Encoder, compile_encoder
from kelpie.wire.compiler.explain import Explainer
from kelpie.wire.compiler.layout import layout
from kelpie.wire.compiler.source import TooManyEntries, UnreadableBytes
from kelpie.wire.malformed import Malformed, Unencodable

T = TypeVar("T")

__all__ = ["decode", "decode_prefix", "encode", "encode_into"]


_ENCODERS: dict[tuple[type[Any], int], Encoder] = {}
_DECODERS: dict[tuple[type[Any], int], Decoder] = {}
_SLOWER_DECODERS: dict[tuple[type[Any], int, bool, bool], Decoder] = {}
MOST_EXPLAINED = 1024 * 1024
"""Bytes. To explain takes microseconds for each, and nobody looks for a byte in a message that is longer."""


def _encoder(cls: type[Any], version: int) -> Encoder:
    known = _ENCODERS.get((cls, version))
    if known is None:
        known = _ENCODERS[cls, version] = compile_encoder(layout(cls, version))
    return known


def _decoder(cls: type[Any], version: int) -> Decoder:
    known = _DECODERS.get((cls, version))
    if known is None:
        known = _DECODERS[cls, version] = compile_decoder(layout(cls, version))
    return known


def _slower_decoder(cls: type[Any], version: int, *, lenient: bool, counted: bool) -> Decoder:
    key = (cls, version, lenient, counted)
    known = _SLOWER_DECODERS.get(key)
    if known is None:
        made = compile_decoder(layout(cls, version), lenient=lenient, counted=counted)
        known = _SLOWER_DECODERS[key] = made
    return known


def encode(message: Any, version: int) -> bytes:
    """Raises Unencodable when the message cannot be written in this version."""
    pieces: list[bytes] = []
    encode_into(message, version, pieces)
    return b"".join(pieces)


def encode_into(message: Any, version: int, pieces: list[bytes]) -> None:
    """Appends the encoding to `pieces`, for a caller that puts a header in front."""
    write = _encoder(type(message), version)
    try:
        write(message, pieces.append)
    except (struct.error, TypeError, AttributeError, UnicodeEncodeError) as error:
        raise Unencodable(
            f"{type(message).__name__} v{version}: {error}; the message is {message!r}"
        ) from error


def decode(cls: type[T], version: int, buffer: bytes, position: int = 0) -> T:
    """Reads one message that fills the buffer from `position` on. Raises Malformed when it does not."""
    message, stop = decode_prefix(cls, version, buffer, position)
    if stop != len(buffer):
        raise Malformed(
            f"{len(buffer) - stop} bytes are left over", offset=stop, path=f"{cls.__name__} v{version}"
        )
    return message


def decode_prefix(cls: type[T], version: int, buffer: bytes, position: int = 0) -> tuple[T, int]:
    """Reads one message at `position`: the message, and the position behind it."""
    is_long = len(buffer) - position > MOST_ENTRIES
    try:
        try:
            read = _slower_decoder(cls, version, lenient=False, counted=True) if is_long else None
            message, stop = (read or _decoder(cls, version))(buffer, position)
        except UnicodeDecodeError:
            # As Java reads it: brokers take names that are not UTF-8.
            read = _slower_decoder(cls, version, lenient=True, counted=is_long)
            message, stop = read(buffer, position)
        if stop <= len(buffer):
            return message, stop
    except (IndexError, struct.error, UnreadableBytes):
        pass
    except TooManyEntries:
        raise _unexplained(f"its lists have more than {MOST_ENTRIES} entries", cls, version) from None
    if len(buffer) - position > MOST_EXPLAINED:
        reason = f"of its {len(buffer) - position} bytes some do not fit; where, is not looked for in so many"
        raise _unexplained(reason, cls, version)
    slow = Explainer(buffer, position, layout(cls, version))
    return slow.message(), slow.position


def _unexplained(reason: str, cls: type[Any], version: int) -> Malformed:
    return Malformed(reason, offset=0, path=f"{cls.__name__} v{version}")
