"""Asks a broker which brokers are in its cluster, by Metadata v0, which every release still answers.

Written by hand, because these servers are the judges of Kelpie's own codec.
"""

import socket
import struct

from kelpie.real.ports import HOST

_METADATA = 3
_CLIENT = b"kelpie-real"
_REQUEST = struct.pack(f">hhih{len(_CLIENT)}si", _METADATA, 0, 1, len(_CLIENT), _CLIENT, 0)
_LONGEST = 64 * 2**20


def brokers(port: int, timeout_s: float) -> dict[int, int]:
    """The ids and ports of the brokers that the one on this port knows. OSError if it does not answer."""
    with socket.create_connection((HOST, port), timeout=timeout_s) as connection:
        connection.sendall(struct.pack(">i", len(_REQUEST)) + _REQUEST)
        (size,) = struct.unpack(">i", _receive(connection, 4))
        if not 8 <= size <= _LONGEST:
            raise OSError(f"port {port} answered with a frame of {size} bytes: not Kafka")
        return _parse(_receive(connection, size))


def _parse(frame: bytes) -> dict[int, int]:
    known = {}
    try:
        (count,) = struct.unpack_from(">i", frame, 4)
        at = 8
        for _ in range(count):
            node, length = struct.unpack_from(">ih", frame, at)
            at += 6 + length
            (known[node],) = struct.unpack_from(">i", frame, at)
            at += 4
    except struct.error as error:
        raise OSError(f"an answer that is not Metadata v0: {error}") from None
    return known


def _receive(connection: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = connection.recv(min(size, 65_536))
        if not part:
            raise ConnectionResetError("the connection was closed before the whole answer came")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
