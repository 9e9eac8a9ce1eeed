"""One replica's log: what it appends, as leader or follower, and what it lets be read.

Follows Kafka's UnifiedLog, without the high watermark: that belongs to the replica, and comes as an argument.
Batches are opaque bytes, and are shared with other replicas, so they are never changed. Neither an append nor
a read costs more for a longer log.

Invariants: `start_offset` <= `end_offset`; batches follow each other without overlap; the log may begin in
the middle of its first batch, when records were deleted there. Truncation takes whole batches: the log then
ends where the first that was cut began. (Kafka ends the log at the given offset.)
"""

from collections.abc import Iterable, Sequence

from kelpie.broker.log import timestamps
from kelpie.broker.log.admission import LATEST_PRODUCE, Place, admit, admit_own
from kelpie.broker.log.batch import Appended, AppendRefusal, ReadResult, StoredBatch, stored
from kelpie.broker.log.cleaner import CleaningPass, Compacted, cleanable
from kelpie.broker.log.config import LogConfig
from kelpie.broker.log.epochs import UNKNOWN_EPOCH, UNKNOWN_OFFSET, Epochs, LogEpochEnd
from kelpie.broker.log.producers import (
    ProducerChanges,
    ProducerEntry,
    Producers,
    RememberedBatch,
    VerificationGuard,
)
from kelpie.broker.log.retention import Rule, before_start, count_deletable, too_large, too_old
from kelpie.broker.log.segments import LogSegment, Segments
from kelpie.broker.log.timestamps import FoundOffset
from kelpie.broker.log.transactions import Transactions
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.wire.records import ControlType, TimestampType, write_control_batch

_DEFAULTS = LogConfig()


