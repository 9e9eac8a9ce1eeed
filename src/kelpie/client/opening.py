"""How a connection comes about: TCP, TLS, versions, SASL; each step within its time limit."""

import asyncio
import ssl
from functools import partial

from kelpie.client.address import Address
from kelpie.client.client_errors import ClientError, TimedOut, TlsFailed, unforeseen
from kelpie.client.connection import Connection, Counters
from kelpie.client.dialling import dial, unreachable
from kelpie.client.memory import Memory
from kelpie.client.negotiation import negotiate
from kelpie.client.sasl.exchange import authenticate
from kelpie.client.settings import Settings
from kelpie.client.tls import broken_off, context_for, explain


async def open_connection(
    address: Address,
    settings: Settings,
    *,
    counters: Counters | None = None,
    memory: Memory | None = None,
) -> Connection:
    """Connects, encrypts, authenticates and learns the broker's versions. Raises ClientError.

    `memory` holds what one connection to a cluster finds out for the next.
    """
    counters = counters if counters is not None else Counters()
    memory = memory if memory is not None else Memory()
    limit_s = settings.connect_timeout_s + settings.request_timeout_s
    connect = partial(_connect, address, settings, counters, context_for(settings.security, memory))
    try:
        async with asyncio.timeout(limit_s):
            connection = await connect()
            try:
                connection = await negotiate(connection, connect, memory)
                await authenticate(connection, memory)
            except BaseException:
                await connection.close()
                raise
            return connection
    except TimeoutError:
        raise TimedOut(
            f"{address} took the connection, and was not ready within {limit_s:g} s.", address
        ) from None
    except ClientError:
        raise
    except Exception as error:
        raise unforeseen(error, address, "while the connection was made") from error


async def _connect(
    address: Address, settings: Settings, counters: Counters, tls: ssl.SSLContext | None
) -> Connection:
    connection = Connection(address, settings, counters)
    if settings.network is not None:
        try:
            await settings.network.connect(address.host, address.port, connection)
        except OSError as error:
            raise unreachable(error, address) from None
        return connection
    loop = asyncio.get_running_loop()
    begun = loop.time()
    socket = await dial(address, settings.connect_timeout_s)
    try:
        if tls is None:
            await loop.create_connection(lambda: connection, sock=socket)
        else:
            await loop.create_connection(
                lambda: connection,
                sock=socket,
                ssl=tls,
                server_hostname=address.host,
                ssl_handshake_timeout=max(0.1, settings.connect_timeout_s - (loop.time() - begun)),
                ssl_shutdown_timeout=1.0,
            )
    except ConnectionAbortedError:
        socket.close()
        raise TlsFailed(
            f"{address} took the connection, and did not answer the request to encrypt it within "
            f"{settings.connect_timeout_s:g} s. Is it a listener with TLS?",
            address,
        ) from None
    except OSError as error:
        socket.close()
        raise (explain(error, address) or broken_off(address)) from None
    except BaseException:
        socket.close()
        raise
    return connection
