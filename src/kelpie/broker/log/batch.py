"""What a log holds, and what it answers.

A `StoredBatch` is made once, by the leader, and then shared by all replicas that hold it: appending it to a
follower copies nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.wire.records import (
    BatchHeader,
    Codec,
    ControlRecord,
    MessageHeader,
    Record,
    RecordBatch,
    parse_header,
    read_batches,
)

_make = tuple.__new__


class StoredBatch(NamedTuple):
    """A batch of magic 2, or one entry of a message set, with its place in the log.

    A named tuple: one is made for each append, and a frozen dataclass takes several times as long to make.
    """

    data: bytes
    header: BatchHeader | MessageHeader
    base_offset: int
    last_offset: int
    leader_epoch: int
    max_timestamp: int
    delete_horizon: Instant | None = None
    """From when on the cleaner may drop its tombstones or its marker (KIP-534).

    Kafka keeps this inside the batch; here it lies beside it, and the bytes that consumers see do not change.
    """

    @property
    def size(self) -> int:
        return len(self.data)

    @property
    def next_offset(self) -> int:
        return self.last_offset + 1

    def records(self) -> Iterator[Record]:
        """Iterate over the records that clients wrote; a control batch has none."""
        return RecordBatch(0, self.header, memoryview(self.data)).records()

    def control_records(self) -> Iterator[ControlRecord]:
        return RecordBatch(0, self.header, memoryview(self.data)).control_records()


def stored(data: bytes) -> StoredBatch:
    """Wrap exactly one batch of magic 2."""
    header = parse_header(data)
    base = header.base_offset
    return _make(
        StoredBatch,
        (
            data,
            header,
            base,
            base + header.last_offset_delta,
            header.partition_leader_epoch,
            header.max_timestamp,
            header.delete_horizon_ms,
        ),
    )


def stored_entry(data: bytes, header: MessageHeader, base_offset: int) -> StoredBatch:
    """Wrap exactly one entry of a message set. The base offset of a wrapper is that of the first inside."""
    return StoredBatch(data, header, base_offset, header.offset, -1, header.timestamp)


def parse_batches(data: bytes | memoryview, *, crc: bool = True) -> list[StoredBatch]:
    """Wrap the whole batches of `data`, as they come in a fetch response. May raise Malformed."""
    batches: list[StoredBatch] = []
    for batch in read_batches(data, crc=crc):
        header = batch.header
        if isinstance(header, BatchHeader):
            batches.append(stored(bytes(batch.data)))
            continue
        first = header.offset if header.codec is Codec.NONE else next(batch.records()).offset
        batches.append(stored_entry(bytes(batch.data), header, first))
    return batches


@dataclass(frozen=True, slots=True)
class AppendRefusal:
    """Why the log did not do it: the code for the response, and the sentence that goes with it."""

    error_code: ErrorCode
    reason: str
    record_errors: tuple[tuple[int, str], ...] = ()
    """Which records of the batch are at fault, by index, and why (KIP-467)."""


@dataclass(frozen=True, slots=True)
class Appended:
    """Where the records stand now; or, of a duplicate, where they have been standing."""

    first_offset: int
    """-1 when there was nothing to append, which versions 0 to 2 of Produce allow."""
    last_offset: int
    log_append_time_ms: Instant
    """-1, unless the topic has log-append time, or the batch is a duplicate."""
    log_start_offset: int
    size: int = 0
    duplicate: bool = False


@dataclass(frozen=True, slots=True)
class ReadResult:
    """Whole batches that follow each other in the log; the first one contains the offset asked for."""

    offset: int
    """What was asked for."""
    batches: Sequence[StoredBatch] = ()
    tail: bytes = b""
    """The beginning of the next batch, if the read was to be cut at its size."""

    @property
    def data(self) -> bytes:
        parts = [batch.data for batch in self.batches]
        if self.tail:
            parts.append(self.tail)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    @property
    def first_offset(self) -> int:
        """Base offset of the first batch, which may be below the one asked for."""
        return self.batches[0].base_offset if self.batches else self.offset

    @property
    def next_offset(self) -> int:
        """The offset after the last batch: the end, exclusive, for `aborted_between`."""
        return self.batches[-1].last_offset + 1 if self.batches else self.offset
