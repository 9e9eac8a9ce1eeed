"""Static members (KIP-345): an instance that comes back keeps its place."""

import pytest

from kelpie.errors import ErrorCode
from tests.coordinator.clients import (
    DELAY_MS,
    REBALANCE_MS,
    SESSION_MS,
    TOPIC,
    Group,
    assigned_by,
    assignment,
    subscription,
)
from tests.coordinator.driver import Driver

BOTH = (("range", subscription(TOPIC)), ("roundrobin", subscription(TOPIC)))


class Static(Group):
    def pair(self) -> tuple[str, str]:
        """Two static members, `i` (which leads) and `j`, in a Stable group of generation 1."""
        calls = [self.join(instance=name) for name in "ij"]
        self.driver.pass_time(2 * DELAY_MS)
        leader, other = (call.answer.member_id for call in calls)
        self.sync(other, 1)
        self.sync(leader, 1, assigned_by(calls[0].answer))
        assert self.state == "Stable"
        return leader, other


@pytest.fixture
def group() -> Static:
    return Static(Driver())


def test_first_join_of_an_instance_makes_a_member(group: Static) -> None:
    """It is known by its instance, and needs no id to come back with."""
    call = group.join(instance="i")
    group.driver.pass_time(DELAY_MS)
    assert call.answer.member_id.startswith("i-uuid-")


