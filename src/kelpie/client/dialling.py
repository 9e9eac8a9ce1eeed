"""From an address to a connected socket, or to a plain word why not."""

import asyncio
import errno
import socket
from collections.abc import Sequence

from kelpie.client.address import Address
from kelpie.client.background import in_background
from kelpie.client.client_errors import Unreachable
from kelpie.observations import Trouble

_LEAST_TRY_S = 0.5
_SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

Resolved = tuple[socket.AddressFamily, tuple[object, ...]]


async def dial(address: Address, limit_s: float) -> socket.socket:
    """A socket that is connected. The addresses of a name are tried in turn. Raises Unreachable."""
    if not 0 < address.port < 65_536:
        # The system would take the number without its high bits, and dial another port.
        raise Unreachable(
            f"{address} cannot be reached: {address.port} is no port. Is advertised.listeners right?", address
        )
    deadline = asyncio.get_running_loop().time() + limit_s
    try:
        async with asyncio.timeout(limit_s):
            resolved = await _resolve(address)
    except TimeoutError:
        raise Unreachable(
            f"The name {address.host} of {address} could not be looked up within {limit_s:g} s.",
            address,
            trouble=Trouble.UNKNOWN_NAME,
        ) from None
    except UnicodeError:
        raise Unreachable(
            f"{address.host!r} cannot be the name of a host: each part of a name has 1 to 63 characters. Is "
            "advertised.listeners right?",
            address,
            trouble=Trouble.UNKNOWN_NAME,
        ) from None
    except OSError as error:
        if _is_ours(error):
            raise unreachable(error, address) from None
        raise Unreachable(
            f"The name {address.host} of {address} cannot be looked up here ({error.strerror or error}). "
            "Is it the name that the broker has inside its own network (advertised.listeners)?",
            address,
            trouble=Trouble.UNKNOWN_NAME,
        ) from None
    return await _first_of(resolved, address, deadline, limit_s)


async def _resolve(address: Address) -> list[Resolved]:
    kind = socket.SOCK_STREAM
    try:
        resolved = socket.getaddrinfo(
            *address, type=kind, flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
        )
    except OSError:
        resolved = await in_background(lambda: socket.getaddrinfo(*address, type=kind))
    return list(dict.fromkeys((family, where) for family, _, _, _, where in resolved))


async def _first_of(
    resolved: Sequence[Resolved], address: Address, deadline: float, limit_s: float
) -> socket.socket:
    loop = asyncio.get_running_loop()
    failure: OSError = TimeoutError()
    for at, (family, where) in enumerate(resolved):
        remaining = deadline - loop.time()
        share = remaining if at + 1 == len(resolved) else max(_LEAST_TRY_S, remaining / (len(resolved) - at))
        try:
            made = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            failure = error
            continue
        try:
            made.setblocking(False)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            async with asyncio.timeout(min(share, remaining)):
                await loop.sock_connect(made, where)
            return made
        except OSError as error:  # TimeoutError is one.
            failure = error.with_traceback(None)  # Else it would hold this frame, which holds it.
            made.close()
        except BaseException:
            made.close()
            raise
    raise unreachable(failure, address, limit_s)


def unreachable(error: OSError, address: Address, limit_s: float = 0.0) -> Unreachable:
    refused = isinstance(error, ConnectionRefusedError)
    trouble = Trouble.OTHER if _is_ours(error) else Trouble.REFUSED if refused else Trouble.NO_ANSWER
    return Unreachable(why_not(error, address, limit_s), address, trouble=trouble)


def why_not(error: OSError, address: Address, limit_s: float = 0.0) -> str:
    """Why no connection came about."""
    if isinstance(error, ConnectionRefusedError):
        return f"{address} refused the connection: nothing listens there."
    if _is_ours(error):
        return (
            f"{address} could not be tried: this machine lacks what another connection takes "
            f"({error.strerror}). More open files may be allowed with ulimit -n."
        )
    if isinstance(error, TimeoutError):
        return (
            f"{address} did not take the connection within {limit_s:g} s: the host is down, or a firewall "
            "swallows what is sent to it."
        )
    return f"{address} cannot be reached: {error.strerror or error}."


def _is_ours(error: OSError) -> bool:
    """Whether this machine is short of something: that says nothing about the broker."""
    return error.errno in _SHORTAGES
