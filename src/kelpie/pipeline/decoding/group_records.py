"""Records about groups, from bytes to rows of `group_metadata`. Each is decoded here, and nowhere again.

Classic groups (type 2) write one record per generation, with all members. Groups of the newer protocols
write one record each for an epoch, a member, its target assignment and its current assignment. Such a row has
the epoch as its generation, and the member that it is about as its only one. These records name topics by id;
the row has the id as Kafka prints it. `transforms.group_records` makes observations of the rows.
"""

import struct
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from typing import Any

import pyarrow as pa

from kelpie.observations.group_epochs import topic_id_text
from kelpie.pipeline.decoding.columns import schema_in_file
from kelpie.pipeline.tables.bronze import ASSIGNOR, SESSION_TIMEOUT, TOPIC_REGEX, UNREAD
from kelpie.wire.consumer_protocol import PROTOCOL_TYPE, decode_assignment, decode_subscription
from kelpie.wire.malformed import Malformed
from kelpie.wire.offsets_topic import OtherKey, RecordType, decode_key, decode_value
from kelpie.wire.offsets_topic.consumer_group import (
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupPartitionMetadataValue,
)
from kelpie.wire.offsets_topic.group_metadata import GroupMetadataValue, MemberMetadata

_KINDS = {int(record_type): record_type.name.lower() for record_type in RecordType}
_COLUMNS = schema_in_file("group_metadata")


def _types(*names: str) -> frozenset[RecordType]:
    """The record types of these names, of all kinds of groups that have epochs."""
    return frozenset(
        RecordType[f"{kind}_GROUP_{name}"] for kind in ("CONSUMER", "SHARE", "STREAMS") for name in names
    )


_MEMBERS = _types("MEMBER_METADATA", "TARGET_ASSIGNMENT_MEMBER", "CURRENT_MEMBER_ASSIGNMENT")
"""Their keys name a member behind the group."""
_EPOCHS = _types("METADATA", "TARGET_ASSIGNMENT_METADATA", "CURRENT_MEMBER_ASSIGNMENT")
"""Their values begin with an epoch, whatever else they hold: of group, assignment or member."""

Row = dict[str, Any]


def group_metadata(records: pa.Table) -> tuple[pa.Table, list[tuple[Row, str]]]:
    """Rows; and the records that could not be read, each with the reason.

    A record whose value cannot be read has a row as well: its group, and all its bytes, are known.
    """
    rows: list[Row] = []
    unread: list[tuple[Row, str]] = []
    for record in records.to_pylist():
        row = {**record, "group": "", "is_removal": record["value"] is None}
        try:
            _read_key(row)
            rows.append(row)
            _read_value(row)
        except Malformed as error:
            row["details"] = [(UNREAD, str(error))]
            unread.append((record, str(error)))
    return pa.Table.from_pylist(rows, _COLUMNS), unread


def _read_key(row: Row) -> None:
    record_type, key = decode_key(row["key"])
    row["kind"] = _KINDS.get(record_type, f"type {record_type}")
    row["group"] = getattr(key, "group", None) or getattr(key, "group_id", "")
    if record_type in _MEMBERS:
        member_id = _second_string(key.body) if isinstance(key, OtherKey) else key.member_id
        row["members"] = [{"member_id": member_id}]


def _read_value(row: Row) -> None:
    record_type, value = row["key_type"], row["value"]
    if value is None:
        return
    read = decode_value(record_type, value)
    if isinstance(read, GroupMetadataValue):
        consumers = read.protocol_type == PROTOCOL_TYPE
        row |= {
            "generation": read.generation,
            "protocol_type": read.protocol_type,
            "protocol": read.protocol,
            "leader": read.leader,
            "members": [_member(member, consumers) for member in read.members],
        }
        return
    if record_type in _EPOCHS:
        row["generation"] = _epoch(value)
    if record_type in _MEMBERS:
        row["members"][0] |= _member_fields(read)
    row["details"] = _details(read)


def _member(member: MemberMetadata, consumers: bool) -> Row:
    subscribed = assigned = None
    if consumers:
        with suppress(Malformed):  # A client's own bytes: Kafka does not look at them either.
            subscribed = _subscribed(member.subscription)
            assigned = _assigned(member.assignment)
    return {
        "member_id": member.member_id,
        "instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "session_timeout_ms": member.session_timeout,
        "rebalance_timeout_ms": member.rebalance_timeout if member.rebalance_timeout >= 0 else None,
        "subscribed": subscribed,
        "assigned": assigned,
    }


def _member_fields(value: Any) -> Row:
    """What a record of a newer protocol says of a member, as far as `members` has fields for it."""
    if isinstance(value, ConsumerGroupMemberMetadataValue):
        return {
            "instance_id": value.instance_id,
            "client_id": value.client_id,
            "client_host": value.client_host,
            "rebalance_timeout_ms": value.rebalance_timeout_ms if value.rebalance_timeout_ms >= 0 else None,
            "subscribed": value.subscribed_topic_names,
        }
    topics = getattr(value, "topic_partitions", None) or getattr(value, "assigned_partitions", None)
    if topics is None:
        return {}
    return {"assigned": _positions((topic_id_text(topic.topic_id), topic.partitions) for topic in topics)}


def _details(value: Any) -> list[tuple[str, str]]:
    """What else the doctor needs of a record of a KIP-848 group."""
    if isinstance(value, ConsumerGroupPartitionMetadataValue):
        return [(topic_id_text(topic.topic_id), topic.topic_name) for topic in value.topics]
    if not isinstance(value, ConsumerGroupMemberMetadataValue):
        return []
    classic = value.classic_member_metadata
    details = {
        ASSIGNOR: value.server_assignor,
        TOPIC_REGEX: value.subscribed_topic_regex,
        SESSION_TIMEOUT: None if classic is None else str(classic.session_timeout_ms),
    }
    return [(name, text) for name, text in details.items() if text is not None]


# Members of one group have the same subscription, and keep their assignments: few of these are ever new.
@lru_cache(maxsize=4096)
def _subscribed(blob: bytes) -> list[str]:
    return list(decode_subscription(blob)[1].topics)


@lru_cache(maxsize=4096)
def _assigned(blob: bytes) -> list[Row]:
    return _positions(
        (topic.topic, topic.partitions) for topic in decode_assignment(blob)[1].assigned_partitions
    )


def _positions(topics: Iterable[tuple[str, Iterable[int]]]) -> list[Row]:
    return [
        {"topic": topic, "partition": partition} for topic, partitions in topics for partition in partitions
    ]


def _second_string(body: bytes) -> str:
    """The member's id in a key that is not read as a whole: group, then member."""
    try:
        (size,) = struct.unpack_from(">h", body)
        (length,) = struct.unpack_from(">h", body, 2 + size)
    except struct.error:
        raise Malformed("a key without a member", offset=0) from None
    member = body[4 + size : 4 + size + length]
    if length < 0 or len(member) < length:
        raise Malformed("a key without a member", offset=0)
    return member.decode("utf-8", "replace")


def _epoch(value: bytes) -> int:
    try:
        return int(struct.unpack_from(">i", value, 2)[0])
    except struct.error:
        raise Malformed("a value without an epoch", offset=2) from None
