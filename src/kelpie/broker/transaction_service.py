"""The transaction coordinator of one broker: a shard for each partition of `__transaction_state` that it
leads.

Markers that end a transaction go to the leaders of its partitions, again and again until each has them: a
leader may be gone for a while. Then the shard hears that the transaction is complete.
"""

from kelpie.broker.host import Host
from kelpie.broker.image import TRANSACTIONS_TOPIC
from kelpie.broker.replica import Replica
from kelpie.broker.shard_host import CoordinatorService, ShardHost
from kelpie.coordinator.outcome import Outcome
from kelpie.coordinator.transactions import (
    BEHAVIOUR_2_8,
    BEHAVIOUR_3_9,
    BEHAVIOUR_4_3,
    MarkerRequest,
    TransactionConfig,
    TransactionOutcome,
    TransactionShard,
)
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.partitioning import partition_for
from kelpie.model.time import Instant

BEHAVIOUR = {"2.8": BEHAVIOUR_2_8, "3.9": BEHAVIOUR_3_9, "4.3": BEHAVIOUR_4_3}
RETRY_MS = 50


class TransactionHost(ShardHost):
    """A shard host that also sees to the markers."""

    def _replay(self, key: bytes, value: bytes | None, offset: int, producer_id: int) -> None:
        self.shard.replay(key, value)

    def _finish(self, outcome: Outcome, now: Instant) -> None:
        super()._finish(outcome, now)
        if isinstance(outcome, TransactionOutcome):
            for marker in outcome.markers:
                Marking(self, self._broker, marker).begin(now)

    def marked(self, marker: MarkerRequest, now: Instant) -> None:
        """All partitions have the marker."""
        if self.active:
            self.carry_out(self.shard.markers_written(marker.transactional_id, now), now)


class Marking:
    """The end of one transaction on its way to its partitions. It is there once it is committed there."""

    def __init__(self, host: TransactionHost, broker: Host, marker: MarkerRequest) -> None:
        self._host = host
        self._broker = broker
        self._marker = marker
        self._left = set(marker.partitions)
        self._under_way: dict[TopicPartition, tuple[int, int]] = {}
        """Leader and epoch that have it and wait for followers."""

    def begin(self, now: Instant) -> None:
        if self._left:
            self._attempt(now)
        else:
            self._host.marked(self._marker, now)

    def _attempt(self, now: Instant) -> None:
        """Writes it where it can be written now, and comes back for the rest."""
        if not self._host.active:
            return
        for partition in sorted(self._left):
            state = self._broker.image.partition(partition)
            led = (-1, -1) if state is None else (state.leader, state.leader_epoch)
            if self._under_way.get(partition) != led:
                self._under_way[partition] = led
                self._broker.write_marker(
                    self._marker,
                    partition,
                    now,
                    written=lambda at, partition=partition: self._written(partition, at),  # type: ignore[misc]
                    failed=lambda partition=partition, led=led: self._failed(partition, led),  # type: ignore[misc]
                )
        if self._left:
            key = ("marker", self._marker.transactional_id, self._marker.producer_id)
            self._broker.timers.set(key, now + RETRY_MS, self._attempt)

    def _written(self, partition: TopicPartition, now: Instant) -> None:
        if partition in self._left:
            self._left.discard(partition)
            if not self._left:
                key = ("marker", self._marker.transactional_id, self._marker.producer_id)
                self._broker.timers.cancel(key)
                self._host.marked(self._marker, now)

    def _failed(self, partition: TopicPartition, led: tuple[int, int]) -> None:
        if self._under_way.get(partition) == led:
            del self._under_way[partition]


class TransactionService(CoordinatorService):
    topic = TRANSACTIONS_TOPIC

    def follow_image(self, now: Instant) -> None:
        if self._broker.persona.name in BEHAVIOUR:
            super().follow_image(now)

    def _begin(self, index: int, replica: Replica, now: Instant) -> None:
        settings = self._broker.settings
        shard = TransactionShard(
            TransactionConfig(
                max_timeout_ms=settings.number("transaction.max.timeout.ms"),
                abort_interval_ms=settings.number(
                    "transaction.abort.timed.out.transaction.cleanup.interval.ms"
                ),
                expiration_ms=settings.number("transactional.id.expiration.ms"),
            ),
            BEHAVIOUR[self._broker.persona.name],
            self._next_producer_id,
            replica.leader_epoch,
        )
        host = self.hosts[index] = TransactionHost(self._broker, replica, shard, replica.leader_epoch)
        host.load(now)

    def _next_producer_id(self) -> int:
        controller = self._broker.links.controller()
        assert controller is not None, "asked for before the controller was known to be there"
        return controller.new_producer_id()

    def host_for(self, transactional_id: str) -> ShardHost | ErrorCode:
        """The shard of a transactional id, or why this broker cannot answer for it."""
        topic = self._broker.image.topic(TRANSACTIONS_TOPIC)
        if topic is None:
            return ErrorCode.NOT_COORDINATOR
        host = self.hosts.get(partition_for(transactional_id, len(topic.partitions)))
        if host is None:
            return ErrorCode.NOT_COORDINATOR
        if self._broker.links.controller() is None:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return host if host.active else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    @property
    def verifies(self) -> bool:
        """Whether leaders have to ask before they write records or offsets into a transaction."""
        behaviour = BEHAVIOUR.get(self._broker.persona.name)
        return behaviour is not None and behaviour.verifies_offsets
