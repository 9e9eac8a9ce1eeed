from dataclasses import dataclass
from typing import Any

from kelpie.errors import ErrorCode, describe
from kelpie.questions.question import Question
from kelpie.wire.api.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kelpie.wire.schema import NO_UUID

_INTERNAL = {"__consumer_offsets", "__transaction_state"}


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    error: int
    leader: int | None
    epoch: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicFacts:
    error: int
    topic_id: bytes | None
    partitions: dict[int, PartitionFacts]


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    brokers: dict[int, tuple[str, int]]
    topics: dict[str, TopicFacts]
    error: int = 0


@dataclass(frozen=True, slots=True)
class AskMetadata(Question[ClusterFacts]):
    """Brokers, and the topics named; None: all topics.

    Before version 4 a request for a topic creates it, if the broker is set so; before version 7 (Kafka 2.1)
    a request for an internal topic creates it in any case. Unless that is wished, all topics are asked for
    then, and those that are wanted are picked out of the answer.
    """

    topics: tuple[str, ...] | None
    may_create: bool = False

    api = MetadataRequest

    def names_topics(self, version: int) -> bool:
        """Whether the request names the topics; if not, it asks for all topics."""
        if self.topics is None:
            return False
        harmless_from = 7 if _INTERNAL & set(self.topics) else 4
        return not self.topics or version >= harmless_from or self.may_create

    def request(self, version: int) -> MetadataRequest:
        if not self.names_topics(version):
            return MetadataRequest(topics=[] if version == 0 else None)
        # The empty list asks for all topics in version 0, and for none later.
        topics = [MetadataRequestTopic(name=topic) for topic in self.topics or ()]
        if version < 4:
            return MetadataRequest(topics=topics)
        return MetadataRequest(topics=topics, allow_auto_topic_creation=self.may_create)

    def answer(self, response: MetadataResponse, _version: int) -> ClusterFacts:
        facts = {topic.name: _topic(topic) for topic in response.topics if topic.name}
        wanted = facts.keys() if self.topics is None else set(self.topics)
        topics = {name: row for name, row in facts.items() if name in wanted}
        for missing in wanted - facts.keys():
            topics[missing] = TopicFacts(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None, {})
        return ClusterFacts(
            {broker.node_id: (broker.host, broker.port) for broker in response.brokers},
            topics,
            response.error_code,
        )

    def tell(self, answer: ClusterFacts) -> str:
        if answer.error:
            return describe(answer.error)
        parts = [f"brokers {', '.join(map(str, sorted(answer.brokers)))}" if answer.brokers else "no broker"]
        for name, topic in sorted(answer.topics.items()):
            if topic.error:
                parts.append(f"{name}: {describe(topic.error)}")
                continue
            leaderless = sum(facts.leader is None for facts in topic.partitions.values())
            said = f"{name}: {len(topic.partitions)} partitions"
            parts.append(f"{said}, {leaderless} without a leader" if leaderless else said)
        return "; ".join(parts)

    def __str__(self) -> str:
        return f"Metadata({'all topics' if self.topics is None else ', '.join(self.topics)})"


def _topic(topic: Any) -> TopicFacts:
    partitions = {
        row.partition_index: PartitionFacts(
            row.error_code,
            row.leader_id if row.leader_id >= 0 else None,
            row.leader_epoch if row.leader_epoch >= 0 else None,
            tuple(row.replica_nodes),
            tuple(row.isr_nodes),
        )
        for row in topic.partitions
    }
    return TopicFacts(topic.error_code, topic.topic_id if topic.topic_id != NO_UUID else None, partitions)
