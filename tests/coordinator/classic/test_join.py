"""JoinGroup: ids, protocols, leaders, delays, sizes."""

import pytest

from kelpie.coordinator.config import GroupConfig
from kelpie.errors import ErrorCode
from tests.coordinator.clients import (
    DELAY_MS,
    RANGE,
    REBALANCE_MS,
    SESSION_MS,
    TOPIC,
    Group,
    assigned_by,
    subscription,
)
from tests.coordinator.driver import Driver

BOTH = (("range", subscription(TOPIC)), ("roundrobin", subscription(TOPIC)))


@pytest.fixture
def group() -> Group:
    return Group(Driver())


def rebalance(group: Group, *members: str, **how: object) -> list[object]:
    """All of them join again."""
    calls = [group.join(each, **how) for each in members]  # type: ignore[arg-type]
    return [call.answer for call in calls]


# Ids.


def test_first_join_is_given_an_id_and_asked_to_come_back(group: Group) -> None:
    """KIP-394: joins of clients that gave up must not pile up as members."""
    call = group.join(client_id="consumer-1")
    assert call.error == ErrorCode.MEMBER_ID_REQUIRED
    assert call.answer.member_id.startswith("consumer-1-uuid-")
    assert (call.answer.generation_id, call.answer.members, call.answer.protocol_name) == (-1, [], None)
    assert group.state == "Empty"


def test_before_version_4_a_first_join_makes_a_member(group: Group) -> None:
    """Older clients do not know of ids to come back with."""
    call = group.join(version=3)
    assert call.waits
    group.driver.pass_time(DELAY_MS)
    assert call.answer.member_id.startswith("c-uuid-")


def test_id_given_out_is_void_after_the_session_timeout(group: Group) -> None:
    """It was given for one coming back, not for ever."""
    member = group.join().answer.member_id
    group.driver.pass_time(SESSION_MS)
    assert group.join(member).error == ErrorCode.UNKNOWN_MEMBER_ID


def test_id_given_out_holds_up_the_rebalance_and_has_no_vote(group: Group) -> None:
    """Somebody is known to be on its way; what it supports is not."""
    first, second = group.stable(2)
    late = group.join(protocols=BOTH).answer.member_id
    calls = [group.join(first), group.join(second, protocols=BOTH)]
    assert all(call.waits for call in calls)
    group.driver.pass_time(SESSION_MS)
    assert [call.answer.protocol_name for call in calls] == ["range", "range"]
    assert late not in group.driver.group().members


def test_id_given_out_may_leave(group: Group) -> None:
    """The rebalance need not wait for it any more."""
    (first,) = group.stable()
    late = group.join().answer.member_id
    call = group.join(first)
    assert call.waits
    assert group.leave(late).answer.members[0].error_code == ErrorCode.NONE
    assert not call.waits


def test_id_given_out_with_an_instance_is_a_server_error(group: Group) -> None:
    """Kafka throws an IllegalStateException: such ids are for dynamic members."""
    member = group.join().answer.member_id
    assert group.join(member, instance="i").error == ErrorCode.UNKNOWN_SERVER_ERROR


def test_join_with_an_id_to_a_missing_group_is_unknown(group: Group) -> None:
    """Nothing is created for a member of the past."""
    call = group.join("m")
    assert (call.error, call.answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "m")
    assert group.state == "Dead"


def test_join_with_an_unknown_id_is_unknown(group: Group) -> None:
    """It has to begin anew."""
    group.stable()
    assert group.join("m").error == ErrorCode.UNKNOWN_MEMBER_ID


def test_error_before_version_7_has_an_empty_protocol(group: Group) -> None:
    """The field cannot be null there."""
    assert group.join(version=6).answer.protocol_name == ""


# Limits.


@pytest.mark.parametrize("session_ms", [5_999, 30 * 60_000 + 1])
def test_session_timeout_out_of_bounds_is_refused(group: Group, session_ms: int) -> None:
    """group.min.session.timeout.ms and group.max.session.timeout.ms."""
    assert group.join(session_ms=session_ms).error == ErrorCode.INVALID_SESSION_TIMEOUT
    assert group.state == "Dead"


@pytest.mark.parametrize("session_ms", [6_000, 30 * 60_000])
def test_session_timeout_at_the_bounds_is_accepted(group: Group, session_ms: int) -> None:
    """The near miss."""
    assert group.join(session_ms=session_ms).error == ErrorCode.MEMBER_ID_REQUIRED


