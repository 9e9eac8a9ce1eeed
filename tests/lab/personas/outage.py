"""The state of the recorded outage, on any cluster of three brokers, and every question that shows it.

The recording calls its brokers 0, 1 and 2; here they are 1, 2 and 3. Brokers 2 and 3 are the ones that die.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from kelpie.lab import SyncCluster
from kelpie.real.cluster import RealCluster
from kelpie.wire.api.find_coordinator import FindCoordinatorRequest
from kelpie.wire.api.metadata import MetadataRequest, MetadataRequestTopic
from tests.evidence import truth, unpacked
from tests.lab.personas.client import Client
from tests.lab.personas.cluster import OFFSETS_TOPIC, Cluster, group_on

RECORDING = "kafka-0.9.0.1-coordinator-outage"
PARTITIONS = 50
DATA_TOPIC = "orders"
TOPICS = (OFFSETS_TOPIC, DATA_TOPIC)
CONFIG = {
    "auto.leader.rebalance.enable": False,
    "default.replication.factor": 2,
    "offsets.topic.num.partitions": PARTITIONS,
    "offsets.topic.replication.factor": 2,
    "replica.high.watermark.checkpoint.interval.ms": 200,
    "replica.lag.time.max.ms": 2000,
}
"""The offsets topic as in the recording; two settings that make it shorter; and the balancing of leaders is
off, for it begins five seconds after a controller does, whenever that was."""
COMPACTED = {"cleanup.policy": "compact", "compression.type": "uncompressed", "segment.bytes": "104857600"}

_ROW = re.compile(r"Topic: (\S+)\tPartition: (\d+)\tLeader: (\S+)\tReplicas: (\S+)\tIsr: (\S*)")
_FOUND = re.compile(
    r"responseBody=\{error_code=(\d+),coordinator=\{node_id=(-?\d+),host=(.*?),port=(-?\d+)\}\}"
)


@dataclass(frozen=True)
class Row:
    """One partition as `kafka-topics --describe` told of it, with brokers counted from 1."""

    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


def described(when: str) -> dict[str, dict[int, Row]]:
    """By topic and partition; `when` is "before" or "during"."""
    text = (unpacked(RECORDING) / "describe" / f"describe-{when}.txt").read_text()
    topics: dict[str, dict[int, Row]] = {}
    for topic, partition, leader, replicas, isr in _ROW.findall(text):
        row = Row(int(leader) + 1, _nodes(replicas), _nodes(isr))
        topics.setdefault(topic, {})[int(partition)] = row
    return topics


def hit_groups() -> dict[str, bool]:
    """The groups of the recording, and whether the outage hit them."""
    lines = (truth(RECORDING) / "groups.txt").read_text().splitlines()
    return {group: verdict == "hit" for group, _, verdict in (line.split() for line in lines)}


def coordinators_heard(group: str) -> set[tuple[int, int, str]]:
    """Error, node and host in the answers to FindCoordinator that the group's client logged in the outage."""
    text = (unpacked(RECORDING) / "logs" / f"client-{group}.during.log").read_text()
    return {(int(code), int(node), host) for code, node, host, _ in _FOUND.findall(text)}


def _nodes(text: str) -> tuple[int, ...]:
    return tuple(int(node) + 1 for node in text.split(",") if node)


def prepare(brokers: SyncCluster | RealCluster) -> None:
    """Both topics, with the replicas where the recording has them."""
    rows = described("before")
    for topic, config in ((OFFSETS_TOPIC, COMPACTED), (DATA_TOPIC, {})):
        replicas = {partition: row.replicas for partition, row in rows[topic].items()}
        if isinstance(brokers, SyncCluster):
            brokers.create_topic(topic, config=config, assignment=replicas)
        else:
            _create(brokers, topic, replicas, config)


def _create(
    real: RealCluster, topic: str, replicas: Mapping[int, Sequence[int]], config: Mapping[str, str]
) -> None:
    listed = ",".join(":".join(map(str, replicas[partition])) for partition in sorted(replicas))
    settings = [word for name, value in config.items() for word in ("--config", f"{name}={value}")]
    made = real.tool("kafka-topics", "--create", "--topic", topic, "--replica-assignment", listed, *settings)
    assert made.status == 0, made.stdout + made.stderr


def is_on_disk(brokers: SyncCluster | RealCluster, node: int, partition: int, offset: int) -> bool:
    """Whether a broker, should it be killed, would come back with this much of the offsets topic.

    Kafka 0.9 trusts its last checkpoint of the high watermark, and loads groups only as far as that.
    """
    if isinstance(brokers, SyncCluster):
        return True
    checkpoint = brokers.find(node).data / "replication-offset-checkpoint"
    rows = [line.split() for line in checkpoint.read_text().splitlines()] if checkpoint.exists() else []
    return [OFFSETS_TOPIC, str(partition), str(offset)] in rows


def metadata(client: Client, *topics: str, kept: bool = True) -> Any:
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic) for topic in topics])
    return (client.ask if kept else client.peek)(asked, 0)


def settled(cluster: Cluster, alive: Sequence[int], *, in_sync: bool = True) -> None:
    """All who live have heard who lives, who leads, and that whoever lives is in sync.

    The last takes 0.9 five to eight seconds: for so long a leader keeps to itself that its ISR has grown.
    """
    for node in alive:
        with Client(cluster.ports[node - 1], cluster.transcript) as client:
            ask = partial(metadata, client, *TOPICS, kept=False)
            cluster.until(ask, lambda answer: _is_settled(answer, alive, in_sync))


def _is_settled(answer: Any, alive: Sequence[int], in_sync: bool) -> bool:
    if sorted(broker.node_id for broker in answer.brokers) != sorted(alive) or len(answer.topics) != 2:
        return False
    for topic in answer.topics:
        if topic.error_code != 0:
            return False
        for partition in topic.partitions:
            # Version 0 names living replicas only: where there is one, it must lead, and all be in sync.
            there = set(partition.replica_nodes)
            if there and partition.leader_id not in there:
                return False
            if in_sync and set(partition.isr_nodes) != there:
                return False
            if not there and partition.leader_id != -1:
                return False
    return True


def ask_everything(
    cluster: Cluster, alive: Sequence[int], *, in_sync: bool = True
) -> dict[int, dict[int, Any]]:
    """Metadata of both topics, and the coordinator of a group on every partition, at everyone who lives.

    Metadata tell of ISRs: they are not asked for while those are not settled.
    """
    heard: dict[int, dict[int, Any]] = {}
    for node in alive:
        with Client(cluster.ports[node - 1], cluster.transcript, f"at {node}") as client:
            if in_sync:
                metadata(client, *TOPICS)
                metadata(client, OFFSETS_TOPIC)
            heard[node] = {
                partition: client.ask(FindCoordinatorRequest(key=group_on(partition, PARTITIONS)), 0)
                for partition in range(PARTITIONS)
            }
    return heard
