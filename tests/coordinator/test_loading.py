"""Taking over a shard, and giving it up."""

from typing import Any

import pytest

from kelpie.coordinator.classic.state import ClassicGroupState
from kelpie.coordinator.config import GroupConfig
from kelpie.coordinator.release_behaviour import BEHAVIOUR_0_9, BEHAVIOUR_4_3
from kelpie.coordinator.shard import GroupShard
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.wire.malformed import Malformed
from kelpie.wire.offsets_topic import consumer_group as kip848
from kelpie.wire.offsets_topic import encode_key, encode_value
from kelpie.wire.offsets_topic.group_metadata import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from kelpie.wire.offsets_topic.offset_commit import (
    LegacyOffsetCommitKey,
    OffsetCommitKey,
    OffsetCommitValue,
)
from tests.coordinator.clients import (
    DELAY_MS,
    RANGE,
    REBALANCE_MS,
    SESSION_MS,
    TOPIC,
    Group,
    subscription,
)
from tests.coordinator.driver import START, Driver, classic_groups

PLACE = TopicPartition(TOPIC, 0)


@pytest.fixture
def group() -> Group:
    return Group(Driver())


def fresh() -> GroupShard:
    return GroupShard(GroupConfig(), BEHAVIOUR_4_3, lambda: "uuid")


def value(offset: int, version: int, **more: Any) -> bytes:
    return encode_value(
        OffsetCommitValue(offset=offset, metadata="", commit_timestamp=START, **more), version
    )


def test_members_go_on_with_the_next_coordinator(group: Group) -> None:
    """Same generation, same assignment, a new session for everyone."""
    members = group.stable(2)
    before = [group.sync(each, 1).answer.assignment for each in members]
    group.driver.pass_time(SESSION_MS - 1)
    group.driver.move()
    group.driver.pass_time(SESSION_MS - 1)
    assert [group.heartbeat(each, 1) for each in members] == [0, 0]
    assert [group.sync(each, 1).answer.assignment for each in members] == before


def test_rebalance_is_lost_with_its_coordinator(group: Group) -> None:
    """The last generation that was written is active again."""
    first, second = group.stable(2)
    parked = group.join(first)
    group.driver.move()
    assert parked.error == ErrorCode.NOT_COORDINATOR
    assert parked.answer.member_id == first
    assert group.state == "Stable"
    assert group.heartbeat(second, 1) == ErrorCode.NONE


def test_parked_syncs_are_sent_to_the_next_coordinator(group: Group) -> None:
    """They have to join again there."""
    _, follower = group.completing(2)
    parked = group.sync(follower, 1)
    group.driver.move()
    assert parked.error == ErrorCode.NOT_COORDINATOR
    assert group.state == "Empty", "only the new group's record was written"


def test_after_a_load_several_protocols_are_a_change(group: Group) -> None:
    """Only the selected one was written, so the first rejoin looks changed."""
    both = (*RANGE, ("roundrobin", subscription(TOPIC)))
    ids = [group.with_id(protocols=both)[0] for _ in range(2)]
    group.driver.pass_time(2 * DELAY_MS)
    for member in reversed(ids):
        group.sync(member, 1)
    assert not group.join(ids[1], protocols=both).waits
    group.driver.move()
    assert group.join(ids[1], protocols=both).waits


def test_group_without_members_loads_as_empty(group: Group) -> None:
    """And knows since when: KIP-211 counts from there."""
    (member,) = group.stable()
    group.driver.pass_time(1_000)
    group.leave(member)
    left = group.driver.now
    group.driver.pass_time(1_000)
    group.driver.move()
    assert (group.driver.group().state, group.driver.group().since) == (ClassicGroupState.EMPTY, left)
    assert group.driver.group().protocol_type == "consumer"


def test_loaded_subscriptions_are_known(group: Group) -> None:
    """OffsetDelete asks for them."""
    group.stable()
    group.driver.move()
    assert group.driver.group().subscribed == frozenset({TOPIC})


def test_oversized_group_rebalances_after_its_load() -> None:
    """KIP-389: group.max.size may have been lowered."""
    driver = Driver()
    group = Group(driver)
    group.stable(2)
    driver.config = GroupConfig(max_size=1)
    driver.move()
    assert group.state == "PreparingRebalance"
    driver.pass_time(REBALANCE_MS)
    assert group.state == "Empty"


