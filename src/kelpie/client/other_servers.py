"""What listens at an address where no broker answers. People mix up ports, and "closed the connection" or
"did not answer" does not tell them so.

ZooKeeper is asked by the word `srvr`: its servers answer it, or say that it is turned off. A web server is
asked for its first page. A broker that is stuck takes both for messages that are too long, and closes these
connections.
"""

import asyncio
import re
import socket

from kelpie.client.address import Address
from kelpie.client.client_errors import ClientError, Closed, NotKafka, TimedOut, Unreadable
from kelpie.client.dialling import dial

_LIMIT_S = 1.0
_MOST_BYTES = 4096
_ZOOKEEPER = re.compile(rb"Zookeeper version: ([\w.]*)|srvr is not executed because")
_WEB_SERVER = re.compile(rb"HTTP/[\w.]+ [ -~]{3,60}")
_MISTAKABLE = (Closed, TimedOut, Unreadable)
"""What a server that is no broker does with a request of Kafka's."""


async def recognised(failure: ClientError) -> ClientError:
    """The same failure, or one that says what listens there instead of a broker."""
    address = failure.address
    if address is None or not isinstance(failure, _MISTAKABLE):
        return failure
    zookeeper, web_server = await asyncio.gather(
        _answer(address, b"srvr"), _answer(address, b"GET / HTTP/1.0\r\n\r\n")
    )
    if (told := _ZOOKEEPER.match(zookeeper)) is not None:
        release = f" {told[1].decode()}" if told[1] else ""
        return NotKafka(
            f"{address} is ZooKeeper{release}, not a broker of Kafka. Brokers have ports of their own, often "
            "9092; kelpie doctor takes a ZooKeeper with --zookeeper.",
            address,
        )
    if (told := _WEB_SERVER.match(web_server)) is not None:
        return NotKafka(
            f'{address} is a web server, not a broker of Kafka: it answers "{told[0].decode()}". Is it the '
            "port of Kafka Connect, of a schema registry, or of metrics? Brokers have ports of their own, "
            "often 9092.",
            address,
        )
    return failure


async def _answer(address: Address, sent: bytes) -> bytes:
    """The beginning of what comes back; nothing, if nothing does."""
    loop = asyncio.get_running_loop()
    try:
        connected = await dial(address, _LIMIT_S)
    except ClientError:
        return b""
    with connected:
        try:
            async with asyncio.timeout(_LIMIT_S):
                await loop.sock_sendall(connected, sent)
                return await _begin(loop, connected)
        except (OSError, TimeoutError):
            return b""


async def _begin(loop: asyncio.AbstractEventLoop, connected: socket.socket) -> bytes:
    """A line at least, if there is one: it may come in pieces."""
    said = b""
    while b"\n" not in said and len(said) < _MOST_BYTES:
        piece = await loop.sock_recv(connected, _MOST_BYTES)
        if not piece:
            break
        said += piece
    return said
