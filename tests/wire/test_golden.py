"""Bytes that Kafka itself wrote, or that were put together by hand from its schemas."""

import pytest

from kelpie.wire import consumer_protocol, offsets_topic
from kelpie.wire.consumer_protocol import Assignment, Subscription
from kelpie.wire.offsets_topic import OtherKey, RecordType
from kelpie.wire.offsets_topic.group_metadata import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from kelpie.wire.offsets_topic.offset_commit import OffsetCommitKey, OffsetCommitValue
from kelpie.wire.structs import TopicPartitions

TOPIC_ID = bytes.fromhex("00112233445566778899aabbccddeeff")
SUBSCRIPTION = "0000 00000001 0002 7431 ffffffff"
ASSIGNMENT = "0000 00000001 0002 7431 00000001 00000003 ffffffff"

KEYS = {
    "0001 0002 6731 0002 7431 00000003": OffsetCommitKey(group="g1", topic="t1", partition=3),
    "0001 0006 e4bda0e5a5bd 0002 7431 00000003": OffsetCommitKey(group="你好", topic="t1", partition=3),
    "0002 0002 6731": GroupMetadataKey(group="g1"),
}

VALUES = {
    "0001 000000000000002a 0004 6d657461 00000000000003e8 00000000000007d0": (
        RecordType.OFFSET_COMMIT,
        OffsetCommitValue(offset=42, metadata="meta", commit_timestamp=1000, expire_timestamp=2000),
    ),
    "0003 000000000000002a 00000005 0004 6d657461 00000000000003e8": (
        RecordType.OFFSET_COMMIT,
        OffsetCommitValue(offset=42, leader_epoch=5, metadata="meta", commit_timestamp=1000),
    ),
    "0004 000000000000002a 00000005 05 6d657461 00000000000003e8 00": (
        RecordType.OFFSET_COMMIT,
        OffsetCommitValue(offset=42, leader_epoch=5, metadata="meta", commit_timestamp=1000),
    ),
    "0004 000000000000002a 00000005 05 6d657461 00000000000003e8 01 00 10 00112233445566778899aabbccddeeff": (
        RecordType.OFFSET_COMMIT,
        OffsetCommitValue(
            offset=42, leader_epoch=5, metadata="meta", commit_timestamp=1000, topic_id=TOPIC_ID
        ),
    ),
    "0003 0008 636f6e73756d6572 00000007 0005 72616e6765 0002 6d31 00000000000003e8 00000001 0002 6d31 ffff "
    "0002 6331 000a 2f3132372e302e302e31 000493e0 0000afc8 "
    "0000000e 00000000000100027431ffffffff 00000016 000000000001000274310000000100000003ffffffff": (
        RecordType.GROUP_METADATA,
        GroupMetadataValue(
            protocol_type="consumer",
            generation=7,
            protocol="range",
            leader="m1",
            current_state_timestamp=1000,
            members=[
                MemberMetadata(
                    member_id="m1",
                    client_id="c1",
                    client_host="/127.0.0.1",
                    rebalance_timeout=300_000,
                    session_timeout=45_000,
                    subscription=bytes.fromhex(SUBSCRIPTION),
                    assignment=bytes.fromhex(ASSIGNMENT),
                )
            ],
        ),
    ),
    "0003 0008 636f6e73756d6572 00000008 ffff ffff 00000000000003e8 00000000": (
        RecordType.GROUP_METADATA,
        GroupMetadataValue(
            protocol_type="consumer",
            generation=8,
            protocol=None,
            leader=None,
            current_state_timestamp=1000,
            members=[],
        ),
    ),
}


@pytest.mark.parametrize("text", KEYS)
def test_keys_of_the_offsets_topic_are_kafkas(text: str) -> None:
    """Any reader of the topic must understand our keys, and we theirs."""
    raw = bytes.fromhex(text)
    assert offsets_topic.decode_key(raw)[1] == KEYS[text]
    assert offsets_topic.encode_key(KEYS[text]) == raw


@pytest.mark.parametrize("text", VALUES)
def test_values_of_the_offsets_topic_are_kafkas(text: str) -> None:
    """Values of every age, among them the topic id that Kafka 4.1 began to write."""
    record_type, value = VALUES[text]
    raw = bytes.fromhex(text)
    assert offsets_topic.decode_value(record_type, raw) == value
    assert offsets_topic.encode_value(value, raw[1]) == raw


def test_subscription_and_assignment_are_those_of_java_consumers() -> None:
    """The blobs inside JoinGroup and SyncGroup, which brokers never look into."""
    subscription = Subscription(topics=["t1"])
    assignment = Assignment(assigned_partitions=[TopicPartitions(topic="t1", partitions=[3])])
    assert consumer_protocol.decode_subscription(bytes.fromhex(SUBSCRIPTION)) == (0, subscription)
    assert consumer_protocol.decode_assignment(bytes.fromhex(ASSIGNMENT)) == (0, assignment)
    assert consumer_protocol.encode(subscription, 0) == bytes.fromhex(SUBSCRIPTION)
    assert consumer_protocol.encode(assignment, 0) == bytes.fromhex(ASSIGNMENT)


def test_no_bytes_at_all_are_an_empty_assignment() -> None:
    """Coordinators send them to members that got nothing."""
    assert consumer_protocol.decode_assignment(b"") == (0, Assignment(assigned_partitions=[]))


def test_a_newer_subscription_is_read_as_far_as_it_is_known() -> None:
    """Newer versions only append, and a doctor must not go blind on a new client."""
    newer = bytes.fromhex("0009 00000001 0002 7431 ffffffff 00000000 00000007 ffff cafe")
    version, subscription = consumer_protocol.decode_subscription(newer)
    assert (version, subscription.topics, subscription.generation_id) == (9, ["t1"], 7)


@pytest.mark.parametrize("record_type", [9, 10, 11, 12, 13, 14, 15, 17, 19, 20, 21, 22, 23])
def test_records_of_share_and_streams_groups_are_named_with_their_group(record_type: int) -> None:
    """They are not read, but nobody should wonder what they are."""
    key = record_type.to_bytes(2) + bytes.fromhex("0002 6731 0002 6d31")
    found_type, found = offsets_topic.decode_key(key)
    assert found_type == record_type
    assert isinstance(found, OtherKey)
    assert (found.name, found.group_id) == (RecordType(record_type).name, "g1")


def test_a_record_type_of_a_future_kafka_is_kept() -> None:
    """Brokers skip it with a warning since 3.4.1 (KIP-915); older ones failed to load."""
    found_type, found = offsets_topic.decode_key(bytes.fromhex("0063 cafe"))
    assert found_type == 99
    assert found.body == bytes.fromhex("cafe")