def test_written_record_of_a_live_group_changes_nothing(group: Group) -> None:
    """The live group is ahead of its record (Kafka 4 does not replay it)."""
    leader, _ = group.completing(2)
    group.driver.hold()
    group.sync(leader, 1, {})
    group.join(version=3)
    group.driver.release()
    assert group.state == "PreparingRebalance"
    assert len(group.driver.group().members) == 3


def test_unloaded_shard_answers_nobody_twice(group: Group) -> None:
    """Writes that fail afterwards find nobody parked."""
    leader, follower = group.completing(2)
    group.driver.hold()
    calls = [group.sync(follower, 1), group.sync(leader, 1, {}), group.commit_call(5, topic="other")]
    group.driver.move()
    assert [call.error for call in calls[:2]] == [ErrorCode.NOT_COORDINATOR] * 2
    group.driver.check_all_answered()


def test_records_of_kafka_0_8_are_read() -> None:
    """Key type 0, value version 0; the later of the two key types counts."""
    shard = fresh()
    old = encode_key(LegacyOffsetCommitKey(group="g", topic=TOPIC, partition=0))
    new = encode_key(OffsetCommitKey(group="g", topic=TOPIC, partition=0))
    shard.replay(new, value(5, 1, expire_timestamp=START + 9), offset=0)
    assert shard.state.offsets.of("g")[PLACE].expire_timestamp == START + 9
    shard.replay(old, value(6, 0), offset=1)
    assert shard.state.offsets.of("g")[PLACE].offset == 6


def test_group_record_without_rebalance_timeout_uses_the_session() -> None:
    """Version 0, of Kafka 0.9."""
    shard = fresh()
    member = MemberMetadata(
        member_id="m",
        client_id="c",
        client_host="/10.0.0.1",
        session_timeout=SESSION_MS,
        subscription=subscription(TOPIC),
        assignment=b"",
    )
    written = GroupMetadataValue(
        protocol_type="consumer", generation=3, protocol="range", leader="m", members=[member]
    )
    shard.replay(encode_key(GroupMetadataKey(group="g")), encode_value(written, 0), offset=0)
    found = classic_groups(shard)["g"]
    assert (found.state, found.generation, found.since) == (ClassicGroupState.STABLE, 3, None)
    assert found.members["m"].rebalance_timeout_ms == SESSION_MS


def test_tombstone_of_a_group_ends_it_while_loading() -> None:
    """In the log the last one counts."""
    shard = fresh()
    key = encode_key(GroupMetadataKey(group="g"))
    empty = GroupMetadataValue(protocol_type="", generation=0, protocol=None, leader=None, members=[])
    shard.replay(key, encode_value(empty, 3), offset=0)
    assert "g" in shard.state.groups
    shard.replay(key, None, offset=1)
    assert "g" not in shard.state.groups


def test_records_of_newer_groups_are_left_alone() -> None:
    """KIP-848 is for a later day; a log may hold them all the same."""
    shard = fresh()
    key = encode_key(kip848.ConsumerGroupMetadataKey(group_id="g"))
    shard.replay(key, encode_value(kip848.ConsumerGroupMetadataValue(epoch=1), 0), offset=0)
    shard.replay(b"\x00\x63whatever", b"\x00\x00", offset=1)
    assert shard.state.groups == {}


def test_record_that_cannot_be_read_is_no_secret() -> None:
    """Kafka's load fails as well."""
    with pytest.raises(Malformed):
        fresh().replay(encode_key(GroupMetadataKey(group="g")), b"\x00\x03broken", offset=0)


def test_empty_group_of_kafka_0_9_is_stable() -> None:
    """It has no other word for it."""
    shard = GroupShard(GroupConfig(), BEHAVIOUR_0_9, lambda: "uuid")
    empty = GroupMetadataValue(protocol_type="", generation=0, protocol=None, leader=None, members=[])
    shard.replay(encode_key(GroupMetadataKey(group="g")), encode_value(empty, 0), offset=0)
    assert classic_groups(shard)["g"].state is ClassicGroupState.STABLE
