"""Clusters that move replicas through ZooKeeper only: Kafka before 2.4.

Kafka's own tool writes the moves into /admin/reassign_partitions; the controller takes out those that are
done, and removes the node in the end. We do the same. Replicas and leaders are read where the controller
keeps them: metadata of Kafka 0.9 leaves out replicas on dead brokers.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from kelpie.client import zookeeper as client_zookeeper
from kelpie.client.zookeeper import ZooKeeperError, kazoo_exceptions
from kelpie.observations import OFFSETS_TOPIC
from kelpie.repair.plan import CannotRepair
from kelpie.repair.replica_placement import Placement

REASSIGNMENT = "/admin/reassign_partitions"
_PAUSE_S = 0.1


class ZooKeeper:
    """What Kafka keeps in ZooKeeper. Every method blocks, for the time limit of the connection at most."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def racks(self) -> dict[int, str | None]:
        """The brokers that live, each with its rack (0.10 and later)."""
        racks: dict[int, str | None] = {}
        for node in self._client.get_children("/brokers/ids"):
            registration = self._json(f"/brokers/ids/{node}")
            if registration is not None:
                racks[int(node)] = registration.get("rack")
        return racks

    def placements(self) -> list[Placement]:
        """All partitions of the offsets topic; none if there is no such topic."""
        assigned = (self._json(f"/brokers/topics/{OFFSETS_TOPIC}") or {}).get("partitions", {})
        replicas_by_partition = {int(partition): tuple(replicas) for partition, replicas in assigned.items()}
        placements = []
        for partition, replicas in sorted(replicas_by_partition.items()):
            state = self._json(f"/brokers/topics/{OFFSETS_TOPIC}/partitions/{partition}/state") or {}
            leader, in_sync = state.get("leader", -1), tuple(state.get("isr", ()))
            placements.append(Placement(partition, replicas, leader, in_sync))
        return placements

    def under_way(self) -> dict[str, tuple[int, ...]]:
        """The moves that the controller has not done yet, of any topic: "orders-3" → replicas."""
        moves = (self._json(REASSIGNMENT) or {}).get("partitions", [])
        return {f"{move['topic']}-{move['partition']}": tuple(move["replicas"]) for move in moves}

    def begin(self, goals: Mapping[int, Sequence[int]]) -> None:
        """Writes the moves down for the controller. Raises CannotRepair while others are under way."""
        wanted = {
            "version": 1,
            "partitions": [
                {"topic": OFFSETS_TOPIC, "partition": partition, "replicas": list(replicas)}
                for partition, replicas in sorted(goals.items())
            ],
        }
        try:
            self._client.create(REASSIGNMENT, json.dumps(wanted).encode(), makepath=True)
        except kazoo_exceptions().NodeExistsError:
            raise CannotRepair(
                f"Another reassignment is under way ({REASSIGNMENT} is there): "
                f"{', '.join(self.under_way())}. Wait until it has ended, and run this again."
            ) from None

    def wait(self, limit_s: float) -> dict[str, tuple[int, ...]]:
        """Returns when the controller is done, or when the time is over: the moves that are left."""
        deadline = time.monotonic() + limit_s
        while left := self.under_way():
            if time.monotonic() + _PAUSE_S > deadline:
                break
            time.sleep(_PAUSE_S)
        return left

    def _json(self, path: str) -> dict[str, Any] | None:
        """The content of a node; None if there is no such node, or no longer."""
        try:
            data, _ = self._client.get(path)
        except kazoo_exceptions().NoNodeError:
            return None
        content: dict[str, Any] = json.loads(data)
        return content


@contextmanager
def connected(hosts: str, limit_s: float = 10.0) -> Iterator[ZooKeeper]:
    """`hosts` as zookeeper.connect has them: "zk-1:2181,zk-2:2181/kafka". Raises CannotRepair."""
    try:
        with client_zookeeper.connected(hosts, limit_s) as client:
            yield ZooKeeper(client)
    except ZooKeeperError as error:
        raise CannotRepair(str(error)) from None
