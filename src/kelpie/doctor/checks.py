"""Commands of Kafka's own tools that show a finding without Kelpie. None of them changes anything.

Of a group: `kelpie.doctor.membership.describing`.
"""

from kelpie.cluster import ClusterView, commands
from kelpie.model.names import TopicPartition
from kelpie.observations import OFFSETS_TOPIC


def topic(cluster: ClusterView, name: str, *options: str) -> str:
    """`--unavailable-partitions` and the like show only partitions of one kind."""
    return commands.kafka("kafka-topics", cluster, "--describe", "--topic", name, *options)


def producers(cluster: ClusterView, name: TopicPartition) -> str:
    """The transactions that are open in a partition (the tool is there since 3.0)."""
    words = ("describe-producers", "--topic", name.topic, "--partition", name.partition)
    return commands.kafka("kafka-transactions", cluster, *words)


def broker(cluster: ClusterView, address: str) -> str:
    """Whether one broker can be connected to; it asks for nothing but the broker's versions."""
    return commands.kafka_at("kafka-broker-api-versions", address or cluster.bootstrap)


def offsets_topic(cluster: ClusterView, *options: str) -> str:
    return topic(cluster, OFFSETS_TOPIC, *options)
