"""DescribeGroups and ListGroups."""

import pytest

from kelpie.coordinator.config import GroupConfig
from kelpie.coordinator.release_behaviour import BEHAVIOUR_3_9
from kelpie.errors import ErrorCode
from tests.coordinator.clients import TOPIC, Group, assignment, subscription
from tests.coordinator.driver import Driver


@pytest.fixture
def group() -> Group:
    return Group(Driver())


def test_stable_group_is_described_in_full(group: Group) -> None:
    """Who is in it, with the metadata of the selected protocol, and what everyone owns."""
    first, second = group.stable(2)
    found = group.driver.shard.describe("g", 5)
    assert (found.error_code, found.group_state) == (0, "Stable")
    assert (found.protocol_type, found.protocol_data) == ("consumer", "range")
    assert [member.member_id for member in found.members] == [first, second]
    assert [member.member_assignment for member in found.members] == [assignment([0]), assignment([1])]
    assert {member.member_metadata for member in found.members} == {subscription(TOPIC)}
    assert {(member.client_id, member.client_host) for member in found.members} == {("c", "/10.0.0.1")}


def test_rebalancing_group_is_described_without_metadata(group: Group) -> None:
    """No protocol is selected; Kafka 4 still shows what members own."""
    first, _ = group.stable(2)
    group.join(first)
    found = group.driver.shard.describe("g", 5)
    assert (found.group_state, found.protocol_data) == ("PreparingRebalance", "")
    assert [member.member_metadata for member in found.members] == [b"", b""]
    assert [member.member_assignment for member in found.members] == [assignment([0]), assignment([1])]


def test_scala_describes_no_assignments_while_rebalancing() -> None:
    """Up to 3.9."""
    group = Group(Driver(BEHAVIOUR_3_9))
    first, _ = group.stable(2)
    group.join(first)
    found = group.driver.shard.describe("g", 5)
    assert [member.member_assignment for member in found.members] == [b"", b""]


def test_missing_group_is_dead(group: Group) -> None:
    """Since version 6 it is also an error (KIP-1043)."""
    old, new = (group.driver.shard.describe("g", version) for version in (5, 6))
    assert (old.group_state, old.error_code, old.error_message) == ("Dead", 0, None)
    assert (new.group_state, new.error_code) == ("Dead", ErrorCode.GROUP_ID_NOT_FOUND)
    assert new.error_message == "Group g not found."


def test_static_members_are_described_with_their_instance(group: Group) -> None:
    """DescribeGroups version 4."""
    group.join(instance="i")
    assert group.driver.shard.describe("g", 5).members[0].group_instance_id == "i"


def test_groups_are_listed_with_state_and_type() -> None:
    """In the order in which they came."""
    driver = Driver()
    Group(driver, "reads").stable()
    Group(driver, "commits").commit(1)
    listed = [
        (each.group_id, each.protocol_type, each.group_state, each.group_type)
        for each in driver.shard.listed()
    ]
    assert listed == [("reads", "consumer", "Stable", "classic"), ("commits", "", "Empty", "classic")]


def test_list_can_be_filtered_by_state_and_type() -> None:
    """KIP-518 and KIP-848; however it is spelt. What nobody knows matches nothing."""
    driver = Driver()
    Group(driver, "reads").stable()
    Group(driver, "commits").commit(1)
    shard = driver.shard
    assert [each.group_id for each in shard.listed(states=["stable"])] == ["reads"]
    assert [each.group_id for each in shard.listed(states=["Empty", "Dead"])] == ["commits"]
    assert [each.group_id for each in shard.listed(states=["nonsense"])] == []
    assert len(shard.listed(types=["Classic"])) == 2
    assert shard.listed(types=["consumer"]) == []


def test_settings_are_read_by_their_kafka_names() -> None:
    """Others are none of our business."""
    config = GroupConfig.of({"group.max.size": "7", "offsets.retention.minutes": "2", "log.dirs": "/tmp"})
    assert (config.max_size, config.offsets_retention_ms) == (7, 120_000)
    assert config.min_session_timeout_ms == 6_000
