"""ZooKeeper from the jars that PySpark carries."""

import pytest

from kelpie.real import zookeeper
from kelpie.real.zookeeper import RealZooKeeper


@pytest.mark.real
def test_server_answers_on_loopback(real_zookeeper: RealZooKeeper) -> None:
    """A version of our own times, for what is not about one old Kafka."""
    assert real_zookeeper.connect == f"127.0.0.1:{real_zookeeper.port}"
    assert "Zookeeper version: 3.9" in zookeeper.four_letters(real_zookeeper.port, "srvr")
    assert zookeeper.sessions(real_zookeeper.port) == []


@pytest.mark.real
def test_killed_server_comes_back_on_its_port(real_zookeeper: RealZooKeeper) -> None:
    """Its clients know only the one address."""
    port = real_zookeeper.port

    real_zookeeper.kill("zookeeper")
    with pytest.raises(ConnectionRefusedError):
        zookeeper.four_letters(port, "srvr")
    real_zookeeper.start("zookeeper")

    assert "Mode: standalone" in zookeeper.four_letters(port, "srvr")


@pytest.mark.real
def test_closed_server_leaves_nothing(real_zookeeper: RealZooKeeper) -> None:
    """Neither a process nor a folder; and closing twice is no mistake."""
    process, root = real_zookeeper.nodes["zookeeper"].process, real_zookeeper.root
    assert process is not None

    real_zookeeper.close()
    real_zookeeper.close()

    assert not process.identity.alive
    assert not root.exists()
