"""What a leader checks before it appends records, and how it places them in the log.

Batches of magic 2 are judged by their headers and checksums (`examine_produced`) and given offsets and an
epoch. Their records are only read where a setting demands it: keys on a compacted topic, a limit to the
age of timestamps, a codec of the topic's own.
"""

from dataclasses import dataclass

from kelpie.broker.log.batch import AppendRefusal, StoredBatch, stored
from kelpie.broker.log.config import LogConfig
from kelpie.broker.log.conversion import as_magic_0, magic_0_batches, read_message_set, up_convert
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.wire.malformed import Malformed
from kelpie.wire.records import (
    BatchHeader,
    Codec,
    Produced,
    Record,
    RecordsRefused,
    TimestampType,
    examine_produced,
    parse_header,
    read_all_records,
    read_batches,
    stamp,
    write_batch,
)

LATEST_PRODUCE = 13
"""The version of Produce whose rules hold when none is given."""

_MAGIC_OFFSET = 16
_NO_AGE_LIMIT = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Place:
    """Where and when records are appended, and by which settings."""

    base_offset: int
    leader_epoch: int
    now: Instant
    config: LogConfig


def admit(
    records: bytes | memoryview, place: Place, produce_version: int
) -> list[StoredBatch] | AppendRefusal:
    """Examine what a client sent, and place it in the log."""
    config = place.config
    if config.message_format == 0 or produce_version < 3:
        if len(records) <= _MAGIC_OFFSET:
            return []
        if config.message_format == 0 or records[_MAGIC_OFFSET] < 2:
            return _admit_messages(records, place)
    produced = examine_produced(
        records,
        zstd=produce_version >= 7,
        timestamp_type=config.message_timestamp_type,
        largest_batch=config.max_message_bytes,
    )
    if isinstance(produced, RecordsRefused):
        return AppendRefusal(produced.error_code, produced.reason)
    return _record_refusal(records, produced, place) or _placed(records, produced, place)


def admit_own(data: bytes, place: Place) -> list[StoredBatch] | AppendRefusal:
    """Place batches that the broker itself has written. They need no check."""
    if place.config.message_format == 0:
        return magic_0_batches(list(read_all_records(data)), place.base_offset)
    headers: list[BatchHeader] = []
    position = 0
    while position < len(data):
        headers.append(parse_header(data, position))
        position += headers[-1].size
    return _placed(data, Produced(tuple(headers)), place)


def _admit_messages(data: bytes | memoryview, place: Place) -> list[StoredBatch] | AppendRefusal:
    config = place.config
    messages = read_message_set(data, config)
    if isinstance(messages, AppendRefusal):
        return messages
    if not messages.records:
        return []
    if config.message_format == 0:
        return as_magic_0(messages, place.base_offset, config)
    refusal = _refusal_of(messages.records, place)
    if refusal is not None:
        return refusal
    batch = up_convert(messages)
    return _placed(batch, Produced((parse_header(batch),)), place)


def _placed(data: bytes | memoryview, produced: Produced, place: Place) -> list[StoredBatch] | AppendRefusal:
    config = place.config
    codec = config.compression_codec
    if codec is not None and any(header.codec is not codec for header in produced.headers):
        try:
            data = b"".join(_recompressed(data, codec))
        except Malformed as malformed:
            return AppendRefusal(ErrorCode.CORRUPT_MESSAGE, str(malformed))
        produced = Produced(tuple(parse_header(batch.data) for batch in read_batches(data, crc=False)))
    for header in produced.headers:
        if header.size > config.max_message_bytes:
            reason = f"a batch of {header.size} bytes; the limit is {config.max_message_bytes}"
            return AppendRefusal(ErrorCode.MESSAGE_TOO_LARGE, reason)
    stamped = stamp(
        data,
        produced,
        base_offset=place.base_offset,
        leader_epoch=place.leader_epoch,
        log_append_time_ms=place.now if config.message_timestamp_type is TimestampType.LOG_APPEND else None,
    )
    if len(produced.headers) == 1:
        return [stored(stamped)]
    batches: list[StoredBatch] = []
    position = 0
    for header in produced.headers:
        batches.append(stored(stamped[position : position + header.size]))
        position += header.size
    return batches


def _recompressed(data: bytes | memoryview, codec: Codec) -> list[bytes]:
    batches: list[bytes] = []
    for batch in read_batches(data, crc=False):
        header = batch.header
        assert isinstance(header, BatchHeader)
        if header.is_control or header.codec is codec:
            batches.append(bytes(batch.data))
            continue
        batches.append(
            write_batch(
                list(batch.records()),
                codec=codec,
                producer_id=header.producer_id,
                producer_epoch=header.producer_epoch,
                base_sequence=header.base_sequence,
                transactional=header.is_transactional,
            )
        )
    return batches


def _record_refusal(data: bytes | memoryview, produced: Produced, place: Place) -> AppendRefusal | None:
    config = place.config
    latest = place.now + config.message_timestamp_after_max_ms
    too_new = any(header.max_timestamp > latest for header in produced.headers)
    if not (too_new or config.compacts or config.message_timestamp_before_max_ms != _NO_AGE_LIMIT):
        return None  # The usual case, and the only one that need not read records.
    try:
        records = list(read_all_records(memoryview(data)[: produced.size]))
    except Malformed as malformed:
        return AppendRefusal(ErrorCode.INVALID_RECORD, str(malformed))
    return _refusal_of(records, place)


def _refusal_of(records: list[Record], place: Place) -> AppendRefusal | None:
    """Judge every record, as LogValidator does, and name all that are at fault."""
    config = place.config
    earliest = place.now - config.message_timestamp_before_max_ms
    latest = place.now + config.message_timestamp_after_max_ms
    timed = config.message_timestamp_type is TimestampType.CREATE
    wrong: list[tuple[int, str]] = []
    code = ErrorCode.INVALID_RECORD
    for index, record in enumerate(records):
        if config.compacts and record.key is None:
            wrong.append((index, "Compacted topic cannot accept message without key"))
        elif timed and record.timestamp != -1 and not earliest <= record.timestamp <= latest:
            code = ErrorCode.INVALID_TIMESTAMP
            wrong.append((index, f"timestamp {record.timestamp} is not within [{earliest}, {latest}]"))
    if not wrong:
        return None
    return AppendRefusal(code, f"{len(wrong)} of {len(records)} records are invalid", tuple(wrong))
