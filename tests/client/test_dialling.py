"""Addresses that brokers announce and nobody can dial: each is an `Unreachable`, and nothing else."""

import asyncio
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kelpie.client.address import Address
from kelpie.client.client_errors import Unreachable
from kelpie.client.dialling import dial
from kelpie.client.opening import open_connection
from kelpie.client.settings import Settings
from kelpie.observations import Trouble


@pytest.mark.parametrize("host", ["a..b", "x" * 64, f"{'y' * 64}.example", ".", "\ud800", "\0", "a\0b"])
def test_a_host_that_cannot_be_a_name_is_unreachable(host: str) -> None:
    """Python's lookup has errors of its own for some of them (UnicodeError)."""
    with pytest.raises(Unreachable) as caught:
        asyncio.run(dial(Address(host, 9092), 5.0))
    assert caught.value.trouble is Trouble.UNKNOWN_NAME


@pytest.mark.parametrize("past", [0, 1 << 16, 1 << 17])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_port_that_is_none_is_not_dialled(past: int, sign: int) -> None:
    """The system takes 65536 + n for n: a lie about a port would reach another service of the host."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        port = listener.getsockname()[1] if past else 0
        with pytest.raises(Unreachable, match="is no port"):
            asyncio.run(dial(Address("127.0.0.1", sign * (port + past)), 5.0))
        with pytest.raises(BlockingIOError):
            listener.accept()


@contextmanager
def _no_more_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    probe = socket.socket()
    lowest = probe.fileno()
    probe.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_too_many_open_files_are_no_fault_of_the_broker() -> None:
    """The broker was not even tried: it must not be taken for dead."""

    async def test() -> Unreachable:
        settings = Settings.of("127.0.0.1:9")
        with _no_more_files(), pytest.raises(Unreachable) as caught:
            await open_connection(settings.bootstrap[0], settings)
        return caught.value

    failure = asyncio.run(test())
    assert failure.trouble is Trouble.OTHER
    assert "could not be tried" in failure.reason
    assert "ulimit -n" in failure.reason