def test_version_0_uses_the_session_for_the_rebalance(group: Group) -> None:
    """KIP-62 told the two apart in version 1."""
    group.join(version=0)
    assert group.driver.group().rebalance_timeout_ms == SESSION_MS


def test_full_group_refuses_new_members() -> None:
    """group.max.size (KIP-389): when Stable, members count."""
    group = Group(Driver(config=GroupConfig(max_size=2)))
    first, _ = group.stable(2)
    call = group.join()
    assert (call.error, call.answer.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert group.join(first).waits, "a member is in already"


def test_full_rebalance_refuses_the_last_ones() -> None:
    """While members join, those who are here count; the others are thrown out."""
    driver = Driver()
    group = Group(driver)
    first, second, third = group.stable(3)
    driver.config = GroupConfig(max_size=2)
    driver.move()
    assert group.state == "PreparingRebalance", "a group that is too large after loading has to rebalance"
    calls = [group.join(first), group.join(second)]
    assert group.join(third).error == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert third not in driver.group().members
    driver.pass_time(REBALANCE_MS)
    assert [call.error for call in calls] == [0, 0]


# Protocols.


@pytest.mark.parametrize(
    ("protocol_type", "protocols"), [("", RANGE), ("consumer", ())], ids=["no type", "no protocols"]
)
def test_empty_group_needs_a_type_and_a_protocol(
    group: Group, protocol_type: str, protocols: tuple[tuple[str, bytes], ...]
) -> None:
    """There would be nothing to agree on. Kafka 4 has created the group by then."""
    refused = group.join(protocol_type=protocol_type, protocols=protocols)
    assert refused.error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert group.state == "Empty"


@pytest.mark.parametrize(
    ("protocol_type", "protocols"),
    [("connect", RANGE), ("consumer", (("sticky", b""),))],
    ids=["another type", "no common protocol"],
)
def test_member_must_fit_the_group(
    group: Group, protocol_type: str, protocols: tuple[tuple[str, bytes], ...]
) -> None:
    """All members assign by one protocol."""
    group.stable()
    refused = group.join(protocol_type=protocol_type, protocols=protocols)
    assert refused.error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_only_member_cannot_change_to_another_protocol(group: Group) -> None:
    """What it offers is held against what all members support, itself among them."""
    (member,) = group.stable()
    refused = group.join(member, protocols=(("roundrobin", b""),))
    assert refused.error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_protocol_with_most_votes_wins(group: Group) -> None:
    """Everyone votes for its first among those that all support."""
    orders = [BOTH, BOTH[::-1], BOTH[::-1]]
    calls = [group.join(version=3, protocols=order) for order in orders]
    group.driver.pass_time(2 * DELAY_MS)
    assert {call.answer.protocol_name for call in calls} == {"roundrobin"}


def test_protocol_that_one_lacks_cannot_win(group: Group) -> None:
    """However many want it."""
    orders = [BOTH[::-1], BOTH[::-1], BOTH[:1]]
    calls = [group.join(version=3, protocols=order) for order in orders]
    group.driver.pass_time(2 * DELAY_MS)
    assert {call.answer.protocol_name for call in calls} == {"range"}


@pytest.mark.parametrize("order", [BOTH, BOTH[::-1]])
def test_tie_of_votes_does_not_depend_on_who_came_first(
    group: Group, order: tuple[tuple[str, bytes], ...]
) -> None:
    """Kafka goes by the place in a java.util.HashMap, where `range` is before `roundrobin`."""
    calls = [group.join(version=3, protocols=each) for each in (order, order[::-1])]
    group.driver.pass_time(2 * DELAY_MS)
    assert {call.answer.protocol_name for call in calls} == {"range"}


def test_members_metadata_are_those_of_the_selected_protocol(group: Group) -> None:
    """The leader assigns by them."""
    offers = (("range", b"by range"), ("roundrobin", b"in turn"))
    call = group.join(version=3, protocols=offers, protocol_type="other")
    group.driver.pass_time(DELAY_MS)
    assert [member.metadata for member in call.answer.members] == [b"by range"]


# Leaders and generations.


def test_first_member_leads_and_only_it_hears_of_the_others(group: Group) -> None:
    """One member assigns for all."""
    calls = [group.with_id()[1] for _ in range(3)]
    group.driver.pass_time(2 * DELAY_MS)
    answers = [call.answer for call in calls]
    assert {answer.leader for answer in answers} == {answers[0].member_id}
    assert [len(answer.members) for answer in answers] == [3, 0, 0]


def test_another_member_leads_when_the_leader_leaves(group: Group) -> None:
    """Kafka takes any; here it is the one that came first."""
    first, second, third = group.stable(3)
    group.leave(first)
    answers = rebalance(group, third, second)
    assert {answer.leader for answer in answers} == {second}  # type: ignore[attr-defined]


def test_static_leader_that_stays_away_loses_the_lead(group: Group) -> None:
    """It stays a member, but someone who is here has to assign."""
    static = group.join(instance="i", session_ms=10 * REBALANCE_MS)
    _, dynamic = group.with_id(session_ms=10 * REBALANCE_MS)
    group.driver.pass_time(2 * DELAY_MS)
    member = dynamic.answer.member_id
    assert dynamic.answer.leader == static.answer.member_id
    again = group.join(member, protocols=(("range", subscription("other")),), session_ms=10 * REBALANCE_MS)
    group.driver.pass_time(REBALANCE_MS)
    assert again.answer.leader == member
    assert len(again.answer.members) == 2


def test_generation_grows_with_every_rebalance_also_to_empty(group: Group) -> None:
    """A member of the last generation is told apart from one of the next group of that name."""
    (member,) = group.stable()
    assert group.generation == 1
    group.leave(member)
    assert group.driver.group().generation == 2
    _, call = group.with_id()
    group.driver.pass_time(DELAY_MS)
    assert call.answer.generation_id == 3


# Waiting.


def test_initial_delay_grows_while_members_come(group: Group) -> None:
    """KIP-134: each round in which somebody new came adds one, up to the rebalance timeout."""
    first = group.with_id()[1]
    group.driver.pass_time(DELAY_MS - 1)
    group.with_id()
    group.driver.pass_time(DELAY_MS)
    assert first.waits
    group.driver.pass_time(1)
    assert not first.waits


def test_initial_delay_ends_with_the_rebalance_timeout(group: Group) -> None:
    """However many come."""
    first = group.with_id(rebalance_ms=7_000)[1]
    for _ in range(6):
        group.driver.pass_time(1_000)
        group.with_id(rebalance_ms=7_000)
    assert first.waits
    group.driver.pass_time(1_000)
    assert not first.waits


def test_initial_delay_does_not_end_early(group: Group) -> None:
    """Also when everybody who is known has joined."""
    calls = [group.with_id()[1] for _ in range(2)]
    group.driver.pass_time(DELAY_MS - 1)
    assert all(call.waits for call in calls)


def test_initial_delay_may_be_none() -> None:
    """group.initial.rebalance.delay.ms=0, as tests like it."""
    group = Group(Driver(config=GroupConfig(initial_rebalance_delay_ms=0)))
    _, call = group.with_id()
    group.driver.pass_time(0)
    assert not call.waits


def test_expired_id_ends_the_initial_delay() -> None:
    """A quirk of Kafka 4: it only sees that all members have joined."""
    group = Group(Driver(config=GroupConfig(initial_rebalance_delay_ms=SESSION_MS + 5_000)))
    group.join()
    group.driver.pass_time(1_000)
    _, call = group.with_id()
    group.driver.pass_time(SESSION_MS - 1_000)
    assert not call.waits


def test_later_rebalance_ends_when_all_have_joined(group: Group) -> None:
    """The initial delay is for groups that were Empty."""
    first, second = group.stable(2)
    one = group.join(first)
    assert one.waits
    two = group.join(second)
    assert (one.answer.generation_id, two.answer.generation_id) == (2, 2)


def test_rebalance_ends_without_those_who_stay_away(group: Group) -> None:
    """After the longest rebalance timeout of its members."""
    first, second = group.stable(2)
    call = group.join(first)
    for _ in range(REBALANCE_MS // 5_000 - 1):
        group.driver.pass_time(5_000)
        assert group.heartbeat(second, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    group.driver.pass_time(4_999)
    assert call.waits
    group.driver.pass_time(1)
    assert [member.member_id for member in call.answer.members] == [first]
    assert group.heartbeat(second, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_rebalance_goes_on_while_only_static_members_are_missing(group: Group) -> None:
    """Static members are not removed for being late; the wait begins anew until their sessions end."""
    session_ms = 4 * REBALANCE_MS
    calls = [group.join(instance=name, session_ms=session_ms) for name in "ij"]
    group.driver.pass_time(2 * DELAY_MS)
    leader, other = (call.answer.member_id for call in calls)
    group.sync(other, 1)
    group.sync(leader, 1, assigned_by(calls[0].answer))
    group.leave(instances=["j"])
    group.driver.pass_time(3 * REBALANCE_MS)
    assert group.state == "PreparingRebalance"
    group.driver.pass_time(2 * REBALANCE_MS)
    assert group.state == "Empty"


def test_parked_member_does_not_lose_its_session(group: Group) -> None:
    """Its connection is quiet because we do not answer."""
    first, second = group.stable(2)
    call = group.join(first)
    for _ in range(5):
        group.driver.pass_time(SESSION_MS - 1)
        group.heartbeat(second, 1)
    assert call.waits
    assert first in group.driver.group().members


def test_new_member_parked_for_five_minutes_is_removed(group: Group) -> None:
    """Its client may have given up; if not, it comes again."""
    session_ms, rebalance_ms = 20 * 60_000, 20 * 60_000
    first = group.with_id(session_ms=session_ms, rebalance_ms=rebalance_ms)[0]
    group.driver.pass_time(DELAY_MS)
    group.sync(first, 1)
    late = group.join(version=3, session_ms=session_ms, rebalance_ms=rebalance_ms)
    group.driver.pass_time(5 * 60_000 - 1)
    assert late.waits
    group.driver.pass_time(1)
    assert (late.error, late.answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "")


def test_expired_session_ends_the_wait_for_joins(group: Group) -> None:
    """The one that everybody waited for is gone."""
    first, _ = group.stable(2)
    call = group.join(first)
    group.driver.pass_time(SESSION_MS - 1)
    assert call.waits
    group.driver.pass_time(1)
    assert [member.member_id for member in call.answer.members] == [first]


def test_expired_session_begins_a_rebalance(group: Group) -> None:
    """In a Stable group."""
    first, _ = group.stable(2)
    group.driver.pass_time(SESSION_MS - 1)
    group.heartbeat(first, 1)
    group.driver.pass_time(1)
    assert group.state == "PreparingRebalance"
    assert list(group.driver.group().members) == [first]


def test_timer_that_lost_the_race_does_nothing(group: Group) -> None:
    """A heartbeat moves the deadline; the driver's timer may still fire at the old one."""
    (member,) = group.stable()
    group.driver.now += SESSION_MS - 1
    group.heartbeat(member, 1)
    group.driver.now += 1
    group.driver.tell("timer", ("session", "g", member))
    group.driver.tell("timer", ("join", "g"))
    group.driver.tell("timer", ("sync", "g"))
    group.driver.tell("timer", ("session", "no such group", member))
    assert group.state == "Stable"


def test_second_join_of_a_member_takes_the_place_of_the_first(group: Group) -> None:
    """Kafka keeps one call a member: the older one is never answered."""
    first, second = group.stable(2)
    older, newer = group.join(first), group.join(first)
    group.join(second)
    assert older.abandoned
    assert newer.error == ErrorCode.NONE


def test_rejoin_may_change_timeouts(group: Group) -> None:
    """Kafka 3 and later."""
    (member,) = group.stable()
    group.join(member, session_ms=20_000, rebalance_ms=90_000)
    known = group.driver.group().members[member]
    assert (known.session_timeout_ms, known.rebalance_timeout_ms) == (20_000, 90_000)


# What is written.


def test_new_group_is_written_at_once_and_listed_after_a_move(group: Group) -> None:
    """Kafka 4 writes an empty group of generation 0 before anyone is in it."""
    group.join()
    assert len(group.driver.log) == 1
    group.driver.move()
    assert group.state == "Empty"


def test_id_is_given_out_before_the_group_is_written(group: Group) -> None:
    """Kafka 4 answers first; if the write fails, the id is worth nothing."""
    group.driver.broken = ErrorCode.NOT_ENOUGH_REPLICAS
    call = group.join()
    assert call.error == ErrorCode.MEMBER_ID_REQUIRED
    assert group.state == "Dead"
    assert group.join(call.answer.member_id).error == ErrorCode.UNKNOWN_MEMBER_ID


def test_parked_join_hears_that_its_group_cannot_be_written(group: Group) -> None:
    """Members that need no second join are told the mapped error."""
    group.driver.hold()
    call = group.join(version=3)
    group.driver.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert call.error == ErrorCode.NOT_COORDINATOR
    assert group.state == "Dead"


def test_parked_join_hears_that_its_group_is_written_late(group: Group) -> None:
    """The group stays, since its record may yet count."""
    group.driver.hold()
    call = group.join(version=3)
    group.driver.time_out()
    assert call.error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    group.driver.release()
    group.driver.run_out()
    assert group.state == "Empty"
