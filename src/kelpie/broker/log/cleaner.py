"""Compaction: of each key the last value stays, and every record that stays keeps its offset.

Follows Kafka's Cleaner, CleanedTransactionMetadata and MemoryRecords.filterTo. A pass goes over closed
segments only, and not beyond the last stable offset: first over the part that has come since the last pass
(dirty), to learn the last offset of each key, then over all of it, to write what is left.

- A tombstone stays until delete.retention.ms after the first pass that met it, so that a slow consumer sees
  it.
- Data of aborted transactions goes at once. A marker stays until nothing is left of its transaction, and then
  as long as a tombstone.
- The last batch of a producer stays, if only its header, for its sequence number; so does the last of the
  pass, for its offset.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kelpie.broker.log.batch import StoredBatch, parse_batches, stored
from kelpie.broker.log.config import LogConfig
from kelpie.broker.log.producers import ProducerEntry
from kelpie.broker.log.segments import LogSegment, Segments
from kelpie.broker.log.transactions import Aborted, Transactions
from kelpie.model.time import Instant
from kelpie.wire.malformed import Malformed
from kelpie.wire.records import (
    BatchHeader,
    Codec,
    ControlType,
    Record,
    TimestampType,
    write_batch,
    write_message_set,
)


@dataclass(frozen=True, slots=True)
class Compacted:
    """What one pass did."""

    first_dirty_offset: int
    end_offset: int
    """Up to here, exclusive, the log is clean."""
    size_before: int
    size_after: int


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """What a pass may clean: up to the first segment that it must leave alone."""

    first_dirty_offset: int
    end_offset: int
    dirty_bytes: int
    clean_bytes: int
    overdue: bool

    def worthwhile(self, config: LogConfig) -> bool:
        if not self.dirty_bytes:
            return False
        ratio = self.dirty_bytes / (self.dirty_bytes + self.clean_bytes)
        return self.overdue or ratio > config.min_cleanable_dirty_ratio


def cleanable(
    segments: Segments, first_dirty_offset: int, last_stable_offset: int, now: Instant, config: LogConfig
) -> OffsetRange:
    end = first_dirty_offset
    dirty = clean = 0
    overdue = False
    for index, segment in enumerate(segments):
        if index + 1 == len(segments):
            break
        next_base = segments.at(index + 1).base_offset
        if next_base <= first_dirty_offset:
            clean += segment.size
            continue
        too_young = (
            config.min_compaction_lag_ms > 0
            and segment.largest_timestamp > now - config.min_compaction_lag_ms
        )
        if next_base > last_stable_offset or too_young:
            break
        dirty += segment.size
        overdue = overdue or 0 < segment.first_timestamp < now - config.max_compaction_lag_ms
        end = next_base
    return OffsetRange(first_dirty_offset, end, dirty, clean, overdue)


@dataclass(frozen=True, slots=True)
class CleaningPass:
    """One pass over the segments below the end of `offsets`."""

    segments: Segments
    offsets: OffsetRange
    transactions: Transactions
    producers: Mapping[int, ProducerEntry]
    now: Instant
    config: LogConfig
    _last_offsets: dict[bytes, int] = field(default_factory=dict)

    def run(self) -> None:
        self._learn()
        transactions = _Traversed(self.transactions.aborted)
        last_clean = -1
        for segment in self.segments:
            if segment.base_offset < self.offsets.first_dirty_offset and segment.modified is not None:
                last_clean = segment.modified
        horizon = last_clean - self.config.delete_retention_ms if last_clean >= 0 else 0
        first = 0
        while first < len(self.segments):
            group = self._group(first)
            if not group:
                break
            left: list[StoredBatch] = []
            for segment in group:
                keep_old_tombstones = segment.modified is None or segment.modified > horizon
                for batch in segment.batches:
                    cleaned = self._cleaned(batch, transactions, keep_old_tombstones)
                    if cleaned is not None:
                        left.append(cleaned)
            self.segments.replace(first, first + len(group), LogSegment.cleaned(group, left))
            first += 1
        end = self.offsets.end_offset
        beyond = (aborted for aborted in self.transactions.aborted if aborted.last_offset >= end)
        self.transactions.replace_aborted([*transactions.kept, *beyond])

    def _group(self, first: int) -> list[LogSegment]:
        """Neighbours that fit into one segment together, so that there are not many small segments."""
        group: list[LogSegment] = []
        size = 0
        for index in range(first, len(self.segments)):
            segment = self.segments.at(index)
            if segment.base_offset >= self.offsets.end_offset:
                break
            size += segment.size
            if group and size > self.config.segment_bytes:
                break
            group.append(segment)
        return group

    def _learn(self) -> None:
        """Learn the last offset of each key in the dirty part. What was aborted does not count."""
        start, end = self.offsets.first_dirty_offset, self.offsets.end_offset
        # A transaction whose marker lies before `start` is over. This pass does not read that marker.
        transactions = _Traversed(
            aborted for aborted in self.transactions.aborted if aborted.last_offset >= start
        )
        for segment in self.segments:
            if segment.base_offset >= end:
                break
            for batch in segment.batches:
                if batch.last_offset < start:
                    continue
                if batch.header.is_control:
                    transactions.ends_with(batch)
                elif not transactions.aborts(batch):
                    for record in _readable(batch) or ():
                        if record.key is not None and record.offset >= start:
                            self._last_offsets[record.key] = record.offset

    def _cleaned(
        self, batch: StoredBatch, transactions: "_Traversed", keep_old_tombstones: bool
    ) -> StoredBatch | None:
        header = batch.header
        if header.is_control:
            dispensable = transactions.ends_with(batch)
            due = batch.delete_horizon is not None and batch.delete_horizon <= self.now
            if not (dispensable and due):
                return self._with_horizon(batch) if dispensable else batch
            return self._emptied(batch) if self._must_stay(batch) else None
        left: list[Record] = []
        if not transactions.aborts(batch):
            records = _readable(batch)
            if records is None:
                return batch
            left = [record for record in records if self._stays(batch, record, keep_old_tombstones)]
            if left and len(left) == len(records):
                return self._with_horizon(batch) if _has_tombstone(batch, left) else batch
        if not left:
            return self._emptied(batch) if self._must_stay(batch) else None
        written = _rewritten(batch, left)
        return self._with_horizon(written) if _has_tombstone(batch, left) else written

    def _stays(self, batch: StoredBatch, record: Record, keep_old_tombstones: bool) -> bool:
        if record.key is None or record.offset < self._last_offsets.get(record.key, -1):
            return False
        if record.value is not None:
            return True
        if batch.header.magic < 2:
            return keep_old_tombstones
        return batch.delete_horizon is None or self.now < batch.delete_horizon

    def _with_horizon(self, batch: StoredBatch) -> StoredBatch:
        if batch.delete_horizon is not None:
            return batch
        return batch._replace(delete_horizon=self.now + self.config.delete_retention_ms)

    def _must_stay(self, batch: StoredBatch) -> bool:
        header = batch.header
        if not isinstance(header, BatchHeader):
            return False
        if batch.next_offset == self.offsets.end_offset:
            return True
        producer = self.producers.get(header.producer_id)
        if producer is None:
            return False
        if producer.last_data_offset is not None:
            return batch.last_offset == producer.last_data_offset
        return header.is_control and header.producer_epoch == producer.epoch

    def _emptied(self, batch: StoredBatch) -> StoredBatch:
        header = batch.header
        assert isinstance(header, BatchHeader)
        if header.record_count == 0:
            return batch
        # A header without records has no timestamp. The log keeps the old one.
        return _rewritten(batch, [])._replace(max_timestamp=batch.max_timestamp)


class _Traversed:
    """The transactions that are open at the current position."""

    def __init__(self, aborted: Iterable[Aborted]) -> None:
        self._ahead = sorted(aborted, key=lambda entry: entry.first_offset, reverse=True)
        self._aborted: dict[int, Aborted] = {}
        self._met: set[int] = set()
        self._committed: set[int] = set()
        self.kept: list[Aborted] = []

    def aborts(self, batch: StoredBatch) -> bool:
        """Whether this data belongs to a transaction that was aborted."""
        self._advance(batch.last_offset)
        if not batch.header.is_transactional:
            return False
        producer_id = batch.header.producer_id
        if producer_id in self._aborted:
            self._met.add(producer_id)
            return True
        self._committed.add(producer_id)
        return False

    def ends_with(self, batch: StoredBatch) -> bool:
        """Whether no record is left of the transaction that this marker ends, so that the marker may go."""
        self._advance(batch.last_offset)
        marker = next(batch.control_records(), None)
        if marker is None:
            return True
        producer_id = batch.header.producer_id
        if marker.type is ControlType.ABORT:
            aborted = self._aborted.pop(producer_id, None)
            if aborted is not None and producer_id in self._met:
                self._met.discard(producer_id)
                self.kept.append(aborted)
                return False
            return True
        if marker.type is ControlType.COMMIT:
            met = producer_id in self._committed
            self._committed.discard(producer_id)
            return not met
        return False

    def _advance(self, offset: int) -> None:
        while self._ahead and self._ahead[-1].first_offset <= offset:
            aborted = self._ahead.pop()
            self._aborted.setdefault(aborted.producer_id, aborted)


def _readable(batch: StoredBatch) -> list[Record] | None:
    """The records; None for those that cannot be read, which are better kept than lost."""
    try:
        return list(batch.records())
    except Malformed:
        return None


def _has_tombstone(batch: StoredBatch, records: list[Record]) -> bool:
    return batch.header.magic >= 2 and any(record.value is None for record in records)


def _rewritten(batch: StoredBatch, records: list[Record]) -> StoredBatch:
    header = batch.header
    append_time = header.max_timestamp if header.timestamp_type is TimestampType.LOG_APPEND else None
    if not isinstance(header, BatchHeader):
        assert header.codec is not Codec.NONE, "a single message stays or goes"
        data = write_message_set(
            records, magic=header.magic, codec=header.codec, log_append_time_ms=append_time
        )
        return parse_batches(data, crc=False)[0]
    data = write_batch(
        records,
        codec=header.codec,
        base_offset=batch.base_offset,
        last_offset=batch.last_offset,
        leader_epoch=batch.leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.is_transactional,
        control=header.is_control,
        log_append_time_ms=append_time,
    )
    return stored(data)._replace(delete_horizon=batch.delete_horizon)
