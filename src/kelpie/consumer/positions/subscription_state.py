"""The assigned partitions, each with its state: Kafka's SubscriptionState."""

from collections.abc import Iterable, Iterator

from kelpie.consumer.positions.partition_state import FetchPosition, FetchState, TopicPartitionState
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant


class SubscriptionState:
    def __init__(self) -> None:
        self._states: dict[TopicPartition, TopicPartitionState] = {}

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        return tuple(self._states)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign these. A partition that was assigned before keeps its state."""
        self._states = {
            partition: self._states.get(partition) or TopicPartitionState()
            for partition in dict.fromkeys(partitions)
        }

    def __getitem__(self, partition: TopicPartition) -> TopicPartitionState:
        return self._states[partition]

    def get(self, partition: TopicPartition) -> TopicPartitionState | None:
        return self._states.get(partition)

    def __contains__(self, partition: TopicPartition) -> bool:
        return partition in self._states

    def __iter__(self) -> Iterator[tuple[TopicPartition, TopicPartitionState]]:
        return iter(tuple(self._states.items()))

    def in_state(self, wanted: FetchState) -> list[TopicPartition]:
        return [partition for partition, state in self._states.items() if state.fetch_state is wanted]

    def due(self, wanted: FetchState, now: Instant) -> list[TopicPartition]:
        """The partitions in this state whose back-off is over."""
        return [
            partition
            for partition, state in self._states.items()
            if state.fetch_state is wanted and now >= state.not_before
        ]

    def not_before(self, partitions: Iterable[TopicPartition], at: Instant) -> None:
        for partition in partitions:
            if partition in self._states:
                self._states[partition].not_before = at

    @property
    def all_have_positions(self) -> bool:
        return all(state.fetch_state.has_position for state in self._states.values())

    def positions(self) -> dict[TopicPartition, FetchPosition]:
        """The position of each partition that has one."""
        return {
            partition: state.position
            for partition, state in self._states.items()
            if state.position is not None and state.fetch_state.has_position
        }

    def revoking(self, partitions: Iterable[TopicPartition]) -> None:
        """Deliver no more records of these: they are about to be given up."""
        for partition in partitions:
            if partition in self._states:
                self._states[partition].being_revoked = True
