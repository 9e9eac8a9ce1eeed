"""What each request meets in each state of a group, and which states follow one another."""

import pytest

from kelpie.coordinator.classic.group import ClassicGroup
from kelpie.coordinator.classic.state import MAY_FOLLOW, ClassicGroupState
from kelpie.errors import ErrorCode
from tests.coordinator.clients import DELAY_MS, RANGE, SESSION_MS, Group, assignment, subscription
from tests.coordinator.driver import START, Driver

OTHER = (("range", subscription("payments")),)


@pytest.fixture
def group() -> Group:
    return Group(Driver())


def dead(group: Group, members: int = 1) -> list[str]:
    """A group of a shard that was unloaded, as whoever comes in that moment sees it."""
    ids = group.stable(members)
    group.driver.carry_out(group.driver.shard.unloaded())
    return ids


@pytest.mark.parametrize("before", ClassicGroupState)
@pytest.mark.parametrize("after", ClassicGroupState)
def test_only_the_transitions_of_the_table_are_possible(
    before: ClassicGroupState, after: ClassicGroupState
) -> None:
    """The table is Kafka's; anything else is our own mistake and must not pass in silence."""
    group = ClassicGroup("g", before, START)
    if before in MAY_FOLLOW[after]:
        group.transition(after, START + 1)
        assert (group.previous_state, group.state, group.since) == (before, after, START + 1)
    else:
        with pytest.raises(AssertionError):
            group.transition(after, START + 1)


# Join, new member.


def test_new_member_in_empty_begins_a_rebalance_with_the_initial_delay(group: Group) -> None:
    """KIP-134: more members may be on their way."""
    _, call = group.with_id()
    assert group.state == "PreparingRebalance"
    group.driver.pass_time(DELAY_MS - 1)
    assert call.waits
    group.driver.pass_time(1)
    assert (call.error, call.answer.generation_id) == (ErrorCode.NONE, 1)


def test_new_member_in_preparing_is_parked(group: Group) -> None:
    """It takes part in the generation that is being prepared."""
    group.preparing()
    _, second = group.with_id()
    assert second.waits
    assert group.state == "PreparingRebalance"


def test_new_member_in_completing_begins_a_rebalance(group: Group) -> None:
    """The assignment that is being made does not know it."""
    _, second = group.completing(2)
    parked = group.sync(second, group.generation)
    group.with_id()
    assert group.state == "PreparingRebalance"
    assert parked.error == ErrorCode.REBALANCE_IN_PROGRESS


def test_new_member_in_stable_begins_a_rebalance(group: Group) -> None:
    """Existing members hear of it by their heartbeats."""
    (first,) = group.stable()
    _, call = group.with_id()
    assert group.state == "PreparingRebalance"
    assert call.waits
    assert group.heartbeat(first, group.generation) == ErrorCode.REBALANCE_IN_PROGRESS


def test_new_member_in_dead_is_sent_away(group: Group) -> None:
    """The group has moved: look for its coordinator."""
    dead(group)
    assert group.join().error == ErrorCode.COORDINATOR_NOT_AVAILABLE


# Join, known member.


@pytest.mark.parametrize("protocols", [RANGE, OTHER])
def test_known_id_in_empty_is_unknown(group: Group, protocols: tuple[tuple[str, bytes], ...]) -> None:
    """The member it once belonged to is gone."""
    (member,) = group.stable()
    group.leave(member)
    assert group.state == "Empty"
    call = group.join(member, protocols=protocols)
    assert (call.error, call.answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, member)


@pytest.mark.parametrize("protocols", [RANGE, OTHER])
def test_known_member_in_preparing_is_parked(group: Group, protocols: tuple[tuple[str, bytes], ...]) -> None:
    """It waits for the others."""
    first, _ = group.stable(2)
    group.with_id()
    assert group.join(first, protocols=protocols).waits


def test_unchanged_member_in_completing_gets_the_current_generation(group: Group) -> None:
    """It did not get the first answer; nothing has to be done again."""
    leader, follower = group.completing(2)
    again = group.join(follower).answer
    assert (again.error_code, again.generation_id, again.members) == (0, group.generation, [])
    told = group.join(leader).answer
    assert [member.member_id for member in told.members] == [leader, follower]
    assert (told.leader, told.protocol_name) == (leader, "range")
    assert group.state == "CompletingRebalance"


