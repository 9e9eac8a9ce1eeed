"""Clusters that move replicas through ZooKeeper only: Kafka before 2.4.

Kafka's own tool writes what it wants into /admin/reassign_partitions; the controller takes out what is done,
and removes the node in the end. So do we. Replicas and leaders are read where the controller keeps them:
metadata of Kafka 0.9 leaves out the dead.
"""

import importlib
import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from kelpie.observations import OFFSETS_TOPIC
from kelpie.repair.plan import CannotRepair
from kelpie.repair.reassignment import Placement

REASSIGNMENT = "/admin/reassign_partitions"
_PAUSE_S = 0.1


class ZooKeeper:
    """What Kafka keeps there. Every method blocks; each is bounded by the time limit of the connection."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def racks(self) -> dict[int, str | None]:
        """The brokers that live, each with its rack (0.10 and later)."""
        found = {
            node: self._json(f"/brokers/ids/{node}") for node in self._client.get_children("/brokers/ids")
        }
        return {int(node): told.get("rack") for node, told in found.items() if told is not None}

    def placements(self) -> list[Placement]:
        """All partitions of the offsets topic; none if there is no such topic."""
        assigned = (self._json(f"/brokers/topics/{OFFSETS_TOPIC}") or {}).get("partitions", {})
        found = []
        for partition, replicas in sorted(assigned.items(), key=lambda it: int(it[0])):
            state = f"/brokers/topics/{OFFSETS_TOPIC}/partitions/{partition}/state"
            now = self._json(state) or {}
            leader, in_sync = now.get("leader", -1), tuple(now.get("isr", ()))
            found.append(Placement(int(partition), tuple(replicas), leader, in_sync))
        return found

    def under_way(self) -> dict[str, tuple[int, ...]]:
        """The moves that the controller has not done yet, of any topic: "orders-3" → replicas."""
        asked = self._json(REASSIGNMENT) or {}
        return {
            f"{it['topic']}-{it['partition']}": tuple(it["replicas"]) for it in asked.get("partitions", [])
        }

    def begin(self, goals: Mapping[int, Sequence[int]]) -> None:
        """Writes the moves down for the controller. Raises CannotRepair while others are under way."""
        asked = {
            "version": 1,
            "partitions": [
                {"topic": OFFSETS_TOPIC, "partition": partition, "replicas": list(replicas)}
                for partition, replicas in sorted(goals.items())
            ],
        }
        try:
            self._client.create(REASSIGNMENT, json.dumps(asked).encode(), makepath=True)
        except _exceptions().NodeExistsError:
            raise CannotRepair(
                f"Another reassignment is under way ({REASSIGNMENT} is there): "
                f"{', '.join(self.under_way())}. Wait until it has ended, and run this again."
            ) from None

    def wait(self, limit_s: float) -> dict[str, tuple[int, ...]]:
        """Comes back when the controller is done, or when the time is over: with what is left."""
        deadline = time.monotonic() + limit_s
        while left := self.under_way():
            if time.monotonic() + _PAUSE_S > deadline:
                break
            time.sleep(_PAUSE_S)
        return left

    def _json(self, path: str) -> dict[str, Any] | None:
        """What a node holds; None if it is not there, or not any more."""
        try:
            data, _ = self._client.get(path)
        except _exceptions().NoNodeError:
            return None
        found: dict[str, Any] = json.loads(data)
        return found


@contextmanager
def connected(hosts: str, limit_s: float = 10.0) -> Iterator[ZooKeeper]:
    """`hosts` as zookeeper.connect has them: "zk-1:2181,zk-2:2181/kafka". Raises CannotRepair."""
    try:
        kazoo = importlib.import_module("kazoo.client")
        timeouts = importlib.import_module("kazoo.handlers.threading")
    except ImportError:
        raise CannotRepair(
            "Kelpie speaks to ZooKeeper through the library kazoo, which is not installed: pip install "
            "'kelpie-kafka[zookeeper]'."
        ) from None
    # Everything worth saying is said by us; kazoo reports each attempt.
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    try:
        client = kazoo.KazooClient(hosts, timeout=limit_s)
    except ValueError as error:
        raise CannotRepair(
            f"{hosts!r} is no address of ZooKeeper: {error}. Write HOST:PORT[/PATH]."
        ) from None
    try:
        client.start(timeout=limit_s)
        if not client.exists("/brokers/ids"):
            raise CannotRepair(
                f"ZooKeeper at {hosts} keeps no Kafka cluster at this path: /brokers/ids is not there. Does "
                "zookeeper.connect of the brokers end in a path (zk-1:2181/kafka)?"
            )
        yield ZooKeeper(client)
    except timeouts.KazooTimeoutError:
        raise CannotRepair(f"ZooKeeper at {hosts} did not answer within {limit_s:g} s.") from None
    except _exceptions().KazooException as error:
        said = str(error) or type(error).__name__
        raise CannotRepair(f"ZooKeeper at {hosts} refused or went away: {said}.") from None
    finally:
        client.stop()
        client.close()


def _exceptions() -> Any:
    return importlib.import_module("kazoo.exceptions")
