"""Consumers of Kafka 0.8 on the lab's brokers and a real ZooKeeper: where the scenarios about them begin.

The lab's brokers do not know ZooKeeper, so `ZookeeperCluster` writes what brokers of 0.9 write there.
Consumers are Kelpie's own, faithful to Kafka 0.8.2.2. Consumer ids hold the time of the start: who starts
first is first in the order by which members share partitions.
"""

import asyncio
import json
from functools import partial
from typing import TYPE_CHECKING, Any

from kelpie.client.background import in_background
from kelpie.client.zookeeper import connected
from kelpie.client.zookeeper_consumer import ZookeeperGroupConsumer
from kelpie.client.zookeeper_nodes import TreeReader
from kelpie.consumer.positions.reset_policy import ResetPolicy
from kelpie.lab.cluster import Cluster
from kelpie.lab.scenarios.producing import produce
from kelpie.lab.scenarios.stage import Stage
from kelpie.lab.scenarios.zookeeper_log import ZookeeperConsumerLog
from kelpie.zookeeper.assignment import consumer_of
from kelpie.zookeeper.config import Behaviour, Subscription, ZookeeperConsumerConfig
from kelpie.zookeeper.effects import ApplicationEvent, RebalanceFailure
from kelpie.zookeeper.nodes import BROKERS, topic_path
from kelpie.zookeeper.steps import RebalanceFailed, RecordedStep, SessionExpired, Step

if TYPE_CHECKING:
    from typing import Self

GROUP, TOPIC = "billing", "orders"
KAFKA_0_9 = ("0.9",)
RECORDS = 20
"""In each partition."""
LASTING_MS = 1_800_000
"""A session that outlives the scenario, and its `--hold`."""
PATIENT: dict[str, Any] = {"rebalance_max_retries": 10_000, "rebalance_backoff_ms": 200}
"""Settings of a consumer that does not give up."""
_QUICK: dict[str, Any] = {"session_timeout_ms": 6_000, "auto_commit_interval_ms": 300, **PATIENT}
_EARLIEST = ResetPolicy.parse("earliest")
_LIMIT_S = 20.0
_POLL_S = 0.1


class ZookeeperCluster:
    """One broker of the lab, a topic with records in it, and the nodes of both in ZooKeeper."""

    def __init__(self, stage: Stage, cluster: Cluster, hosts: str, partitions: int) -> None:
        self.stage, self.cluster, self.hosts, self.partitions = stage, cluster, hosts, partitions

    @classmethod
    async def start(cls, stage: Stage, partitions: int) -> "Self":
        cluster = await stage.cluster(1)
        cluster.create_topic(TOPIC, partitions)
        await produce(stage, cluster, TOPIC, RECORDS)
        hosts = await stage.zookeeper()
        opened = cls(stage, cluster, hosts, partitions)
        await in_background(opened._register)
        return opened

    def _register(self) -> None:
        """Not in a session of the broker's: it lives as long as the scenario."""
        with connected(self.hosts, _LIMIT_S, of_kafka=False) as client:
            for node_id, endpoint in self.cluster.endpoints.items():
                broker = {"version": 1, "host": endpoint.host, "port": endpoint.port, "jmx_port": -1}
                value = json.dumps({**broker, "timestamp": str(self.stage.environment.now_ms())})
                client.create(f"{BROKERS}/{node_id}", value.encode(), makepath=True)
            replicas = {str(number): list(self.cluster.node_ids) for number in range(self.partitions)}
            topic = json.dumps({"version": 1, "partitions": replicas})
            client.create(topic_path(TOPIC), topic.encode(), makepath=True)
            leader = {"leader": self.cluster.node_ids[0], "isr": self.cluster.node_ids}
            state = json.dumps({"controller_epoch": 1, "version": 1, "leader_epoch": 0, **leader})
            for number in range(self.partitions):
                path = f"{topic_path(TOPIC)}/partitions/{number}/state"
                client.create(path, state.encode(), makepath=True)

    async def owners(self, group: str = GROUP) -> dict[int, str]:
        """Partition → consumer id, as ZooKeeper has them."""
        values = await in_background(partial(self._values, f"/consumers/{group}/owners/{TOPIC}"))
        return {number: consumer_of(value) for number, value in values.items()}

    async def offsets(self, group: str = GROUP) -> dict[int, int]:
        """Partition → committed offset."""
        values = await in_background(partial(self._values, f"/consumers/{group}/offsets/{TOPIC}"))
        return {number: int(value) for number, value in values.items()}

    def _values(self, folder: str) -> dict[int, str]:
        with connected(self.hosts, _LIMIT_S, read_only=True) as client:
            nodes = TreeReader(client, self.hosts, _LIMIT_S).tree(folder) or {}
        return {int(path.rpartition("/")[2]): node.value.decode() for path, node in nodes.items()}

    async def until_read(self, *members: "ZookeeperMember") -> bool:
        """These members own all partitions, have read them, and have committed that."""

        async def is_so() -> bool:
            shares = [member.owned for member in members]
            everything = sorted(number for share in shares for number in share)
            is_shared = all(shares) and everything == list(range(self.partitions))
            return is_shared and all(member.has_read_all for member in members)

        if not await self.stage.until(is_so, bool):
            return False
        read = dict.fromkeys(range(self.partitions), RECORDS)
        committed = await self.stage.until(
            lambda: self.offsets(members[0].group), lambda offsets: offsets == read
        )
        return committed == read


