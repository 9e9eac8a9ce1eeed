"""Replicas moved through ZooKeeper, on a real one, with the nodes that Kafka keeps there."""

import importlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from kelpie.real.zookeeper import RealZooKeeper
from kelpie.repair.plan import CannotRepair
from kelpie.repair.replica_placement import Placement
from kelpie.repair.zookeeper import REASSIGNMENT, connected

OFFSETS = "/brokers/topics/__consumer_offsets"
pytestmark = pytest.mark.real


@pytest.fixture
def client(real_zookeeper: RealZooKeeper) -> Iterator[Any]:
    client = importlib.import_module("kazoo.client").KazooClient(real_zookeeper.connect)
    client.start(timeout=30)
    yield client
    client.stop()
    client.close()


def _put(client: Any, path: str, value: object) -> None:
    client.create(path, json.dumps(value).encode(), makepath=True)


def test_brokers_replicas_and_moves_are_read_and_written_as_kafka_has_them(
    real_zookeeper: RealZooKeeper, client: Any
) -> None:
    """The controller finds what its own tool would have written; a second wish waits for the first."""
    _put(client, "/kafka/brokers/ids/1", {"host": "h", "port": 9092, "version": 1})
    _put(client, "/kafka/brokers/ids/2", {"host": "h", "port": 9093, "version": 3, "rack": "a"})
    _put(client, f"/kafka{OFFSETS}", {"version": 1, "partitions": {"10": [2, 9], "2": [1]}})
    _put(client, f"/kafka{OFFSETS}/partitions/10/state", {"leader": 2, "isr": [2]})
    with connected(f"{real_zookeeper.connect}/kafka") as zookeeper:
        assert zookeeper.racks() == {1: None, 2: "a"}
        assert zookeeper.placements() == [Placement(2, (1,), -1), Placement(10, (2, 9), 2, (2,))]
        assert zookeeper.under_way() == {}
        zookeeper.begin({10: [2, 1]})
        data, _ = client.get(f"/kafka{REASSIGNMENT}")
        assert json.loads(data) == {
            "version": 1,
            "partitions": [{"topic": "__consumer_offsets", "partition": 10, "replicas": [2, 1]}],
        }
        assert zookeeper.wait(0.2) == {"__consumer_offsets-10": (2, 1)}
        with pytest.raises(CannotRepair, match="Another reassignment is under way"):
            zookeeper.begin({2: [1, 2]})
        client.delete(f"/kafka{REASSIGNMENT}")
        assert zookeeper.wait(5) == {}


def test_a_path_without_kafka_is_told(real_zookeeper: RealZooKeeper) -> None:
    """The chroot is forgotten easily."""
    with (
        pytest.raises(CannotRepair, match="keeps no Kafka cluster at this path"),
        connected(real_zookeeper.connect),
    ):
        pass


@pytest.mark.parametrize("hosts", ["127.0.0.1:1", "", "no port:x"])
def test_a_zookeeper_that_is_not_there_is_told(hosts: str) -> None:
    """Within the time limit, without a traceback."""
    with pytest.raises(CannotRepair), connected(hosts, limit_s=0.5):
        pass
