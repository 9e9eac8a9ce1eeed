"""What consumers put into JoinGroup and SyncGroup as opaque bytes: subscription and assignment.

Only groups whose protocol type is `consumer` use it; the bytes of others (`connect`, …) stay opaque.

v0   topics, user data
v1   subscription + owned_partitions (KIP-429, cooperative rebalancing)
v2   subscription + generation_id (KIP-792)
v3   subscription + rack_id (KIP-881)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from kelpie.model.names import TopicPartition
from kelpie.wire import compiler, prefixed
from kelpie.wire.schema import Int32, data, field
from kelpie.wire.structs import TopicPartitions

PROTOCOL_TYPE = "consumer"
NEWEST = 3
T = TypeVar("T")


@data(versions="0-3")
class Subscription:
    topics: list[str]
    user_data: bytes | None = None
    owned_partitions: list[TopicPartitions] = field("1+", default=[])
    generation_id: Int32 = field("2+", default=-1)
    rack_id: str | None = field("3+", default=None)


@data(versions="0-3")
class Assignment:
    assigned_partitions: list[TopicPartitions]
    user_data: bytes | None = None


def decode_subscription(blob: bytes) -> tuple[int, Subscription]:
    """Version and content. Raises Malformed."""
    return _decode(Subscription, blob)


def decode_assignment(blob: bytes) -> tuple[int, Assignment]:
    """Version and content. Coordinators send an empty assignment as no bytes. Raises Malformed."""
    if not blob:
        return 0, Assignment(assigned_partitions=[])
    return _decode(Assignment, blob)


def partitions_in(assignment: bytes) -> list[TopicPartition]:
    """The partitions of an assignment; no bytes are no partitions. Raises Malformed."""
    return partitions_of(decode_assignment(assignment)[1].assigned_partitions)


def partitions_of(rows: Iterable[TopicPartitions]) -> list[TopicPartition]:
    return [TopicPartition(row.topic, number) for row in rows for number in row.partitions]


def rows_of(partitions: Iterable[TopicPartition]) -> list[TopicPartitions]:
    """A row for each topic, in the order given."""
    by_topic: dict[str, list[int]] = {}
    for topic, number in partitions:
        by_topic.setdefault(topic, []).append(number)
    return [TopicPartitions(topic=topic, partitions=numbers) for topic, numbers in by_topic.items()]


def encode(message: Subscription | Assignment, version: int) -> bytes:
    return prefixed.encode(message, version)


def _decode(cls: type[T], blob: bytes) -> tuple[int, T]:
    version = prefixed.number(blob, f"version of {cls.__name__}")
    if version <= NEWEST:
        return version, prefixed.decode(cls, blob)
    # A newer version only appends fields, so what is known of it can be read.
    return version, compiler.decode_prefix(cls, NEWEST, blob, prefixed.SIZE)[0]
