"""Which versions a broker speaks: asked where it can tell, known where it cannot.

Brokers since 0.10 answer ApiVersions. Kafka 0.9 leaves a request that it does not know without an answer, and
keeps the connection; other old ones close it. A broker of today that stands still for a second looks the
same. So, when no answer comes soon, a second connection asks what every release can answer (ListGroups v0),
while the first goes on waiting: only a broker that answers there and not here is an old one.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import cache
from importlib import metadata
from typing import Any

from kelpie.client.client_errors import ClientError, Closed, TimedOut
from kelpie.client.connection import Connection
from kelpie.client.memory import Memory
from kelpie.client.versions import BrokerVersions, before_api_versions, of_kafka_0_8
from kelpie.errors import ErrorCode, describe
from kelpie.wire.api.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kelpie.wire.api.list_groups import ListGroupsRequest
from kelpie.wire.framing import API_VERSIONS, decode_response
from kelpie.wire.malformed import Malformed

PATIENCE_S = 0.75
"""How long a broker may take before it is suspected of being old."""
GRACE_S = 0.25
"""How much later than the second question's the first one's answer may come."""
_NEWEST = 4

Dial = Callable[[], Awaitable[Connection]]


async def negotiate(connection: Connection, dial: Dial, memory: Memory) -> Connection:
    """Sets the connection's versions. It may come back as another one: an old broker's first is of no use."""
    broker = str(connection.address)
    if memory.is_kafka_0_8:
        connection.versions = of_kafka_0_8(broker)
        return connection
    if memory.tells_versions is False:
        connection.versions = before_api_versions(broker)
        return connection
    asking = asyncio.create_task(_ask_versions(connection))
    probing: asyncio.Task[Connection] | None = None
    old: Connection | None = None
    try:
        await asyncio.wait({asking}, timeout=PATIENCE_S)
        # The first releases with a SASL that Kelpie speaks know ApiVersions.
        may_be_old = not connection.settings.security.protocol.authenticated and not memory.tells_versions
        if may_be_old and not _has_told(asking):
            probing = asyncio.create_task(_probe(dial))
            old = await _decide(asking, probing)
        if old is not None:
            memory.tells_versions = False
            old.versions = before_api_versions(broker)
            await connection.close()
            return old
        connection.versions = await asking
        memory.tells_versions = True
        return connection
    finally:
        asking.cancel()
        await asyncio.wait({asking})
        if not asking.cancelled():
            asking.exception()
        if probing is not None:
            probing.cancel()
            with suppress(ClientError, asyncio.CancelledError):
                unused = await probing
                if unused is not old:
                    await unused.close()


def _has_told(asking: "asyncio.Task[BrokerVersions]") -> bool:
    """Whether the question is settled: by an answer, or by a failure that an old broker would not cause."""
    return asking.done() and not isinstance(asking.exception(), Closed | TimedOut)


async def _decide(
    asking: "asyncio.Task[BrokerVersions]", probing: "asyncio.Task[Connection]"
) -> Connection | None:
    """The second connection, if the broker answers there and not on the first; else None."""
    both: set[asyncio.Task[Any]] = {asking, probing}
    while not _has_told(asking):
        if probing.done():
            if probing.exception() is not None:
                return None
            await asyncio.wait({asking}, timeout=GRACE_S)
            return None if _has_told(asking) else probing.result()
        await asyncio.wait([task for task in both if not task.done()], return_when=asyncio.FIRST_COMPLETED)
    return None


async def _probe(dial: Dial) -> Connection:
    connection = await dial()
    try:
        await connection.ask(ListGroupsRequest(), 0)
    except BaseException:
        await connection.close()
        raise
    return connection


async def _ask_versions(connection: Connection) -> BrokerVersions:
    broker = str(connection.address)
    version = _NEWEST
    while True:
        request = ApiVersionsRequest(
            client_software_name="kelpie", client_software_version=_software_version()
        )
        frame = await connection.ask_frame(request, version)
        response = _read(connection, version, frame)
        if response.error_code == ErrorCode.NONE:
            return BrokerVersions.told_by(response, broker)
        if response.error_code != ErrorCode.UNSUPPORTED_VERSION or version == 0:
            raise Closed(
                f"{broker} refuses to tell its versions: {describe(response.error_code)}.", connection.address
            )
        # KIP-511: the answer is of version 0, and holds the versions of this one API; before 2.4, nothing.
        supported = [entry.max_version for entry in response.api_keys if entry.api_key == API_VERSIONS]
        version = max(0, min([version - 1, *supported])) if supported else 0


def _read(connection: Connection, version: int, frame: bytes) -> ApiVersionsResponse:
    refused = int.from_bytes(frame[4:6], signed=True) == ErrorCode.UNSUPPORTED_VERSION
    try:
        response: ApiVersionsResponse = decode_response(API_VERSIONS, 0 if refused else version, frame)[1]
    except Malformed as error:
        raise Closed(
            f"What {connection.address} answers is not Kafka's protocol: {error}. Is it the port of a "
            "broker?",
            connection.address,
        ) from None
    return response


@cache
def _software_version() -> str:
    try:
        return metadata.version("kelpie-kafka")
    except metadata.PackageNotFoundError:
        return "unknown"
