"""The leaders of partitions."""

from collections.abc import Iterable

from kelpie.consumer.effects import BrokerNode, Effects
from kelpie.consumer.metadata import ConsumerMetadata
from kelpie.consumer.pending_requests import PendingRequests
from kelpie.consumer.positions.subscription_state import SubscriptionState
from kelpie.model.names import TopicPartition


def by_leader(
    effects: Effects,
    requests: PendingRequests,
    metadata: ConsumerMetadata,
    assignment: SubscriptionState,
    partitions: Iterable[TopicPartition],
) -> dict[BrokerNode, list[TopicPartition]]:
    """Partitions by the broker that leads them.

    A partition without a leader waits for metadata. If the leader has just failed, it waits for the back-off.
    """
    grouped: dict[BrokerNode, list[TopicPartition]] = {}
    later = []
    for partition in partitions:
        node = requests.nodes.broker(metadata.leader(partition).node_id)
        if node is None:
            metadata.outdated()
        elif requests.nodes.is_unavailable(node, effects.now):
            metadata.outdated()  # Another broker may be the leader by now.
            later.append(partition)
        else:
            grouped.setdefault(node, []).append(partition)
    assignment.not_before(later, effects.now + requests.config.retry_backoff_ms)
    return grouped
