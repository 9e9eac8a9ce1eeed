"""Committed offsets of all groups of a shard, and those that transactions still hold back.

Only `replay`, `forget` and `end_transaction` change what is kept, and only as the log says. Beside them is
what is on its way into the log (`begin`, `settle`), and what Kafka 0.9 knew beyond it (`without_metadata`):
a replay does not restore these.

A transactional offset is pending until its producer's marker. On COMMIT it replaces the committed one only if
its record lies further on in the log: compaction may have kept an older one.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kelpie.coordinator.outcome import CoordinatorRecord
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.wire.offsets_topic import encode_key, encode_value
from kelpie.wire.offsets_topic.offset_commit import OffsetCommitKey, OffsetCommitValue
from kelpie.wire.schema import NO_UUID


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    offset: int
    leader_epoch: int
    metadata: str | None
    commit_timestamp: Instant
    expire_timestamp: Instant | None = None
    topic_id: bytes = NO_UUID
    record_offset: int = -1
    """Where the record lies in the log."""


Offsets = dict[TopicPartition, OffsetAndMetadata]


class OffsetStore:
    def __init__(self) -> None:
        self.committed: dict[str, Offsets] = {}
        self.pending: dict[int, dict[str, Offsets]] = {}
        """By producer id, then group."""
        self.without_metadata: set[tuple[str, TopicPartition]] = set()
        """Offsets that came without, though the log has an empty text. Only Kafka 0.9 remembers that."""
        self._on_the_way: dict[str, Counter[TopicPartition]] = {}
        self._on_the_way_in_transactions: dict[str, Counter[TopicPartition]] = {}

    # What the log says.

    def replay(
        self, group_id: str, partition: TopicPartition, committed: OffsetAndMetadata, producer_id: int
    ) -> None:
        offsets = self.committed if producer_id == -1 else self.pending.setdefault(producer_id, {})
        offsets.setdefault(group_id, {})[partition] = committed
        self.without_metadata.discard((group_id, partition))

    def forget(self, group_id: str, partition: TopicPartition) -> None:
        """A tombstone takes pending offsets along."""
        _remove(self.committed, group_id, partition)
        self.without_metadata.discard((group_id, partition))
        for producer_id, offsets in list(self.pending.items()):
            _remove(offsets, group_id, partition)
            if not offsets:
                del self.pending[producer_id]

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        ended = self.pending.pop(producer_id, {})
        if not committed:
            return
        for group_id, offsets in ended.items():
            kept = self.committed.setdefault(group_id, {})
            for partition, pending in offsets.items():
                if partition not in kept or pending.record_offset > kept[partition].record_offset:
                    kept[partition] = pending

    # What is on its way into the log.

    def begin(self, group_id: str, partitions: Iterable[TopicPartition], transactional: bool) -> None:
        """They stay on the way until they are replayed, or known to be lost."""
        where = self._on_the_way_in_transactions if transactional else self._on_the_way
        where.setdefault(group_id, Counter()).update(partitions)

    def settle(self, group_id: str, partitions: Iterable[TopicPartition], transactional: bool) -> None:
        where = self._on_the_way_in_transactions if transactional else self._on_the_way
        counts = where.get(group_id, Counter())
        for partition in partitions:
            counts[partition] -= counts[partition] > 0
        if not +counts:
            where.pop(group_id, None)

    def is_on_the_way(self, group_id: str, partition: TopicPartition) -> bool:
        return self._on_the_way.get(group_id, _NONE)[partition] > 0

    def any_on_the_way(self, group_id: str) -> bool:
        return group_id in self._on_the_way

    # Questions.

    def in_transaction(self, group_id: str, partition: TopicPartition) -> bool:
        if self._on_the_way_in_transactions.get(group_id, _NONE)[partition] > 0:
            return True
        return any(partition in offsets.get(group_id, ()) for offsets in self.pending.values())

    def has_transactions(self, group_id: str) -> bool:
        on_the_way = group_id in self._on_the_way_in_transactions
        return on_the_way or any(group_id in offsets for offsets in self.pending.values())

    def of(self, group_id: str) -> Offsets:
        return self.committed.get(group_id, {})

    def has_any(self, group_id: str) -> bool:
        """Committed, pending or on the way."""
        return group_id in self.committed or self.any_on_the_way(group_id) or self.has_transactions(group_id)

    def all_of(self, group_id: str) -> Iterator[TopicPartition]:
        """Every partition of which the group has an offset in whatever stage, once."""
        seen = dict.fromkeys(self.of(group_id))
        for offsets in self.pending.values():
            seen.update(dict.fromkeys(offsets.get(group_id, ())))
        for where in (self._on_the_way, self._on_the_way_in_transactions):
            seen.update(dict.fromkeys(+where.get(group_id, Counter())))
        return iter(seen)

    def groups(self) -> Iterator[str]:
        seen = dict.fromkeys(self.committed)
        for offsets in self.pending.values():
            seen.update(dict.fromkeys(offsets))
        seen.update(dict.fromkeys((*self._on_the_way, *self._on_the_way_in_transactions)))
        return iter(seen)


_NONE: Counter[TopicPartition] = Counter()


def _remove(offsets: dict[str, Offsets], group_id: str, partition: TopicPartition) -> None:
    if group_id in offsets:
        offsets[group_id].pop(partition, None)
        if not offsets[group_id]:
            del offsets[group_id]


def offset_record(
    group_id: str, partition: TopicPartition, commit: OffsetAndMetadata, version: int
) -> CoordinatorRecord:
    """Version 1 is the only one that can say when an offset expires."""
    value = OffsetCommitValue(
        offset=commit.offset,
        leader_epoch=commit.leader_epoch,
        metadata=commit.metadata or "",
        commit_timestamp=commit.commit_timestamp,
        expire_timestamp=-1 if commit.expire_timestamp is None else commit.expire_timestamp,
        topic_id=commit.topic_id,
    )
    return CoordinatorRecord(
        _key(group_id, partition), encode_value(value, version if commit.expire_timestamp is None else 1)
    )


def offset_tombstone(group_id: str, partition: TopicPartition) -> CoordinatorRecord:
    return CoordinatorRecord(_key(group_id, partition), None)


def offset_from(value: OffsetCommitValue, record_offset: int) -> OffsetAndMetadata:
    return OffsetAndMetadata(
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        None if value.expire_timestamp == -1 else value.expire_timestamp,
        value.topic_id,
        record_offset,
    )


def _key(group_id: str, partition: TopicPartition) -> bytes:
    return encode_key(OffsetCommitKey(group=group_id, topic=partition.topic, partition=partition.partition))
