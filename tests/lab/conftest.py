import socket
from collections.abc import Iterator

import pytest
from kafka.net.inet import KafkaNetSocket

from kelpie.real.zookeeper import RealZooKeeper


class _ClosedSocket(socket.socket):
    """Is closed when it is garbage, without a warning."""

    def __del__(self) -> None:
        self.close()


def _new(_: KafkaNetSocket, *kind: int) -> socket.socket:
    return _ClosedSocket(*kind)


@pytest.fixture(scope="session", autouse=True)
def _kafka_python_closes_sockets() -> Iterator[None]:
    """kafka-python forgets sockets: of refused connections, and of those opening when a client is closed.

    The garbage collector would complain at any later moment, in a test that has nothing to do with it.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KafkaNetSocket, "socket", _new)
        yield


@pytest.fixture
def zookeeper(real_zookeeper: RealZooKeeper) -> str:
    """The address of a real ZooKeeper that is empty."""
    return real_zookeeper.connect
