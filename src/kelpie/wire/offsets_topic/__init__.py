"""Records of `__consumer_offsets`: a key that begins with its type, a value that begins with its version.

Kafka called the number in front of a key its version until 4.0, and its record type since; the bytes are the
same. A null value is a tombstone. Control records of transactions live in the same log and are not for this
module: their keys would read as record type 0.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from kelpie.wire import compiler, prefixed
from kelpie.wire.malformed import Malformed, Unencodable
from kelpie.wire.offsets_topic import consumer_group
from kelpie.wire.offsets_topic.group_metadata import GroupMetadataKey, GroupMetadataValue
from kelpie.wire.offsets_topic.offset_commit import LegacyOffsetCommitKey, OffsetCommitKey, OffsetCommitValue
from kelpie.wire.schema import data


class RecordType(IntEnum):
    LEGACY_OFFSET_COMMIT = 0
    OFFSET_COMMIT = 1
    GROUP_METADATA = 2
    CONSUMER_GROUP_METADATA = 3
    CONSUMER_GROUP_PARTITION_METADATA = 4
    CONSUMER_GROUP_MEMBER_METADATA = 5
    CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA = 6
    CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER = 7
    CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT = 8
    SHARE_GROUP_PARTITION_METADATA = 9
    SHARE_GROUP_MEMBER_METADATA = 10
    SHARE_GROUP_METADATA = 11
    SHARE_GROUP_TARGET_ASSIGNMENT_METADATA = 12
    SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER = 13
    SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT = 14
    SHARE_GROUP_STATE_PARTITION_METADATA = 15
    CONSUMER_GROUP_REGULAR_EXPRESSION = 16
    STREAMS_GROUP_METADATA = 17
    STREAMS_GROUP_MEMBER_METADATA = 19
    STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA = 20
    STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER = 21
    STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT = 22
    STREAMS_GROUP_TOPOLOGY = 23


_READ: dict[int, tuple[type[Any], type[Any]]] = {
    RecordType.LEGACY_OFFSET_COMMIT: (LegacyOffsetCommitKey, OffsetCommitValue),
    RecordType.OFFSET_COMMIT: (OffsetCommitKey, OffsetCommitValue),
    RecordType.GROUP_METADATA: (GroupMetadataKey, GroupMetadataValue),
    **consumer_group.RECORDS,
}
_TYPE_OF_KEY = {key: record_type for record_type, (key, _) in _READ.items()}
_NAMES: dict[int, str] = {record_type.value: record_type.name for record_type in RecordType}
_EARLY_ACCESS = {4, 5, 7, 8}


@data(versions="0")
class _GroupFirst:
    """Every record type that Kafka has had so far begins its key with the group."""

    group_id: str


@dataclass(frozen=True, slots=True)
class OtherKey:
    """The key of a record that is recognised but not read: share and streams groups, or a newer Kafka's."""

    record_type: int
    name: str
    group_id: str
    body: bytes


@dataclass(frozen=True, slots=True)
class OtherValue:
    """The value of such a record."""

    version: int
    body: bytes


def decode_key(key: bytes | None) -> tuple[int, Any]:
    """The record type, and the key: one of the declared classes, or OtherKey. Raises Malformed."""
    if key is None:
        raise Malformed("a record of __consumer_offsets without a key", offset=0)
    record_type = prefixed.number(key, "record type")
    if record_type in _READ:
        return record_type, compiler.decode(_READ[record_type][0], 0, key, prefixed.SIZE)
    body = key[prefixed.SIZE :]
    if record_type not in _NAMES:
        return record_type, OtherKey(record_type, f"record type {record_type}", "", body)
    first, _ = compiler.decode_prefix(_GroupFirst, 0, body)
    return record_type, OtherKey(record_type, _NAMES[record_type], first.group_id, body)


def decode_value(record_type: int, value: bytes | None) -> Any:
    """One of the declared classes, OtherValue, or None for a tombstone. Raises Malformed."""
    if value is None:
        return None
    if record_type not in _READ:
        return OtherValue(prefixed.number(value, "value version"), value[prefixed.SIZE :])
    try:
        return prefixed.decode(_READ[record_type][1], value)
    except Malformed as error:
        if record_type not in _EARLY_ACCESS:
            raise
        reason = f"{error.reason}; Kafka 3.7 (early access) wrote this record in another form"
        raise Malformed(reason, offset=error.offset, path=error.path) from None


def encode_key(key: Any) -> bytes:
    record_type = _TYPE_OF_KEY.get(type(key))
    if record_type is None:
        raise Unencodable(f"{type(key).__name__} is no key of __consumer_offsets")
    return prefixed.encode(key, 0, prefix=record_type)


def encode_value(value: Any, version: int) -> bytes:
    return prefixed.encode(value, version)