class ReplicaLog:
    def __init__(self, partition: TopicPartition, start_offset: int = 0) -> None:
        self.partition = partition
        self._start = start_offset
        self._end = start_offset
        self._segments = Segments(start_offset)
        self._epochs = Epochs()
        self._producers = Producers()
        self._transactions = Transactions()
        self._cleaned_to = start_offset

    @property
    def start_offset(self) -> int:
        return self._start

    @property
    def end_offset(self) -> int:
        """The offset that the next record will get."""
        return self._end

    @property
    def size(self) -> int:
        return self._segments.size

    @property
    def last_epoch(self) -> int:
        """The epoch of the last batch, or of a leader that has written nothing yet. -1: none is known."""
        return self._epochs.last

    @property
    def epochs(self) -> list[tuple[int, int]]:
        """Each leader epoch with the offset at which it began."""
        return self._epochs.entries

    @property
    def segments(self) -> Sequence[LogSegment]:
        return list(self._segments)

    # As a leader

    def begin_epoch(self, leader_epoch: int) -> None:
        """This replica has become leader: the epoch begins here, even if nothing gets written."""
        self._epochs.assign(leader_epoch, self._end)

    def append_as_leader(
        self,
        records: bytes | memoryview,
        *,
        leader_epoch: int,
        now: Instant,
        config: LogConfig = _DEFAULTS,
        produce_version: int = LATEST_PRODUCE,
        verify: bool = False,
        guard: VerificationGuard | None = None,
    ) -> Appended | AppendRefusal:
        """Append what a Produce request of `produce_version` holds for this partition.

        With `verify`, transactional records that begin a transaction here need the `guard` that
        `begin_verification` gave out before the coordinator was asked (KIP-890).
        """
        place = Place(self._end, leader_epoch, now, config)
        batches = admit(records, place, produce_version)
        if isinstance(batches, AppendRefusal):
            return batches
        if not batches:
            return Appended(-1, -1, -1, self._start)
        changes = self._producers.examine(batches, "client", verify=verify, guard=guard)
        return self._append_examined(batches, changes, now, config)

    def append_batch(
        self, data: bytes, *, leader_epoch: int, now: Instant, config: LogConfig = _DEFAULTS
    ) -> Appended | AppendRefusal:
        """Append batches that a coordinator of this broker has written."""
        batches = admit_own(data, Place(self._end, leader_epoch, now, config))
        if isinstance(batches, AppendRefusal):
            return batches
        return self._append_examined(batches, self._producers.examine(batches, "coordinator"), now, config)

    def append_control(
        self,
        *,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        committed: bool,
        leader_epoch: int,
        now: Instant,
        config: LogConfig = _DEFAULTS,
        transaction_version: int = 1,
    ) -> Appended | AppendRefusal:
        """Append the marker that ends a producer's transaction here.

        From transaction version 2 on its epoch must be newer than that of the data (KIP-890, KIP-1228).
        """
        data = write_control_batch(
            ControlType.COMMIT if committed else ControlType.ABORT,
            offset=self._end,
            timestamp=now,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            coordinator_epoch=coordinator_epoch,
            leader_epoch=leader_epoch,
        )
        batches = [stored(data)]
        changes = self._producers.examine(batches, "coordinator", transaction_version=transaction_version)
        return self._append_examined(batches, changes, now, config)

    def begin_verification(
        self, producer_id: int, producer_epoch: int, sequence: int, *, supports_epoch_bump: bool = False
    ) -> VerificationGuard | None:
        """Hand out a guard to append with, once the coordinator has confirmed. None: it is open here."""
        return self._producers.begin_verification(
            producer_id, producer_epoch, sequence, supports_epoch_bump=supports_epoch_bump
        )

    def _append_examined(
        self,
        batches: list[StoredBatch],
        changes: ProducerChanges | RememberedBatch | AppendRefusal,
        now: Instant,
        config: LogConfig,
    ) -> Appended | AppendRefusal:
        if isinstance(changes, AppendRefusal):
            return changes
        if isinstance(changes, RememberedBatch):
            return Appended(
                changes.first_offset, changes.last_offset, changes.timestamp, self._start, duplicate=True
            )
        size = sum(len(batch.data) for batch in batches)
        if size > config.segment_bytes:
            reason = f"records of {size} bytes; a segment has {config.segment_bytes}"
            return AppendRefusal(ErrorCode.RECORD_LIST_TOO_LARGE, reason)
        self._store(batches, size, now, config)
        self._producers.accept(changes)
        self._transactions.accept(changes)
        time = now if config.message_timestamp_type is TimestampType.LOG_APPEND else -1
        return Appended(batches[0].base_offset, batches[-1].last_offset, time, self._start, size)

    # As a follower

    def append_as_follower(
        self,
        batches: Iterable[StoredBatch],
        *,
        now: Instant | None = None,
        config: LogConfig = _DEFAULTS,
        leader_epoch: int | None = None,
    ) -> int:
        """Append what the leader has, as it stands there, and say how many bytes that was.

        From a batch on that is of a newer epoch than `leader_epoch`, by which the follower fetched, nothing
        is taken (KAFKA-18723). Batches that do not follow the log's end raise ValueError: our own fault.
        """
        taken = 0
        for batch in batches:
            if leader_epoch is not None and batch.leader_epoch > leader_epoch:
                break
            if batch.base_offset < self._end:
                if self._start != self._end or self._segments.size or batch.last_offset < self._end:
                    raise ValueError(f"a batch at {batch.base_offset} for a log that ends at {self._end}")
                # The leader's log begins in the middle of this batch, and so shall this one.
                self._segments.reset(batch.base_offset)
            changes = self._producers.examine((batch,), "replication")
            assert isinstance(changes, ProducerChanges)
            self._store([batch], len(batch.data), max(batch.max_timestamp, 0) if now is None else now, config)
            self._producers.accept(changes)
            self._transactions.accept(changes)
            taken += len(batch.data)
        return taken

    def truncate_to(self, offset: int) -> bool:
        """Drop every batch that reaches `offset`. False, if there was none."""
        if offset < 0:
            raise ValueError(f"a log cannot be truncated to {offset}")
        if offset >= self._end:
            self._epochs.truncate_from_end(self._end)
            return False
        if offset < self._segments.first.base_offset:
            self.reset_to(offset)
            return True
        end, active = self._segments.truncate_to(offset)
        self._end = end
        self._start = min(self._start, end)
        self._cleaned_to = min(self._cleaned_to, end)
        self._epochs.truncate_from_end(end)
        self._producers.rebuild(active.snapshot, active.batches)
        self._transactions.truncate_to(end, self._producers.entries.values())
        return True

    def reset_to(self, offset: int) -> None:
        """Drop everything, and begin anew at `offset`: the leader does not have what comes before."""
        self._segments.reset(offset)
        self._start = self._end = self._cleaned_to = offset
        self._epochs.clear()
        self._producers.rebuild({}, ())
        self._transactions = Transactions()

    def truncate_to_epoch(
        self, leader_epoch: int, end_offset: int, *, high_watermark: int | None = None
    ) -> bool:
        """Cut off what the leader does not have, given where it says that an epoch ended (KIP-101, KIP-279).

        False: this log does not know that epoch, has stepped down to the one before, and has to ask again.
        When the leader knows none (-1, -1), only what is below the `high_watermark` is sure.
        """
        offset, aligned = self._end if high_watermark is None else high_watermark, True
        if end_offset != UNKNOWN_OFFSET:
            offset, aligned = self._epochs.cut_for(leader_epoch, end_offset, self._end)
        self.truncate_to(offset)
        return aligned

    def divergence(self, fetch_offset: int, last_fetched_epoch: int) -> LogEpochEnd | AppendRefusal | None:
        """Where the log of a follower that fetches begins to differ. None: they agree so far."""
        end = self.end_offset_for_epoch(last_fetched_epoch)
        if end.epoch == UNKNOWN_EPOCH:
            return self._out_of_range(f"epoch {last_fetched_epoch}")
        agree = end.epoch == last_fetched_epoch and end.end_offset >= fetch_offset
        return None if agree else end

    def _store(self, batches: list[StoredBatch], size: int, now: Instant, config: LogConfig) -> None:
        last = batches[-1]
        newest = last.max_timestamp if len(batches) == 1 else max(batch.max_timestamp for batch in batches)
        if self._segments.active.should_roll(size, last.last_offset, newest, now, config):
            self._segments.roll(batches[0].base_offset, now, self._producers.snapshot())
        segment = self._segments.active
        for batch in batches:
            if batch.header.magic >= 2:
                if batch.leader_epoch >= 0:
                    self._epochs.assign(batch.leader_epoch, batch.base_offset)
            else:
                self._epochs.clear()  # Old formats know no epochs; what is known would not hold any more.
            segment.append(batch, now)
        self._end = last.last_offset + 1

    # For readers

    def read(
        self, offset: int, max_bytes: int, *, upto: int, at_least_one: bool = True, cut: bool = False
    ) -> ReadResult | AppendRefusal:
        """Read whole batches from the one on that contains `offset`, below `upto`, and within one segment.

        The first batch comes even if it is larger than `max_bytes`, unless `at_least_one` is False. With
        `cut`, the answer goes on up to `max_bytes` in the middle of a batch, as before Fetch 3: by that, an
        old consumer notices that a message is too large for it.
        """
        if not self._start <= offset <= self._end:
            return self._out_of_range(f"offset {offset}")
        return self._segments.read(offset, max_bytes, upto=upto, at_least_one=at_least_one, cut=cut)

    def batches_from(self, offset: int) -> list[StoredBatch]:
        """Hand out all batches, from the one on that contains `offset`."""
        return self._segments.batches_from(offset)

    def end_offset_for_epoch(self, epoch: int) -> LogEpochEnd:
        return self._epochs.end_offset_for(epoch, self._end)

    def offset_for_timestamp(self, timestamp: Instant, upto: int) -> FoundOffset | None:
        """Answer ListOffsets. `upto` is what the asker may see: high watermark, last stable offset or end.

        None: there is no such record. Offset -1 is an answer: nothing is in tiered storage.
        """
        return timestamps.answer(self._segments, self._epochs, timestamp, self._start, upto)

    def last_stable_offset(self, high_watermark: int) -> int:
        """The offset up to which a reader of committed data may read."""
        unstable = self._transactions.first_unstable(high_watermark)
        return high_watermark if unstable is None else min(high_watermark, max(unstable, self._start))

    @property
    def first_open_transaction(self) -> int | None:
        return self._transactions.first_open

    def aborted_between(self, first: int, last: int) -> list[tuple[int, int]]:
        """List what was aborted from `first` up to `last`, exclusive: producer, first offset."""
        return self._transactions.aborted_between(first, last)

    def producers(self) -> list[ProducerEntry]:
        return list(self._producers.entries.values())

    def _out_of_range(self, what: str) -> AppendRefusal:
        has = f"{self.partition} has {self._start} to {self._end}, epochs {self._epochs.entries}"
        return AppendRefusal(ErrorCode.OFFSET_OUT_OF_RANGE, f"{what}; {has}")

    # Upkeep

    def delete_before(self, offset: int) -> bool:
        """Let the log begin at `offset`. The segments below go when `retain` is called next.

        Whether the high watermark allows it, the caller knows. False: the log begins there or later already.
        """
        if offset > self._end:
            raise ValueError(f"a log that ends at {self._end} cannot begin at {offset}")
        if offset <= self._start:
            return False
        self._start = offset
        self._epochs.truncate_from_start(offset)
        self._transactions.forget_before(offset)
        return True

    def roll(self, now: Instant) -> bool:
        """Close the active segment, so that the cleaner may take it. False: it is empty."""
        return self._segments.roll(self._end, now, self._producers.snapshot())

    def retain(self, config: LogConfig, now: Instant, high_watermark: int) -> int:
        """Delete the segments that retention.ms and retention.bytes do not keep. Returns how many."""
        deleted = self._delete_segments(before_start(self._start), now, high_watermark)
        if config.deletes:
            for rule in (too_large(self._segments.size, config), too_old(now, config)):
                if rule is not None:
                    deleted += self._delete_segments(rule, now, high_watermark)
        return deleted

    def compact(
        self, config: LogConfig, now: Instant, high_watermark: int, *, force: bool = False
    ) -> Compacted | None:
        """Run the cleaner. None: the topic is not compacted, or it is not worth while yet, and not forced."""
        dirty_from = self._cleaned_to if self._start <= self._cleaned_to <= self._end else self._start
        stable = self.last_stable_offset(high_watermark)
        todo = cleanable(self._segments, dirty_from, stable, now, config)
        if not config.compacts or not (force or todo.worthwhile(config)):
            return None
        before = self._segments.size
        producers = self._producers.entries
        CleaningPass(self._segments, todo, self._transactions, producers, now, config).run()
        self._cleaned_to = todo.end_offset
        return Compacted(dirty_from, todo.end_offset, before, self._segments.size)

    def expire_producers(self, now: Instant, expiration_ms: int) -> int:
        """Forget idle producers (producer.id.expiration.ms). Returns how many."""
        return self._producers.expire(now, expiration_ms)

    def _delete_segments(self, rule: Rule, now: Instant, high_watermark: int) -> int:
        count = count_deletable(self._segments, rule, end_offset=self._end, high_watermark=high_watermark)
        if not count:
            return 0
        if count == len(self._segments):
            self.roll(now)
        self._segments.drop_first(count)
        self.delete_before(self._segments.first.base_offset)
        return count