def test_return_to_a_stable_group_costs_no_rebalance(group: Static) -> None:
    """What static members are for: a restart within the session leaves everybody at work."""
    _, old = group.pair()
    call = group.join(instance="j")
    new = call.answer.member_id
    assert new != old
    assert (call.error, call.answer.generation_id, group.state) == (ErrorCode.NONE, 1, "Stable")
    assert group.sync(new, 1).answer.assignment == assignment([1, 3, 5])
    assert group.heartbeat(old, 1, "j") == ErrorCode.FENCED_INSTANCE_ID
    assert group.heartbeat(old, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert group.heartbeat(new, 1, "j") == ErrorCode.NONE


def test_return_is_written_before_it_is_answered(group: Static) -> None:
    """The next coordinator has to know the new id."""
    group.pair()
    group.driver.hold()
    call = group.join(instance="j")
    assert call.waits
    group.driver.release()
    group.driver.move()
    assert group.heartbeat(call.answer.member_id, 1, "j") == ErrorCode.NONE


def test_returning_leader_is_told_to_skip_the_assignment(group: Static) -> None:
    """KIP-814: it knows that it leads, to watch for new partitions, and does not assign."""
    group.pair()
    answer = group.join(instance="i").answer
    assert answer.leader == answer.member_id
    assert answer.skip_assignment
    assert len(answer.members) == 2


def test_returning_follower_has_nothing_to_skip(group: Static) -> None:
    """Only the leader assigns."""
    leader, _ = group.pair()
    answer = group.join(instance="j").answer
    assert (answer.leader, answer.skip_assignment, answer.members) == (leader, False, [])


def test_returning_leader_before_version_9_is_told_the_old_leader(group: Static) -> None:
    """So that it does not take itself for the leader."""
    leader, _ = group.pair()
    answer = group.join(instance="i", version=8).answer
    assert (answer.leader, answer.skip_assignment, answer.members) == (leader, False, [])
    assert answer.member_id != leader


def test_return_with_another_choice_of_protocol_rebalances(group: Static) -> None:
    """The assignment was made by a protocol that would not be selected now."""
    first = group.join(instance="i", protocols=BOTH)
    group.driver.pass_time(DELAY_MS)
    group.sync(first.answer.member_id, 1)
    again = group.join(instance="i", protocols=BOTH[::-1])
    assert (first.answer.protocol_name, again.answer.protocol_name) == ("range", "roundrobin")
    assert again.answer.generation_id == 2


def test_return_while_completing_rebalances(group: Static) -> None:
    """The leader may be assigning to the old id."""
    calls = [group.join(instance=name) for name in "ij"]
    group.driver.pass_time(2 * DELAY_MS)
    parked = group.sync(calls[1].answer.member_id, 1)
    assert group.join(instance="j").waits
    assert parked.error == ErrorCode.FENCED_INSTANCE_ID
    assert group.state == "PreparingRebalance"


def test_return_while_preparing_fences_the_parked_join(group: Static) -> None:
    """Two processes of one instance: the newer one wins, and the rebalance goes on."""
    calls = [group.join(instance="i"), group.join(instance="i")]
    assert (calls[0].error, calls[0].answer.leader) == (ErrorCode.FENCED_INSTANCE_ID, "")
    group.driver.pass_time(DELAY_MS)
    assert calls[1].error == ErrorCode.NONE


def test_return_may_be_the_last_that_everybody_waited_for(group: Static) -> None:
    """Its join counts like any other."""
    leader, _ = group.pair()
    call = group.join(leader, instance="i")
    assert call.waits
    group.join(instance="j")
    assert call.answer.generation_id == 2


def test_known_instance_with_another_id_is_fenced(group: Static) -> None:
    """The older of two processes learns that it has been replaced."""
    _, old = group.pair()
    group.join(instance="j")
    assert group.join(old, instance="j").error == ErrorCode.FENCED_INSTANCE_ID
    assert group.sync(old, 1, instance="j").error == ErrorCode.FENCED_INSTANCE_ID
    assert group.commit(member_id=old, generation=1, instance="j") == ErrorCode.FENCED_INSTANCE_ID


def test_unknown_instance_is_unknown(group: Static) -> None:
    """Even if the member id is one."""
    leader, _ = group.pair()
    assert group.join(leader, instance="x").error == ErrorCode.UNKNOWN_MEMBER_ID
    assert group.heartbeat(leader, 1, "x") == ErrorCode.UNKNOWN_MEMBER_ID


def test_administrator_removes_an_instance_without_its_member_id(group: Static) -> None:
    """LeaveGroup version 3; the answer repeats what was asked."""
    group.pair()
    (member,) = group.leave(instances=["j"]).answer.members
    assert (member.member_id, member.group_instance_id, member.error_code) == ("", "j", 0)
    assert list(group.driver.group().static) == ["i"]
    (again,) = group.leave(instances=["j"]).answer.members
    assert again.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_removed_member_is_not_answered_while_it_syncs(group: Static) -> None:
    """Kafka forgets the parked SyncGroup of one who is removed."""
    calls = [group.join(instance=name) for name in "ij"]
    group.driver.pass_time(2 * DELAY_MS)
    parked = group.sync(calls[1].answer.member_id, 1)
    group.leave(instances=["j"])
    assert parked.abandoned


def test_static_member_survives_a_rebalance_that_it_misses(group: Static) -> None:
    """It has until the end of its session to come back."""
    leader, other = group.pair()
    call = group.join(leader, instance="i")
    for _ in range(REBALANCE_MS // 5_000):
        group.driver.pass_time(5_000)
        group.heartbeat(other, 1, "j")
    assert sorted(member.member_id for member in call.answer.members) == sorted([leader, other])


def test_static_member_that_never_syncs_is_removed(group: Static) -> None:
    """KAFKA-12890: static or not, a member that takes part has to sync."""
    group.join(instance="i", session_ms=10 * REBALANCE_MS)
    group.driver.pass_time(DELAY_MS)
    assert group.state == "CompletingRebalance"
    group.driver.pass_time(REBALANCE_MS)
    assert group.state == "Empty"


def test_static_member_expires_with_its_session(group: Static) -> None:
    """As any other."""
    group.pair()
    group.driver.pass_time(SESSION_MS)
    assert group.driver.group().static == {}


def test_return_that_cannot_be_written_is_undone(group: Static) -> None:
    """The old id is back, and the new one hears why."""
    leader, old = group.pair()
    group.driver.hold()
    call = group.join(instance="j", session_ms=20_000)
    group.driver.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert (call.error, call.answer.member_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, "")
    assert (call.answer.leader, call.answer.generation_id) == (leader, 1)
    assert group.heartbeat(old, 1, "j") == ErrorCode.NONE
    assert group.driver.group().members[old].session_timeout_ms == SESSION_MS


@pytest.mark.parametrize("end", ["release", "fail"])
def test_rebalance_overtakes_a_return_that_is_being_written(group: Static, end: str) -> None:
    """Its join is then one of the parked ones, whatever becomes of the record."""
    leader, _ = group.pair()
    group.driver.hold()
    call = group.join(instance="j")
    group.join(leader, instance="i")
    assert not call.waits, "everybody has joined"
    assert call.answer.generation_id == 2
    if end == "release":
        group.driver.release()
    else:
        group.driver.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert group.state == "CompletingRebalance"


def test_return_of_one_that_had_not_synced_ends_in_a_rebalance(group: Static) -> None:
    """A quirk of Kafka: the list of those to sync still names the old id, which nobody answers for."""
    calls = [group.join(instance=name, session_ms=10 * REBALANCE_MS) for name in "ij"]
    group.driver.pass_time(2 * DELAY_MS)
    group.sync(calls[0].answer.member_id, 1, assigned_by(calls[0].answer))
    new = group.join(instance="j", session_ms=10 * REBALANCE_MS).answer.member_id
    assert group.sync(new, 1).error == ErrorCode.NONE
    group.driver.pass_time(REBALANCE_MS)
    assert group.state == "PreparingRebalance"
