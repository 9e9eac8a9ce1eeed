"""Kelpie's consumers of Kafka 0.8 in tests, and what ZooKeeper has of their group."""

import asyncio
import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kelpie.client.zookeeper_consumer import ZookeeperGroupConsumer
from kelpie.client.zookeeper_consumer.session import ZookeeperSession
from kelpie.consumer.positions.reset_policy import ResetPolicy
from kelpie.zookeeper.config import Subscription, ZookeeperConsumerConfig
from kelpie.zookeeper.effects import ApplicationEvent
from kelpie.zookeeper.steps import Step

EARLIEST = ResetPolicy.parse("earliest")


def config(group: str, topic: str, **settings: Any) -> ZookeeperConsumerConfig:
    quick = {
        "session_timeout_ms": 3_000,
        "rebalance_backoff_ms": 200,
        "auto_commit_interval_ms": 200,
        "recovery_backoff_ms": 200,
    }
    return ZookeeperConsumerConfig(
        group_id=group, subscription=Subscription({topic: 1}), **{**quick, **settings}
    )


@dataclass
class Member:
    """A consumer with what it told and what it read."""

    consumer: ZookeeperGroupConsumer
    events: list[ApplicationEvent]
    values: list[bytes] = field(default_factory=list)

    @classmethod
    async def start(
        cls, hosts: str, group: str, topic: str, *, reset: ResetPolicy = EARLIEST, **settings: Any
    ) -> "Member":
        events: list[ApplicationEvent] = []
        consumer = await ZookeeperGroupConsumer.open(
            hosts,
            config(group, topic, **settings),
            limit_s=30,
            auto_offset_reset=reset,
            on_event=events.append,
        )
        return cls(consumer, events)

    async def read(self, limit_s: float = 0.05) -> None:
        records = await self.consumer.poll(limit_s)
        self.values += [record.value or b"" for record in records]

    def has_seen(self, kind: type[Step]) -> bool:
        return any(isinstance(recorded.step, kind) for recorded in self.consumer.steps)


@dataclass
class GroupTree:
    """Nodes of one group and one topic, by a client of the test's own."""

    client: Any
    group: str
    topic: str

    def members(self) -> set[str]:
        return set(self._children(f"/consumers/{self.group}/ids"))

    def owners(self) -> dict[int, tuple[str, int]]:
        """For each partition the name in its owner node, and the session of the node."""
        folder = f"/consumers/{self.group}/owners/{self.topic}"
        owners = {}
        for name in self._children(folder):
            node = self._get(f"{folder}/{name}")
            if node is not None:
                owners[int(name)] = (node[0].decode().rpartition("-")[0], node[1].ephemeralOwner)
        return owners

    def shares(self) -> dict[str, set[int]]:
        shares: dict[str, set[int]] = {}
        for partition, (consumer, _) in self.owners().items():
            shares.setdefault(consumer, set()).add(partition)
        return shares

    def offsets(self) -> dict[int, int]:
        folder = f"/consumers/{self.group}/offsets/{self.topic}"
        nodes = {int(name): self._get(f"{folder}/{name}") for name in self._children(folder)}
        return {partition: int(node[0]) for partition, node in nodes.items() if node is not None}

    def _children(self, path: str) -> list[str]:
        return list(self.client.get_children(path)) if self.client.exists(path) else []

    def _get(self, path: str) -> Any:
        try:
            return self.client.get(path)
        except Exception as error:
            if type(error).__name__ == "NoNodeError":
                return None
            raise


async def until(condition: Callable[[], object], *members: Member, limit_s: float = 60.0) -> None:
    """Poll all members until the condition holds; fail when it does not in time."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, f"did not come true within {limit_s} s"
        if members:
            await asyncio.gather(*(member.read() for member in members))
        else:
            await asyncio.sleep(0.02)


def expire(hosts: str, session: ZookeeperSession) -> None:
    """End a session as its timeout does: another client takes it over, and closes it."""
    taken_over = session._client.client_id
    other = importlib.import_module("kazoo.client").KazooClient(hosts, client_id=taken_over)
    other.start(timeout=30)
    other.stop()
    other.close()