def test_changed_member_in_completing_begins_a_rebalance(group: Group) -> None:
    """The leader assigns by metadata that no longer hold."""
    _, follower = group.completing(2)
    assert group.join(follower, protocols=OTHER).waits
    assert group.state == "PreparingRebalance"


def test_unchanged_follower_in_stable_gets_the_current_generation(group: Group) -> None:
    """It may sync and go on."""
    _, follower = group.stable(2)
    again = group.join(follower).answer
    assert (again.error_code, again.generation_id, again.members) == (0, group.generation, [])
    assert group.state == "Stable"


def test_leader_in_stable_begins_a_rebalance(group: Group) -> None:
    """A leader that sees new partitions has no other way to assign them."""
    leader, _ = group.stable(2)
    assert group.join(leader).waits
    assert group.state == "PreparingRebalance"


def test_changed_follower_in_stable_begins_a_rebalance(group: Group) -> None:
    """Its subscription is another."""
    _, follower = group.stable(2)
    assert group.join(follower, protocols=OTHER).waits
    assert group.state == "PreparingRebalance"


def test_order_of_protocols_counts_as_a_change(group: Group) -> None:
    """Unchanged is the same list: the order says what the member prefers."""
    both = (*RANGE, ("roundrobin", subscription("orders")))
    ids = [group.with_id(protocols=both)[0] for _ in range(2)]
    group.driver.pass_time(2 * DELAY_MS)
    group.sync(ids[0], 1, {})
    assert not group.join(ids[1], protocols=both).waits
    assert group.join(ids[1], protocols=both[::-1]).waits


@pytest.mark.parametrize("protocols", [RANGE, OTHER])
def test_known_member_in_dead_is_sent_away(group: Group, protocols: tuple[tuple[str, bytes], ...]) -> None:
    """As for a new one."""
    (member,) = dead(group)
    assert group.join(member, protocols=protocols).error == ErrorCode.COORDINATOR_NOT_AVAILABLE


# Sync.


def test_sync_in_empty_is_refused(group: Group) -> None:
    """Nobody is in it."""
    (member,) = group.stable()
    group.leave(member)
    assert group.sync(member, group.generation).error == ErrorCode.UNKNOWN_MEMBER_ID


def test_sync_in_preparing_is_told_to_join(group: Group) -> None:
    """The generation it knows has ended."""
    (member,) = group.stable()
    group.with_id()
    assert group.sync(member, group.generation).error == ErrorCode.REBALANCE_IN_PROGRESS


def test_sync_in_completing_waits_for_the_leader(group: Group) -> None:
    """Assignments are given out all at once, when they are written."""
    leader, follower = group.completing(2)
    parked = group.sync(follower, group.generation)
    assert parked.waits
    assert not group.sync(
        leader, group.generation, {follower: b"\x00\x01\x00\x00\x00\x00\xff\xff\xff\xff"}
    ).waits
    assert parked.answer.assignment == b"\x00\x01\x00\x00\x00\x00\xff\xff\xff\xff"
    assert group.state == "Stable"


def test_sync_in_stable_gets_the_assignment(group: Group) -> None:
    """Whoever comes late finds it here."""
    _, follower = group.stable(2)
    again = group.sync(follower, group.generation).answer
    assert (again.assignment, again.protocol_type, again.protocol_name) == (
        assignment([1]),
        "consumer",
        "range",
    )


def test_sync_in_dead_is_sent_away(group: Group) -> None:
    """Kafka 2.3 and later."""
    (member,) = dead(group)
    assert group.sync(member, group.generation).error == ErrorCode.COORDINATOR_NOT_AVAILABLE


# Heartbeat.


def test_heartbeat_in_empty_is_unknown(group: Group) -> None:
    """Nobody is in it."""
    (member,) = group.stable()
    group.leave(member)
    assert group.heartbeat(member, group.generation) == ErrorCode.UNKNOWN_MEMBER_ID


def test_heartbeat_in_preparing_tells_of_the_rebalance_and_renews(group: Group) -> None:
    """A member that finishes its work before it rejoins must not be thrown out."""
    first, _ = group.stable(2)
    group.with_id()
    for _ in range(3):
        group.driver.pass_time(SESSION_MS - 1)
        assert group.heartbeat(first, group.generation) == ErrorCode.REBALANCE_IN_PROGRESS
    assert first in group.driver.group().members


