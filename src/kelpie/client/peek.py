"""A few records of one partition, to look at: where they are, what they carry, what stands between them.

Fetches as no group: it joins nothing, commits nothing, and the broker keeps nothing of it. What is fetched is
bounded; only a single batch that is larger by itself comes whole, because brokers give out whole batches.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kelpie.client.admin.admin import Admin
from kelpie.client.client_errors import ClientError
from kelpie.client.nodes import Nodes
from kelpie.errors import ErrorCode, describe
from kelpie.model.kelpie_error import KelpieError
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.questions.fetch import AskRecords, FetchedPartition
from kelpie.wire.malformed import Malformed
from kelpie.wire.records import ControlType, Record, RecordBatch, read_batches
from kelpie.wire.records.attributes import TimestampType
from kelpie.wire.records.header import BatchHeader

MOST_BYTES = 4 * 1024 * 1024
"""Of all fetches together."""
_AT_ONCE = 64 * 1024
_MOST_INFLATED = 256 * 1024 * 1024
_READ_COMMITTED = 1


class CannotPeek(KelpieError):
    """The text says why, and what to do instead."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The batch that a record is in: what a broker and a consumer handle as one."""

    first: int
    last: int
    records: int
    """As its header says; −1 before Kafka 0.11, whose headers do not say it."""
    size: int
    """In bytes, as it is stored and sent."""
    codec: str
    leader_epoch: int = -1
    producer_id: int = -1
    producer_epoch: int = -1
    transactional: bool = False


@dataclass(frozen=True, slots=True)
class PeekedRecord:
    """One record, or one marker that ends a transaction."""

    offset: int
    batch: Batch
    at: Instant | None
    appended: bool
    """The time is the broker's (log append time), not the producer's."""
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    marker: str = ""
    """Of a control record: "commit", "abort", …"""
    fate: str = ""
    """Of a record of a transaction: "committed", "aborted", or "undecided" from the last stable offset on."""

    @property
    def size(self) -> int:
        """Of key, value and headers, in bytes, not compressed."""
        carried = sum(len(name.encode()) + len(value or b"") for name, value in self.headers)
        return len(self.key or b"") + len(self.value or b"") + carried


@dataclass(frozen=True, slots=True)
class Peek:
    """What was found from an offset on."""

    partition: TopicPartition
    offset: int
    """That was asked for."""
    earliest: int
    latest: int
    """The offset of the next record that will be written."""
    stable: int
    """Readers of committed transactions get no further."""
    records: tuple[PeekedRecord, ...] = ()
    failure: str = ""
    """Why the rest could not be read."""

    @property
    def is_in_range(self) -> bool:
        return self.earliest <= self.offset < self.latest

    @property
    def next_there(self) -> int | None:
        """The first offset with a record, if the one that was asked for has none any more."""
        found = self.records[0].offset if self.records else None
        return None if found == self.offset else found


async def peek(nodes: Nodes, partition: TopicPartition, offset: int, count: int = 1) -> Peek:
    """Raises CannotPeek, ClientError."""
    leader = await _leader(nodes, partition)
    rows = await Admin(nodes).log_ends([partition])
    for gap in rows.unasked:
        raise CannotPeek(f"Where {partition} begins and ends cannot be found out: {gap.reason}")
    ends = next(iter(rows))
    if ends.error:
        raise CannotPeek(f"{partition}: {describe(ends.error)}.")
    found = Peek(partition, offset, ends.earliest, ends.latest, ends.stable)
    if not found.is_in_range:
        return found
    records, failure = await _read(nodes, leader, found, count)
    return replace(found, records=tuple(records), failure=failure)


async def _read(nodes: Nodes, leader: int, found: Peek, count: int) -> tuple[list[PeekedRecord], str]:
    """Up to `count` records, and why there are not more."""
    reader = _Reader(found.stable)
    records: list[PeekedRecord] = []
    at, left, at_once = found.offset, MOST_BYTES, _AT_ONCE
    while len(records) < count and at < found.latest:
        if left <= 0:
            return records, f"Reading ended after {MOST_BYTES // 1024**2} MiB, at offset {at}."
        fetched = await _fetch(nodes, leader, found, at, at_once)
        left -= len(fetched.records)
        try:
            for record in reader.read(fetched, at):
                records.append(record)
                if len(records) == count:
                    return records, ""
        except Malformed as error:
            return records, f"The batch at offset {reader.next_offset} cannot be read: {error}"
        if reader.next_offset <= at and not fetched.records:
            break
        if reader.next_offset <= at:
            at_once *= 4  # Kafka before 0.10.1 cuts off a batch that is larger than what was asked for.
        at = max(at, reader.next_offset)
    return records, ""


