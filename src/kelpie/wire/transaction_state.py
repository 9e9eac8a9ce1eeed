"""Records of `__transaction_state`: one key type, a value that begins with its version.

v0   the beginning
v1   flexible; + previous_producer_id, next_producer_id, client_transaction_version,
     next_producer_epoch (KIP-890)
"""

from __future__ import annotations

from enum import IntEnum

from kelpie.wire import prefixed
from kelpie.wire.malformed import Malformed
from kelpie.wire.schema import Int8, Int16, Int32, Int64, data, field, struct


class TransactionState(IntEnum):
    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7


@data(versions="0")
class TransactionLogKey:
    transactional_id: str


@data(versions="0-1", flexible="1+")
class TransactionLogValue:
    producer_id: Int64
    previous_producer_id: Int64 = field("1+", tag=0, default=-1)
    next_producer_id: Int64 = field("1+", tag=1, default=-1)
    producer_epoch: Int16
    next_producer_epoch: Int16 = field("1+", tag=3, default=-1)
    transaction_timeout_ms: Int32
    transaction_status: Int8
    transaction_partitions: list[TransactionPartitions] | None
    transaction_last_update_timestamp_ms: Int64
    transaction_start_timestamp_ms: Int64
    client_transaction_version: Int16 = field("1+", tag=2, default=0)


@struct
class TransactionPartitions:
    topic: str
    partition_ids: list[Int32]


def decode_key(key: bytes | None) -> TransactionLogKey:
    """Raises Malformed."""
    if key is None:
        raise Malformed("a record of __transaction_state without a key", offset=0)
    return prefixed.decode(TransactionLogKey, key)


def decode_value(value: bytes | None) -> TransactionLogValue | None:
    """None is a tombstone. Raises Malformed."""
    return None if value is None else prefixed.decode(TransactionLogValue, value)


def encode_key(key: TransactionLogKey) -> bytes:
    return prefixed.encode(key, 0)


def encode_value(value: TransactionLogValue, version: int) -> bytes:
    return prefixed.encode(value, version)