def test_heartbeat_in_completing_is_accepted_and_renews(group: Group) -> None:
    """KAFKA-10134: consumers beat as soon as they have joined."""
    members = group.completing(2)
    for _ in range(3):
        group.driver.pass_time(SESSION_MS - 1)
        assert [group.heartbeat(each, group.generation) for each in members] == [0, 0]


def test_heartbeat_in_stable_renews(group: Group) -> None:
    """What a session is for."""
    (member,) = group.stable()
    for _ in range(3):
        group.driver.pass_time(SESSION_MS - 1)
        assert group.heartbeat(member, group.generation) == ErrorCode.NONE
    group.driver.pass_time(SESSION_MS)
    assert group.heartbeat(member, group.generation) == ErrorCode.UNKNOWN_MEMBER_ID


def test_heartbeat_in_dead_is_sent_away(group: Group) -> None:
    """Kafka 2.3 and later."""
    (member,) = dead(group)
    assert group.heartbeat(member, group.generation) == ErrorCode.COORDINATOR_NOT_AVAILABLE


# Leave.


def test_leave_in_empty_is_unknown(group: Group) -> None:
    """The response is whole, the member's part bears the error."""
    (member,) = group.stable()
    group.leave(member)
    again = group.leave(member).answer
    assert (again.error_code, again.members[0].error_code) == (0, ErrorCode.UNKNOWN_MEMBER_ID)


def test_leave_in_preparing_may_end_the_wait_for_joins(group: Group) -> None:
    """The one that everybody waited for is gone."""
    first, second = group.stable(2)
    joined = group.join(first)
    assert joined.waits
    group.leave(second)
    assert joined.answer.generation_id == group.generation + 1


@pytest.mark.parametrize("rest", ["completing", "stable"])
def test_leave_begins_a_rebalance(group: Group, rest: str) -> None:
    """Its partitions need another owner."""
    first, second = getattr(group, rest)(2)
    assert group.leave(second).answer.members[0].error_code == ErrorCode.NONE
    assert group.state == "PreparingRebalance"
    assert list(group.driver.group().members) == [first]


def test_leave_in_dead_is_sent_away(group: Group) -> None:
    """Of the whole response, not of a member."""
    (member,) = dead(group)
    assert group.leave(member).error == ErrorCode.COORDINATOR_NOT_AVAILABLE


# OffsetCommit.


def test_commit_of_a_member_to_an_empty_group_is_unknown(group: Group) -> None:
    """It was thrown out; someone else may be about to read its partitions."""
    (member,) = group.stable()
    group.leave(member)
    assert group.commit(member_id=member, generation=2) == ErrorCode.UNKNOWN_MEMBER_ID


def test_commit_in_preparing_is_accepted_and_renews(group: Group) -> None:
    """A member stores what it has done before it gives its partitions back."""
    first, _ = group.stable(2)
    group.with_id()
    for offset in range(3):
        group.driver.pass_time(SESSION_MS - 1)
        assert group.commit(offset, member_id=first, generation=group.generation) == ErrorCode.NONE
    assert group.fetched() == (2, ErrorCode.NONE)


def test_commit_in_completing_is_told_to_sync(group: Group) -> None:
    """It knows the generation and does not know its partitions."""
    (member,) = group.completing()
    refused = group.commit(member_id=member, generation=group.generation)
    assert refused == ErrorCode.REBALANCE_IN_PROGRESS
    assert group.fetched() == (-1, ErrorCode.NONE)


def test_commit_in_stable_is_accepted_and_renews(group: Group) -> None:
    """A member that only commits is alive."""
    (member,) = group.stable()
    for offset in range(3):
        group.driver.pass_time(SESSION_MS - 1)
        assert group.commit(offset, member_id=member, generation=group.generation) == ErrorCode.NONE
    assert group.fetched() == (2, ErrorCode.NONE)


def test_commit_of_nobody_to_an_empty_group_is_accepted(group: Group) -> None:
    """An administrator resets offsets while nobody reads."""
    (member,) = group.stable()
    group.leave(member)
    assert group.commit(17) == ErrorCode.NONE
    assert group.fetched() == (17, ErrorCode.NONE)


