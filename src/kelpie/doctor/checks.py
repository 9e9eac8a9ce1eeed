"""Commands of Kafka's own tools that show a finding without Kelpie. None of them changes anything.

Of a group: `kelpie.doctor.membership.describing`.
"""

from kelpie.cluster import ClusterView, commands
from kelpie.observations import OFFSETS_TOPIC


def topic(cluster: ClusterView, name: str, *options: str) -> str:
    """`--unavailable-partitions` and the like show only partitions of one kind."""
    return commands.kafka("kafka-topics", cluster, "--describe", "--topic", name, *options)


def offsets_topic(cluster: ClusterView, *options: str) -> str:
    return topic(cluster, OFFSETS_TOPIC, *options)
