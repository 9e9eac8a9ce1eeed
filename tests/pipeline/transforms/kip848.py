"""Records of KIP-848 groups as rows of group_metadata, made of real bytes."""

from dataclasses import replace
from typing import Any

import pyarrow as pa

from kelpie.pipeline.decoding.group_records import group_metadata
from kelpie.wire import offsets_topic
from kelpie.wire.offsets_topic import consumer_group as kip848
from kelpie.wire.structs import TopicIdPartitions
from tests.pipeline.rows import at

ORDERS, PAYMENTS = b"o" * 16, b"p" * 16


def epoch(number: int | None) -> tuple[Any, Any]:
    value = None if number is None else kip848.ConsumerGroupMetadataValue(epoch=number)
    return kip848.ConsumerGroupMetadataKey(group_id="g"), value


def member(name: str, *topics: str, gone: bool = False) -> tuple[Any, Any]:
    value = kip848.ConsumerGroupMemberMetadataValue(
        instance_id=None,
        rack_id=None,
        client_id=f"client-{name}",
        client_host="/127.0.0.1",
        subscribed_topic_names=list(topics),
        subscribed_topic_regex="",
        rebalance_timeout_ms=300_000,
        server_assignor=None,
    )
    return kip848.ConsumerGroupMemberMetadataKey(group_id="g", member_id=name), None if gone else value


def target(name: str, topic_id: bytes, *partitions: int) -> tuple[Any, Any]:
    given = [TopicIdPartitions(topic_id=topic_id, partitions=list(partitions))]
    key = kip848.ConsumerGroupTargetAssignmentMemberKey(group_id="g", member_id=name)
    return key, kip848.ConsumerGroupTargetAssignmentMemberValue(topic_partitions=given)


def computed(number: int) -> tuple[Any, Any]:
    key = kip848.ConsumerGroupTargetAssignmentMetadataKey(group_id="g")
    return key, kip848.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=number)


def current(name: str, number: int | None, topic_id: bytes = ORDERS, *partitions: int) -> tuple[Any, Any]:
    key = kip848.ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id=name)
    if number is None:
        return key, None
    had = [kip848.CurrentPartitions(topic_id=topic_id, partitions=list(partitions))] if partitions else []
    return key, kip848.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=number,
        previous_member_epoch=number - 1,
        state=0,
        assigned_partitions=had,
        partitions_pending_revocation=[],
    )


def written(
    *writes: tuple[float, list[tuple[Any, Any]]], first: int = 0, group: str = "g"
) -> list[dict[str, Any]]:
    """Rows of what the coordinator wrote: (seconds, its records) each."""
    keys = [
        (seconds, offsets_topic.encode_key(replace(key, group_id=group)), value)
        for seconds, together in writes
        for key, value in together
    ]
    records = [
        {
            "log_offset": offset,
            "written": at(seconds),
            "key_type": int.from_bytes(key[:2], "big"),
            "key": key,
            "value": None if value is None else offsets_topic.encode_value(value, 0),
        }
        for offset, (seconds, key, value) in enumerate(keys, start=first)
    ]
    rows, unread = group_metadata(pa.Table.from_pylist(records))
    assert unread == []
    # Spark takes maps as dicts, Arrow hands them out as pairs.
    return [{**row, "details": dict(row["details"] or ())} for row in rows.to_pylist()]


def two_join(group: str = "g") -> list[dict[str, Any]]:
    """A member, and a second one: epochs 2 and 3, the latter from second 5 to 8."""
    return written(
        (1, [member("a", "orders"), epoch(2), target("a", ORDERS, 0, 1), computed(2)]),
        (1, [current("a", 2, ORDERS, 0, 1)]),
        (5, [member("b", "orders"), epoch(3), current("b", 2)]),
        (6, [target("a", ORDERS, 0), target("b", ORDERS, 1), computed(3)]),
        (7, [current("a", 3, ORDERS, 0)]),
        (8, [current("b", 3, ORDERS, 1)]),
        group=group,
    )


def goes(name: str, number: int) -> list[tuple[Any, Any]]:
    """A member leaves, and that is a new epoch."""
    return [current(name, None), member(name, gone=True), epoch(number)]
