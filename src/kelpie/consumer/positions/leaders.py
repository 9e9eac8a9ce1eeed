"""Which leader to ask about which partition."""

from collections.abc import Iterable

from kelpie.consumer.desk import Desk, Turn
from kelpie.consumer.metadata import Metadata
from kelpie.consumer.outcome import Place
from kelpie.consumer.positions.assignment import Assignment
from kelpie.model.names import TopicPartition


def by_leader(
    turn: Turn,
    desk: Desk,
    metadata: Metadata,
    assignment: Assignment,
    partitions: Iterable[TopicPartition],
) -> dict[Place, list[TopicPartition]]:
    """Partitions by the broker that leads them.

    One without a leader waits for metadata, one whose leader has just failed for the back-off.
    """
    grouped: dict[Place, list[TopicPartition]] = {}
    later = []
    for partition in partitions:
        place = desk.nodes.broker(metadata.leader(partition).node_id)
        if place is None:
            metadata.outdated()
        elif desk.nodes.is_unavailable(place, turn.now):
            metadata.outdated()  # Perhaps another one leads by now.
            later.append(partition)
        else:
            grouped.setdefault(place, []).append(partition)
    assignment.not_before(later, turn.now + desk.config.retry_backoff_ms)
    return grouped