class ZookeeperMember:
    """An application with a consumer of Kafka 0.8. `settings` are those of `ZookeeperConsumerConfig`.

    `has_log`: its log is among the files of the scenario. `hosts`: where it finds ZooKeeper.
    """

    def __init__(
        self,
        cluster: ZookeeperCluster,
        name: str,
        *,
        group: str = GROUP,
        has_log: bool = True,
        hosts: str | None = None,
        **settings: Any,
    ) -> None:
        self.name, self.group = name, group
        self.failed_at_start = False
        self._stage = cluster.stage
        config = ZookeeperConsumerConfig(
            group_id=group,
            subscription=Subscription({TOPIC: 1}),
            behaviour=Behaviour.FAITHFUL,
            **{**_QUICK, **settings},
        )
        hosts = hosts or cluster.hosts
        self._log = ZookeeperConsumerLog(self._stage.logs / f"{name}.log", hosts, config) if has_log else None
        self._consumer = ZookeeperGroupConsumer(
            hosts,
            config,
            auto_offset_reset=_EARLIEST,
            on_event=self._heard,
            on_step=self._stepped,
        )
        if self._log is not None:
            self._log.begin(self.consumer_id, self._stage.environment.now_ms())
        self._polling: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, cluster: ZookeeperCluster, name: str, **options: Any) -> "Self":
        """Its consumer takes part in the group from now on."""
        member = cls(cluster, name, **options)
        member._stage.at_end(member._consumer.crash)
        await member._consumer.start(_LIMIT_S)
        member._polling = member._stage.actor(member._poll())
        return member

    async def kill(self) -> None:
        """As kill -9 does: ZooKeeper keeps its session until the timeout."""
        self._stop_polling()
        await self._consumer.crash()

    async def leave(self) -> None:
        self._stop_polling()
        await self._consumer.close()

    @property
    def consumer_id(self) -> str:
        return self._consumer.consumer_id

    @property
    def owned(self) -> list[int]:
        return sorted(partition.partition for partition in self._consumer.owned)

    @property
    def has_read_all(self) -> bool:
        """It owns partitions, and has read all records of each."""
        offsets = self._consumer.owned.values()
        return bool(offsets) and all(offset >= RECORDS for offset in offsets)

    async def until_failed(self) -> bool:
        return await self.until_seen(RebalanceFailed)

    async def until_expired(self) -> bool:
        return await self.until_seen(SessionExpired)

    async def until_seen(self, kind: type[Step], times: int = 1) -> bool:
        async def seen() -> int:
            return sum(isinstance(recorded.step, kind) for recorded in self._consumer.steps)

        return await self._stage.until(seen, lambda count: count >= times) >= times

    async def until_owns(self, *partitions: int) -> bool:
        async def owned() -> list[int]:
            return self.owned

        return await self._stage.until(owned, lambda numbers: numbers == [*partitions]) == [*partitions]

    def _heard(self, event: ApplicationEvent) -> None:
        if isinstance(event, RebalanceFailure):
            self.failed_at_start = True
            self._stop_polling()

    def _stepped(self, recorded: RecordedStep) -> None:
        if self._log is not None:
            self._log.step(recorded, self.consumer_id)

    def _stop_polling(self) -> None:
        if self._polling is not None:
            self._polling.cancel()
            self._polling = None

    async def _poll(self) -> None:
        while True:
            await self._consumer.poll(_POLL_S)


async def gather(cluster: ZookeeperCluster, *names: str, **options: Any) -> list[ZookeeperMember]:
    """Members that start one after the other; when this returns, all partitions are read."""
    members = [await ZookeeperMember.start(cluster, name, **options) for name in names]
    shares = "all partitions have one owner, and are read"
    cluster.stage.expect(await cluster.until_read(*members), shares)
    return members