@pytest.mark.parametrize("rest", ["preparing", "completing", "stable"])
def test_commit_of_nobody_to_a_group_with_members_is_unknown(group: Group, rest: str) -> None:
    """Only members may move the offsets of a group that reads."""
    getattr(group, rest)()
    assert group.commit(17) == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("generation", [-1, 1])
def test_commit_in_dead_is_sent_away(group: Group, generation: int) -> None:
    """Whoever asks."""
    (member,) = dead(group)
    error = group.commit(member_id=member, generation=generation)
    assert error == ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize("rest", ["preparing", "completing", "stable"])
def test_offsets_can_be_fetched_in_every_state(group: Group, rest: str) -> None:
    """OffsetFetch asks for nothing but the group's name."""
    group.commit(17)
    getattr(group, rest)()
    assert group.fetched() == (17, ErrorCode.NONE)


def test_fetch_in_dead_finds_nothing(group: Group) -> None:
    """Kafka 4."""
    group.commit(17)
    dead(group)
    assert group.fetched() == (-1, ErrorCode.NONE)


# The order of checks.


def test_checks_of_a_member_come_in_kafkas_order(group: Group) -> None:
    """Fenced, unknown, generation, protocol, state: the first that applies is what clients see."""
    joined = group.join(instance="i")
    group.driver.pass_time(DELAY_MS)
    member, generation = joined.answer.member_id, joined.answer.generation_id
    with_twin = group.sync("twin", generation + 1, instance="i", protocol="other")
    assert with_twin.error == ErrorCode.FENCED_INSTANCE_ID
    unknown_instance = group.sync(member, generation + 1, instance="j", protocol="other")
    assert unknown_instance.error == ErrorCode.UNKNOWN_MEMBER_ID
    assert group.sync("twin", generation + 1, protocol="other").error == ErrorCode.UNKNOWN_MEMBER_ID
    assert group.sync(member, generation + 1, protocol="other").error == ErrorCode.ILLEGAL_GENERATION
    other_type = group.sync(member, generation, protocol_type="connect")
    assert other_type.error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    other_name = group.sync(member, generation, protocol="other")
    assert other_name.error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert group.heartbeat("twin", generation, "i") == ErrorCode.FENCED_INSTANCE_ID
    assert group.heartbeat("twin", generation + 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert group.heartbeat(member, generation + 1) == ErrorCode.ILLEGAL_GENERATION
    assert group.commit(member_id="twin", generation=generation, instance="i") == ErrorCode.FENCED_INSTANCE_ID
    assert group.commit(member_id=member, generation=generation + 1) == ErrorCode.ILLEGAL_GENERATION


def test_old_generation_cannot_commit_after_a_rebalance(group: Group) -> None:
    """Fencing: a zombie's commit is refused and the stored offset stays."""
    first, _ = group.stable(2)
    group.commit(3, member_id=first, generation=group.generation)
    group.join(first)
    group.driver.pass_time(SESSION_MS)
    assert group.commit(9, member_id=first, generation=group.generation) == ErrorCode.ILLEGAL_GENERATION
    assert group.fetched() == (3, ErrorCode.NONE)


@pytest.mark.parametrize(
    "request_name", ["join", "sync", "heartbeat", "leave", "transaction", "delete_offsets"]
)
def test_empty_group_id_is_invalid(request_name: str) -> None:
    """Groups that coordinate need a name."""
    nameless = Group(Driver(), "")
    error = {
        "join": lambda: nameless.join().error,
        "sync": lambda: nameless.sync("m", 1).error,
        "heartbeat": lambda: nameless.heartbeat("m", 1),
        "leave": lambda: nameless.leave("m").error,
        "transaction": lambda: nameless.commit_in_transaction(1),
        "delete_offsets": lambda: nameless.delete_offsets(0).error,
    }[request_name]()
    assert error == ErrorCode.INVALID_GROUP_ID


def test_empty_group_id_can_keep_offsets() -> None:
    """For compatibility OffsetCommit, OffsetFetch, DescribeGroups and DeleteGroups accept it."""
    nameless = Group(Driver(), "")
    assert nameless.commit(5) == ErrorCode.NONE
    assert nameless.fetched() == (5, ErrorCode.NONE)
    assert nameless.state == "Empty"
    assert nameless.delete().error == ErrorCode.NONE
    assert nameless.fetched() == (-1, ErrorCode.NONE)
