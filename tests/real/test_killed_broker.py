"""A broker that is killed and started again, of the oldest release and of the newest."""

from collections.abc import Callable

import pytest

from kelpie.real import metadata_probe
from kelpie.real.cluster import RealCluster

RealKafka = Callable[..., RealCluster]


@pytest.mark.real
@pytest.mark.parametrize("version", ["0.9.0.1", "4.3.1"])
def test_killed_broker_comes_back_on_its_port_with_its_data(
    version: str, fresh_real_kafka: RealKafka, wait_until: Callable[..., None]
) -> None:
    """SIGKILL leaves a session behind; a start waits it out instead of failing on it."""
    cluster = fresh_real_kafka(version, brokers=2)
    survivor, victim = cluster.brokers[0], cluster.brokers[1]
    everybody = {int(node.name): node.port for node in cluster.brokers}
    create = ("--create", "--topic", "hay", "--partitions", "2", "--replication-factor", str(len(everybody)))
    assert cluster.tool("kafka-topics", *create).status == 0
    assert metadata_probe.brokers(survivor.port, 10) == everybody
    wait_until(lambda: list(victim.data.glob("hay-*")))

    cluster.kill(2)

    assert not victim.up
    with pytest.raises(OSError, match="refused"):
        metadata_probe.brokers(victim.port, 10)
    wait_until(lambda: 2 not in metadata_probe.brokers(survivor.port, 10))

    cluster.start(2)

    assert metadata_probe.brokers(victim.port, 10)[2] == victim.port
    assert metadata_probe.brokers(survivor.port, 10) == everybody
    assert list(victim.data.glob("hay-*"))
