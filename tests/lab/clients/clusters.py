"""The two clusters that every client meets: the lab, and Kafka 4.3.1. One interface, the same settings.

What a test wants to know of the cluster itself (leaders, coordinators, states of groups) is asked over the
wire, of both in the same way, and of the brokers rather than of a client that may have its own opinion.
"""

import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from kelpie.lab import SyncCluster
from kelpie.real.cluster import RealCluster
from kelpie.wire.api.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kelpie.wire.api.describe_groups import DescribedGroup, DescribeGroupsRequest
from kelpie.wire.api.find_coordinator import FindCoordinatorRequest
from kelpie.wire.api.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kelpie.wire.api.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tests.lab.client import Client

BROKERS = 3
SETTINGS: Mapping[str, object] = {
    "broker.heartbeat.interval.ms": 300,
    "broker.session.timeout.ms": 3000,
    "default.replication.factor": BROKERS,
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 500,
    "min.insync.replicas": 2,
    "offsets.topic.num.partitions": 5,
    "offsets.topic.replication.factor": BROKERS,
    "transaction.state.log.min.isr": 2,
    "transaction.state.log.num.partitions": 2,
    "transaction.state.log.replication.factor": BROKERS,
}


class Kafka(ABC):
    """Brokers 1, 2 and 3. What a test has killed, `heal` starts again."""

    kind: str

    def __init__(self) -> None:
        self._down: set[int] = set()

    @property
    @abstractmethod
    def bootstrap_servers(self) -> str: ...

    @abstractmethod
    def _kill(self, node: int) -> None: ...

    @abstractmethod
    def _start(self, node: int) -> None: ...

    # Brokers.

    @property
    def alive(self) -> list[int]:
        return [node for node in range(1, BROKERS + 1) if node not in self._down]

    def kill(self, node: int) -> None:
        """It crashes: no goodbye to anybody."""
        self._down.add(node)
        self._kill(node)

    def start(self, node: int) -> None:
        """It comes back: same port, same data."""
        self._start(node)
        self._down.discard(node)

    def heal(self) -> None:
        for node in sorted(self._down):
            self.start(node)
        for node in self.alive:
            self.wait_until(partial(self._knows_all_brokers, node))

    def _knows_all_brokers(self, node: int) -> bool:
        return len(self._metadata(node).brokers) == BROKERS

    def _ask(self, node: int, message: Any, version: int) -> Any:
        with Client(self, node - 1) as connection:
            return connection.ask(message, version)

    def _metadata(self, node: int, topic: str | None = None) -> MetadataResponse:
        asked = [] if topic is None else [MetadataRequestTopic(name=topic)]
        response = self._ask(node, MetadataRequest(topics=asked, allow_auto_topic_creation=False), 9)
        assert isinstance(response, MetadataResponse)
        return response

    # Topics.

    def create_topic(self, partitions: int = 1, **config: object) -> str:
        """A topic with a name of its own and a replica on every broker, known to all of them."""
        name = f"hay-{uuid.uuid4().hex[:8]}"
        new = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=BROKERS,
            assignments=[],
            configs=[
                CreatableTopicConfig(name=key.replace("_", "."), value=str(value))
                for key, value in config.items()
            ],
        )
        (created,) = self._ask(self.alive[0], CreateTopicsRequest(topics=[new]), 5).topics
        assert created.error_code == 0, created
        for node in self.alive:
            self.wait_until(partial(self.knows_leaders, name, partitions, node))
        return name

    def knows_leaders(self, topic: str, partitions: int, node: int) -> bool:
        """Whether this broker has heard of a living leader for so many partitions."""
        return len(self.leaders(topic, node)) == partitions

    def leaders(self, topic: str, node: int | None = None) -> dict[int, int]:
        """The partitions that are led by a living broker, as one broker has heard."""
        metadata = self._metadata(node or self.alive[0], topic)
        return {
            partition.partition_index: partition.leader_id
            for partition in metadata.topics[0].partitions
            if partition.error_code == 0 and partition.leader_id in self.alive
        }

    def leader_of(self, topic: str, partition: int) -> int:
        self.wait_until(lambda: partition in self.leaders(topic))
        return self.leaders(topic)[partition]

    def in_sync(self, topic: str) -> bool:
        """Whether every replica of every partition is in its ISR."""
        return all(
            sorted(partition.isr_nodes) == sorted(partition.replica_nodes)
            for partition in self._metadata(self.alive[0], topic).topics[0].partitions
        )

    # Groups.

    def coordinator_of(self, group: str) -> int:
        found: list[int] = []

        def look() -> bool:
            response = self._ask(self.alive[0], FindCoordinatorRequest(key=group), 1)
            if response.error_code == 0 and response.node_id in self.alive:
                found.append(response.node_id)
            return bool(found)

        self.wait_until(look)
        return found[0]

    def group(self, group: str) -> DescribedGroup:
        request = DescribeGroupsRequest(groups=[group])
        (described,) = self._ask(self.coordinator_of(group), request, 4).groups
        assert isinstance(described, DescribedGroup)
        return described

    def is_stable(self, group: str, members: int) -> bool:
        described = self.group(group)
        return described.group_state == "Stable" and len(described.members) == members

    def committed(self, group: str) -> dict[tuple[str, int], int]:
        (answer,) = self._ask(
            self.coordinator_of(group),
            OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)]),
            8,
        ).groups
        return {
            (topic.name, partition.partition_index): partition.committed_offset
            for topic in answer.topics
            for partition in topic.partitions
        }

    @staticmethod
    def wait_until(condition: Callable[[], object], limit_s: float = 90.0) -> None:
        deadline = time.monotonic() + limit_s
        while not condition():
            assert time.monotonic() < deadline, f"did not come true within {limit_s} s"
            time.sleep(0.02)


class Lab(Kafka):
    kind = "lab"

    def __init__(self, cluster: SyncCluster) -> None:
        super().__init__()
        self.cluster = cluster

    @property
    def bootstrap_servers(self) -> str:
        return self.cluster.bootstrap_servers

    def _kill(self, node: int) -> None:
        self.cluster.kill(node)

    def _start(self, node: int) -> None:
        self.cluster.start(node)


class Real(Kafka):
    kind = "real"

    def __init__(self, cluster: RealCluster) -> None:
        super().__init__()
        self.cluster = cluster

    @property
    def bootstrap_servers(self) -> str:
        return self.cluster.bootstrap_servers

    def _kill(self, node: int) -> None:
        self.cluster.kill(node)

    def _start(self, node: int) -> None:
        self.cluster.start(node)
