"""Brokers and coordinators that went, came back or moved a moment ago.

Clients stand still for a while then, also after everything is there again: they look for the new leader or
coordinator, producers wait for the coordinator of their transactions, and what a transaction held up is read
again after its timeout. So a doctor is patient with a group whose brokers are failing over.
"""

from collections.abc import Iterable, Mapping, Sequence

from kelpie.cluster.outages import Outage
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import BrokerView, PartitionView

FAILOVER_MS = 60_000
"""As long as clients may take to come back. Producers wait for so long (max.block.ms), transactions last so
long (transaction.timeout.ms), and consumers look for a leader again sooner than that.
"""


def unsettled_brokers(
    brokers: Iterable[BrokerView], outages: Mapping[int, Sequence[Outage]], now: Instant
) -> frozenset[int]:
    """Those that are away, or have come back since a failover began."""
    away = {
        broker.node_id
        for broker in brokers
        if broker.alive is False or (broker.alive is None and bool(broker.reason))
    }
    back = {
        node
        for node, own in outages.items()
        if any(outage.until is not None and now - outage.until < FAILOVER_MS for outage in own)
    }
    return frozenset(away | back)


def moved_partitions(views: Iterable[Sequence[PartitionView]], now: Instant) -> frozenset[TopicPartition]:
    """Partitions whose leader was elected within a failover's time, by what surveys saw one after the other.

    `views`: of each partition all that are known. Those without a time or a leader epoch show nothing.
    """
    return frozenset(own[0].name for own in views if _has_moved(own, now))


def _has_moved(views: Sequence[PartitionView], now: Instant) -> bool:
    seen = [(view.leader_epoch, view.at) for view in views if view.at is not None and view.leader_epoch >= 0]
    newest = max((epoch for epoch, _ in seen), default=-1)
    if all(epoch == newest for epoch, _ in seen):
        return False
    return now - min(at for epoch, at in seen if epoch == newest) < FAILOVER_MS