async def _leader(nodes: Nodes, partition: TopicPartition) -> int:
    rows = await Admin(nodes).topics([partition.topic])
    views = {view.name: view for view in rows}
    if not views:
        why = "; ".join(gap.reason for gap in rows.unasked) or "no broker knows it"
        raise CannotPeek(f"There is no topic {partition.topic} to look into: {why}.")
    view = views.get(partition)
    if view is None:
        last = max(name.partition for name in views)
        raise CannotPeek(f"There is no partition {partition}; {partition.topic} has 0 to {last}.")
    if view.leader not in nodes.brokers:
        raise CannotPeek(f"{partition} has no leader: nobody gives out its records now.")
    return view.leader


async def _fetch(nodes: Nodes, leader: int, found: Peek, offset: int, most: int) -> FetchedPartition:
    """Below the last stable offset the answer says which transactions were aborted."""
    partition = found.partition
    question = AskRecords(
        {partition: (offset, None)},
        _READ_COMMITTED if offset < found.stable else 0,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=most,
        max_partition_bytes=most,
    )
    answer = await nodes.put(leader, question)
    fetched = answer.partitions.get(partition)
    error = answer.error or (fetched.error if fetched is not None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if error or fetched is None:
        raise ClientError(f"{partition} cannot be read at {offset}: {describe(error)}.")
    return fetched


class _Reader:
    """Batches in order, and which transactions of theirs were aborted, as consumers find it out."""

    def __init__(self, stable: int) -> None:
        self._stable = stable
        self._aborting: set[int] = set()
        self._seen: set[tuple[int, int]] = set()
        self.next_offset = -1
        """After the last batch that was read."""

    def read(self, fetched: FetchedPartition, since: int) -> Iterator[PeekedRecord]:
        """Each record from `since` on. Raises Malformed."""
        for batch in read_batches(fetched.records):
            self._begin_aborted(fetched, batch.header.last_offset)
            for record in self._records(batch):
                if record.offset >= since:
                    yield record
            self.next_offset = batch.header.next_offset

    def _begin_aborted(self, fetched: FetchedPartition, last_offset: int) -> None:
        for producer, first in fetched.aborted:
            if first <= last_offset and (producer, first) not in self._seen:
                self._seen.add((producer, first))
                self._aborting.add(producer)

    def _records(self, batch: RecordBatch) -> Iterator[PeekedRecord]:
        described = _batch_of(batch)
        if batch.header.is_control:
            for control in batch.control_records(inflated_limit=_MOST_INFLATED):
                if control.type is ControlType.ABORT:
                    self._aborting.discard(described.producer_id)
                marker = control.type.name.lower().replace("_", " ")
                yield PeekedRecord(
                    control.offset, described, _time(control.timestamp), False, None, None, (), marker
                )
            return
        for record in batch.records(inflated_limit=_MOST_INFLATED):
            yield self._record(record, described)

    def _record(self, record: Record, batch: Batch) -> PeekedRecord:
        fate = ""
        if batch.transactional:
            fate = "aborted" if batch.producer_id in self._aborting else "committed"
            if record.offset >= self._stable:
                fate = "undecided"
        appended = record.timestamp_type is TimestampType.LOG_APPEND
        at = _time(record.timestamp)
        return PeekedRecord(
            record.offset, batch, at, appended, record.key, record.value, record.headers, fate=fate
        )


def _batch_of(batch: RecordBatch) -> Batch:
    header = batch.header
    codec = header.codec.name.lower()
    if not isinstance(header, BatchHeader):
        return Batch(header.offset, header.last_offset, -1, batch.size, codec)
    return Batch(
        header.base_offset,
        header.last_offset,
        header.record_count,
        batch.size,
        codec,
        header.partition_leader_epoch,
        header.producer_id,
        header.producer_epoch,
        header.is_transactional,
    )


def _time(timestamp: int) -> Instant | None:
    return timestamp if timestamp >= 0 else None
