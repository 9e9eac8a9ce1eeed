"""Frames on a connection: four bytes of length, a header, a message.

Request headers have version 1 (with the client id) or, for flexible versions of an API, 2 (with tags as well;
the client id keeps its old form). Response headers have version 0 or 1 likewise, except that of ApiVersions,
which stays 0: a client that asks in too new a version must still be able to read the answer (KIP-511).
"""

import struct
from dataclasses import dataclass
from typing import Any

from kelpie.wire import compiler
from kelpie.wire.apis import NAMES, Api, api
from kelpie.wire.compiler.source import UnreadableBytes, skip_tags
from kelpie.wire.malformed import Malformed

API_VERSIONS = 18
LARGEST_FRAME = 100 * 1024 * 1024
"""What brokers accept by default (socket.request.max.bytes)."""

_LENGTH = struct.Struct(">i")
_ANNOUNCED = struct.Struct(">ii")
_HEADER = struct.Struct(">hhih")
_CORRELATION = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class RequestHeader:
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


class UnsupportedVersion(Exception):
    """A request of an API or version that Kelpie does not have; only its header was read."""

    def __init__(self, header: RequestHeader) -> None:
        name = NAMES.get(header.api_key, f"API {header.api_key}")
        super().__init__(f"{name} version {header.api_version} is not spoken here")
        self.header = header


class Frames:
    """Cuts a stream of bytes into frames. Feed it what arrives; it yields the whole frames so far.

    A length that is negative or above `largest` raises Malformed before anything is gathered for it.
    """

    def __init__(self, largest: int = LARGEST_FRAME) -> None:
        self._largest = largest
        self._pending = bytearray()

    def feed(self, received: bytes) -> list[bytes]:
        pending = self._pending
        pending += received
        frames: list[bytes] = []
        start = 0
        while len(pending) - start >= 4:
            (length,) = _LENGTH.unpack_from(pending, start)
            if not 0 <= length <= self._largest:
                raise Malformed(f"a frame of {length} bytes; the limit is {self._largest}", offset=start)
            stop = start + 4 + length
            if len(pending) < stop:
                break
            frames.append(bytes(pending[start + 4 : stop]))
            start = stop
        del pending[:start]
        return frames

    @property
    def announced(self) -> tuple[int, int] | None:
        """Of a frame that is not whole yet: its length, and its first four bytes as a number.

        In a response, they are the correlation id. None: they have not arrived.
        """
        if len(self._pending) < 8:
            return None
        return _ANNOUNCED.unpack_from(self._pending)

    @property
    def incomplete(self) -> int:
        """How many bytes have arrived of a frame that is not whole yet."""
        return len(self._pending)


def encode_request(header: RequestHeader, message: Any) -> bytes:
    """A whole frame, its length included."""
    client_id = header.client_id
    encoded = b"" if client_id is None else client_id.encode()
    length = -1 if client_id is None else len(encoded)
    pieces = [
        b"",
        _HEADER.pack(header.api_key, header.api_version, header.correlation_id, length),
        encoded,
        b"\0" if api(header.api_key).is_flexible(header.api_version) else b"",
    ]
    compiler.encode_into(message, header.api_version, pieces)
    return _framed(pieces)


def encode_response(api_key: int, version: int, correlation_id: int, message: Any) -> bytes:
    """A whole frame, its length included."""
    pieces = [b"", _CORRELATION.pack(correlation_id)]
    if _flexible_response_header(api(api_key), version):
        pieces.append(b"\0")
    compiler.encode_into(message, version, pieces)
    return _framed(pieces)


def decode_request(frame: bytes) -> tuple[RequestHeader, Any]:
    """Raises Malformed, or UnsupportedVersion when only the header could be read."""
    header, position = decode_request_header(frame)
    spoken = _spoken(header)
    if spoken is None:
        raise UnsupportedVersion(header)
    if spoken.is_flexible(header.api_version):
        position = _past_tags(frame, position)
    # As in Kafka's brokers, bytes behind the message are ignored: librdkafka 2.x asks for the
    # metadata of all topics with three bytes too many.
    message, _ = compiler.decode_prefix(spoken.request, header.api_version, frame, position)
    return header, message


def decode_request_header(frame: bytes) -> tuple[RequestHeader, int]:
    """The header up to the client id, which all header versions have alike, and the position behind it."""
    if len(frame) < _HEADER.size:
        raise Malformed(f"a request header takes {_HEADER.size} bytes; the frame has {len(frame)}", offset=0)
    api_key, api_version, correlation_id, length = _HEADER.unpack_from(frame)
    stop = _HEADER.size + max(length, 0)
    if length < -1 or stop > len(frame):
        raise Malformed(
            f"a client id of {length} bytes", offset=_HEADER.size - 2, path="RequestHeader.client_id"
        )
    client_id = None if length < 0 else frame[_HEADER.size : stop].decode("utf-8", "replace")
    return RequestHeader(api_key, api_version, correlation_id, client_id), stop


def decode_response(api_key: int, version: int, frame: bytes) -> tuple[int, Any]:
    """The correlation id and the message. Raises Malformed."""
    if len(frame) < _CORRELATION.size:
        raise Malformed(f"a response header takes 4 bytes; the frame has {len(frame)}", offset=0)
    (correlation_id,) = _CORRELATION.unpack_from(frame)
    position = _CORRELATION.size
    spoken = api(api_key)
    if _flexible_response_header(spoken, version):
        position = _past_tags(frame, position)
    return correlation_id, compiler.decode(spoken.response, version, frame, position)


def _spoken(header: RequestHeader) -> Api | None:
    if header.api_key not in NAMES:
        return None
    known = api(header.api_key)
    return known if header.api_version in known.versions else None


def _flexible_response_header(spoken: Api, version: int) -> bool:
    return spoken.key != API_VERSIONS and spoken.is_flexible(version)


def _past_tags(frame: bytes, position: int) -> int:
    try:
        return skip_tags(frame, position)
    except (IndexError, UnreadableBytes):
        raise Malformed("the header's tagged fields break off", offset=position, path="header") from None


def _framed(pieces: list[bytes]) -> bytes:
    pieces[0] = _LENGTH.pack(sum(map(len, pieces)))
    return b"".join(pieces)
