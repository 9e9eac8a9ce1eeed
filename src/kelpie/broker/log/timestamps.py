"""Offsets by time, as ListOffsets asks for them (UnifiedLog.fetchOffsetByTimestamp).

Timestamps need not grow along the log. The answer is the first record whose timestamp is not below the one
asked for; whole segments and batches are passed over by their largest timestamp, and one batch is read.
"""

from enum import IntEnum
from typing import NamedTuple

from kelpie.broker.log.batch import StoredBatch
from kelpie.broker.log.epochs import UNKNOWN_EPOCH, UNKNOWN_OFFSET, Epochs
from kelpie.broker.log.segments import Segments
from kelpie.model.time import Instant
from kelpie.wire.malformed import Malformed


class SpecialTimestamp(IntEnum):
    LATEST = -1
    EARLIEST = -2
    MAX = -3
    """Since ListOffsets 7 (KIP-734)."""
    EARLIEST_LOCAL = -4
    """Since 8 (KIP-405). Like the following ones about tiered storage, which the log does not have."""
    LATEST_TIERED = -5
    EARLIEST_PENDING_UPLOAD = -6


class FoundOffset(NamedTuple):
    timestamp: Instant
    """-1 for the special ones, except MAX."""
    offset: int
    leader_epoch: int


_NOT_THERE = FoundOffset(-1, UNKNOWN_OFFSET, UNKNOWN_EPOCH)


def answer(
    segments: Segments, epochs: Epochs, timestamp: Instant, start_offset: int, upto: int
) -> FoundOffset | None:
    """Find what ListOffsets asks for by `timestamp`, special ones included, below `upto`."""
    if timestamp == SpecialTimestamp.LATEST:
        return FoundOffset(-1, upto, epochs.last)
    if timestamp in (SpecialTimestamp.EARLIEST, SpecialTimestamp.EARLIEST_LOCAL):
        return FoundOffset(-1, start_offset, epochs.first_at(start_offset))
    if timestamp in (SpecialTimestamp.LATEST_TIERED, SpecialTimestamp.EARLIEST_PENDING_UPLOAD):
        return _NOT_THERE
    if timestamp == SpecialTimestamp.MAX:
        record = latest_record(segments)
    else:
        record = search(segments, timestamp, start_offset)
    return record if record is not None and record.offset < upto else None


def search(segments: Segments, timestamp: Instant, start_offset: int) -> FoundOffset | None:
    """Find the first record from `start_offset` on that is not older than `timestamp`."""
    for segment in segments:
        if segment.max_timestamp < timestamp:
            continue
        for batch in segment.batches:
            if batch.max_timestamp < timestamp or batch.last_offset < start_offset:
                continue
            for offset, stamped in _timestamps(batch):
                if stamped >= timestamp and offset >= start_offset:
                    return FoundOffset(stamped, offset, batch.leader_epoch)
    return None


def latest_record(segments: Segments) -> FoundOffset | None:
    """Find the record with the largest timestamp; of several, the first. The log's start is no bound."""
    largest = max((segment.max_timestamp for segment in segments), default=-1)
    for segment in segments:
        if segment.max_timestamp != largest:
            continue
        for batch in segment.batches:
            if batch.max_timestamp != largest or batch.header.magic == 0:
                continue
            offset, stamped = max(
                _timestamps(batch), key=lambda timestamped: timestamped[1], default=(-1, -1)
            )
            if offset >= 0:
                return FoundOffset(stamped, offset, batch.leader_epoch)
    return None


def _timestamps(batch: StoredBatch) -> list[tuple[int, Instant]]:
    """Offset and timestamp of each record; none if the cleaner left none, or the batch cannot be read."""
    try:
        if batch.header.is_control:
            return [(record.offset, record.timestamp) for record in batch.control_records()]
        return [(record.offset, record.timestamp) for record in batch.records()]
    except Malformed:
        return []
