"""SyncGroup and LeaveGroup, and what happens if the group cannot be written."""

import pytest

from kelpie.coordinator.release_behaviour import BEHAVIOUR_3_9, BEHAVIOUR_4_3, GroupBehaviour
from kelpie.errors import ErrorCode
from tests.coordinator.clients import REBALANCE_MS, SESSION_MS, Group, assignment
from tests.coordinator.driver import Driver


@pytest.fixture
def group() -> Group:
    return Group(Driver())


def test_member_that_the_leader_left_out_gets_nothing(group: Group) -> None:
    """No bytes at all, which clients read as no partitions."""
    leader, other = group.completing(2)
    parked = group.sync(other, 1)
    group.sync(leader, 1, {leader: assignment([0]), "stranger": assignment([1])})
    assert (parked.error, parked.answer.assignment) == (ErrorCode.NONE, b"")
    assert "stranger" not in group.driver.group().members


def test_assignment_is_given_out_once_it_is_written(group: Group) -> None:
    """A member that works by an assignment which the next coordinator does not know would be a zombie."""
    leader, other = group.completing(2)
    group.driver.hold()
    calls = [group.sync(other, 1), group.sync(leader, 1, {other: assignment([1])})]
    assert all(call.waits for call in calls)
    assert group.state == "CompletingRebalance"
    group.driver.release()
    assert [call.answer.assignment for call in calls] == [assignment([1]), b""]


def test_result_of_the_write_is_ignored_after_another_rebalance(group: Group) -> None:
    """A member came while the assignment was on its way."""
    leader, _ = group.completing(2)
    group.driver.hold()
    call = group.sync(leader, 1, {leader: assignment([0])})
    group.join(version=3)
    assert call.error == ErrorCode.REBALANCE_IN_PROGRESS
    group.driver.release()
    assert group.state == "PreparingRebalance"


def test_failed_write_is_told_to_all_and_begins_a_rebalance(group: Group) -> None:
    """Nobody may work by an assignment that is not written."""
    leader, other = group.completing(2)
    group.driver.hold()
    calls = [group.sync(other, 1), group.sync(leader, 1, {})]
    group.driver.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert [call.error for call in calls] == [ErrorCode.NOT_COORDINATOR] * 2
    assert group.state == "PreparingRebalance"


@pytest.mark.parametrize(
    ("behaviour", "error", "told"),
    [
        (BEHAVIOUR_4_3, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (BEHAVIOUR_4_3, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (BEHAVIOUR_4_3, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (BEHAVIOUR_4_3, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (BEHAVIOUR_4_3, ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (BEHAVIOUR_4_3, ErrorCode.CORRUPT_MESSAGE, ErrorCode.CORRUPT_MESSAGE),
        (BEHAVIOUR_3_9, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (BEHAVIOUR_3_9, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REBALANCE_IN_PROGRESS),
        (BEHAVIOUR_3_9, ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_error_of_the_write_is_translated(
    behaviour: GroupBehaviour, error: ErrorCode, told: ErrorCode
) -> None:
    """Members understand what concerns coordinators, not what concerns partitions."""
    group = Group(Driver(behaviour))
    (leader,) = group.completing()
    group.driver.broken = error
    assert group.sync(leader, 1, {}).error == told


def test_members_that_do_not_sync_in_time_are_removed(group: Group) -> None:
    """KAFKA-12890: after the rebalance timeout the group goes on without them."""
    leader, other = group.completing(2)
    group.sync(leader, 1, {})
    assert group.state == "Stable"
    for _ in range(REBALANCE_MS // 5_000):
        group.driver.pass_time(5_000)
        for member in (leader, other):
            group.heartbeat(member, 1)
    assert group.state == "PreparingRebalance"
    assert list(group.driver.group().members) == [leader]


def test_wait_for_syncs_ends_when_all_have_synced(group: Group) -> None:
    """Nobody is removed later."""
    members = group.stable(2)
    for _ in range(2 * REBALANCE_MS // 5_000):
        group.driver.pass_time(5_000)
        assert [group.heartbeat(member, 1) for member in members] == [0, 0]


def test_parked_sync_stands_for_a_heartbeat(group: Group) -> None:
    """Its connection is quiet because we do not answer."""
    leader, other = group.completing(2)
    parked = group.sync(other, 1)
    for _ in range(3):
        group.driver.pass_time(SESSION_MS - 1)
        group.heartbeat(leader, 1)
    assert parked.waits
    group.sync(leader, 1, {})
    group.driver.pass_time(SESSION_MS - 1)
    assert group.heartbeat(other, 1) == ErrorCode.NONE, "the session began anew with the answer"


def test_second_sync_of_a_member_takes_the_place_of_the_first(group: Group) -> None:
    """Kafka keeps one call a member: the older one is never answered."""
    leader, other = group.completing(2)
    older, newer = group.sync(other, 1), group.sync(other, 1)
    group.sync(leader, 1, {})
    assert older.abandoned
    assert newer.error == ErrorCode.NONE


def test_sync_to_a_missing_group_is_unknown(group: Group) -> None:
    """And so are heartbeat and leave."""
    assert group.sync("m", 1).error == ErrorCode.UNKNOWN_MEMBER_ID
    assert group.heartbeat("m", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    left = group.leave("m", "n").answer
    assert left.error_code == ErrorCode.NONE
    assert [member.error_code for member in left.members] == [ErrorCode.UNKNOWN_MEMBER_ID] * 2


def test_several_members_leave_at_once(group: Group) -> None:
    """LeaveGroup version 3: each has its own result, and there is one rebalance."""
    first, second, third = group.stable(3)
    left = group.leave(first, "nobody", third).answer
    assert [member.error_code for member in left.members] == [0, ErrorCode.UNKNOWN_MEMBER_ID, 0]
    assert list(group.driver.group().members) == [second]
    assert group.state == "PreparingRebalance"


@pytest.mark.parametrize("version", [0, 1, 2])
def test_old_leave_has_one_member_and_one_error(group: Group, version: int) -> None:
    """Before version 3 the error is that of the response."""
    (member,) = group.stable()
    assert group.leave(member, version=version).error == ErrorCode.NONE
    assert group.leave(member, version=version).error == ErrorCode.UNKNOWN_MEMBER_ID


def test_parked_join_of_one_who_leaves_is_answered(group: Group) -> None:
    """It may come again if it is still there."""
    first, _ = group.stable(2)
    call = group.join(first)
    group.leave(first)
    assert (call.error, call.answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "")


def test_last_leave_is_answered_once_the_empty_group_is_written(group: Group) -> None:
    """Kafka 4; the state is Empty before."""
    (member,) = group.stable()
    group.driver.hold()
    call = group.leave(member)
    assert call.waits
    assert group.state == "Empty"
    group.driver.release()
    assert call.error == ErrorCode.NONE


def test_emptied_group_that_cannot_be_written_is_empty_all_the_same(group: Group) -> None:
    """The next coordinator finds the last generation, whose members time out."""
    (member,) = group.stable()
    group.driver.hold()
    call = group.leave(member)
    group.driver.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert call.error == ErrorCode.NOT_COORDINATOR
    assert group.state == "Empty"
    group.driver.move()
    assert group.state == "Stable"
    group.driver.pass_time(SESSION_MS)
    assert group.state == "Empty"
