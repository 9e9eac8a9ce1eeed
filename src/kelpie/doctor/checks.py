"""Commands of Kafka's own tools that show a finding without Kelpie. None of them changes anything.

Of a group: `kelpie.doctor.membership.describing`. Metrics are shown by curl, as Kafka has no tool for them.
"""

from collections.abc import Sequence

from kelpie.cluster import ClusterView, commands
from kelpie.model.names import TopicPartition
from kelpie.observations import OFFSETS_TOPIC

_MOST_PARTITIONS = 12


def topic(cluster: ClusterView, name: str, *options: str) -> str:
    """`--unavailable-partitions` and the like show only partitions of one kind."""
    return commands.kafka("kafka-topics", cluster, "--describe", "--topic", name, *options)


def log_starts(cluster: ClusterView, names: Sequence[TopicPartition]) -> str:
    """The first offset of each partition (the tool is there since 3.0)."""
    places = ",".join(f"{name.topic}:{name.partition}" for name in names[:_MOST_PARTITIONS])
    return commands.kafka("kafka-get-offsets", cluster, "--topic-partitions", places, "--time", "-2")


def members(cluster: ClusterView, group: str) -> str:
    return commands.kafka("kafka-consumer-groups", cluster, "--describe", "--group", group, "--members")


def node(cluster: ClusterView, path: str) -> str:
    """A node of KoP's mapping tree: the group that it names, or that there is no such node."""
    return commands.zookeeper_shell(cluster, "get", path)


def metrics(reader: str) -> str:
    """The metrics of a broker with KoP, read by another command. Where a broker shows them is not known."""
    return f"curl -sL http://BROKER:8080/metrics/ | {reader}"


def producers(cluster: ClusterView, name: TopicPartition) -> str:
    """The transactions that are open in a partition (the tool is there since 3.0)."""
    words = ("describe-producers", "--topic", name.topic, "--partition", name.partition)
    return commands.kafka("kafka-transactions", cluster, *words)


def broker(cluster: ClusterView, address: str) -> str:
    """Whether one broker can be connected to; it asks for nothing but the broker's versions."""
    return commands.kafka_at("kafka-broker-api-versions", address or cluster.bootstrap)


def offsets_topic(cluster: ClusterView, *options: str) -> str:
    return topic(cluster, OFFSETS_TOPIC, *options)
