"""The records that a fetch returned for one partition, delivered piece by piece.

A fetch begins with the batch that contains the requested offset, so records before that offset are skipped.
Control batches are never delivered. With read_committed the broker lists aborted transactions; the records of
their producers are skipped, from a transaction's first offset to its ABORT marker.
"""

from collections import deque
from collections.abc import Iterator

from kelpie.consumer.effects import ConsumedRecord
from kelpie.model.names import TopicPartition
from kelpie.questions.fetch import FetchedPartition
from kelpie.wire.malformed import Malformed
from kelpie.wire.records import BatchHeader, ControlType, Record, RecordBatch, read_batches


class CompletedFetch:
    def __init__(
        self,
        partition: TopicPartition,
        fetched: FetchedPartition,
        start: int,
        *,
        only_committed: bool,
        check_crcs: bool = True,
    ) -> None:
        self._partition = partition
        self._batches = read_batches(fetched.records, crc=check_crcs)
        self._only_committed = only_committed
        self._aborted = deque(sorted(fetched.aborted, key=lambda row: row[1]))
        self._aborting: set[int] = set()
        self._records: Iterator[Record] = iter(())
        self._batch: RecordBatch | None = None
        self._broken: Malformed | None = None
        self.next_offset = start
        """The offset after the last record that was taken."""
        self.epoch: int | None = None
        """The leader epoch of the current batch."""
        self.is_done = False
        self.size = len(fetched.records)

    @property
    def is_cut_off(self) -> bool:
        """Whether there were bytes but no complete batch: the record exceeds max.partition.fetch.bytes.

        Since 0.10.1 brokers send the first batch completely. Known when all batches were read.
        """
        return self.is_done and self._batch is None and self._batches.torn is not None

    def take(self, most: int) -> list[ConsumedRecord]:
        """The next records, or none at the end. Raises Malformed when all records before it were taken."""
        taken: list[ConsumedRecord] = []
        while len(taken) < most and not self.is_done:
            try:
                if self._broken is not None:
                    raise self._broken
                record = next(self._records, None)
                if record is None:
                    self._open_next()
                    continue
            except Malformed as malformed:
                self._broken = malformed
                if taken:
                    return taken
                raise
            if record.offset >= self.next_offset:
                taken.append(self._made(record))
                self.next_offset = record.offset + 1
        return taken

    def _open_next(self) -> None:
        """Go on to the next batch."""
        if self._batch is not None:
            # Compaction may have removed the last records: the end of the batch counts.
            self.next_offset = max(self.next_offset, self._batch.header.last_offset + 1)
        batch = next(self._batches, None)
        if batch is None:
            self.is_done = True
            return
        self._batch = batch
        header = batch.header
        if isinstance(header, BatchHeader):
            self.epoch = header.partition_leader_epoch if header.partition_leader_epoch >= 0 else None
            if self._only_committed and self._is_aborted(header, batch):
                return
        self._records = batch.records()

    def _is_aborted(self, header: BatchHeader, batch: RecordBatch) -> bool:
        while self._aborted and self._aborted[0][1] <= header.last_offset:
            self._aborting.add(self._aborted.popleft()[0])
        if header.is_control:
            if any(record.type is ControlType.ABORT for record in batch.control_records()):
                self._aborting.discard(header.producer_id)
            return True
        return header.is_transactional and header.producer_id in self._aborting

    def _made(self, record: Record) -> ConsumedRecord:
        return ConsumedRecord(
            self._partition.topic,
            self._partition.partition,
            record.offset,
            record.timestamp,
            record.timestamp_type,
            record.key,
            record.value,
            record.headers,
            self.epoch,
        )
