"""How older releases behave where they differ."""

import pytest

from kelpie.coordinator.config import CONFIG_0_9, GroupConfig
from kelpie.coordinator.release_behaviour import (
    BEHAVIOUR_0_9,
    BEHAVIOUR_2_8,
    BEHAVIOUR_3_9,
    BEHAVIOUR_4_3,
    GroupBehaviour,
)
from kelpie.errors import ErrorCode
from kelpie.wire.offsets_topic import decode_key, decode_value
from tests.coordinator.clients import DELAY_MS, RANGE, REBALANCE_MS, SESSION_MS, TOPIC, Group, assignment
from tests.coordinator.driver import Call, Driver

SCALA = [BEHAVIOUR_2_8, BEHAVIOUR_3_9]


class Old(Group):
    """A group of Kafka 0.9, whose members speak version 0."""

    def __init__(self) -> None:
        super().__init__(Driver(BEHAVIOUR_0_9, CONFIG_0_9))

    def join0(self, member_id: str = "") -> Call:
        return self.join(member_id, version=0)

    def two(self) -> tuple[str, str]:
        """Stable, generation 2: the first member had a generation of its own."""
        first = self.join0().answer.member_id
        second, again = self.join0(), self.join0(first)
        other = second.answer.member_id
        self.sync(other, 2)
        self.sync(first, 2, {first: assignment([0]), other: assignment([1])})
        assert (self.state, again.answer.generation_id) == ("Stable", 2)
        return first, other


def written(group: Group) -> list[tuple[int, int | None]]:
    """Key type and value version of every record."""
    records = [logged.record for logged in group.driver.log if logged.record is not None]
    return [
        (decode_key(each.key)[0], None if each.value is None else int.from_bytes(each.value[:2], "big"))
        for each in records
    ]


# 0.9.


def test_0_9_has_no_initial_delay() -> None:
    """The first member has its generation at once."""
    call = Old().join0()
    assert call.answer.generation_id == 1


def test_0_9_answers_join_errors_with_generation_0() -> None:
    """Later releases say -1."""
    answer = Old().join("m", version=0).answer
    assert (answer.error_code, answer.generation_id) == (ErrorCode.UNKNOWN_MEMBER_ID, 0)


def test_0_9_calls_completing_awaiting_sync() -> None:
    """Renamed in 1.0."""
    group = Old()
    group.join0()
    assert group.state == "AwaitingSync"


@pytest.mark.parametrize("last", ["leaves", "expires"])
def test_0_9_group_dies_with_its_last_member(last: str) -> None:
    """And a tombstone is written, which nobody waits for."""
    group = Old()
    member = group.join0().answer.member_id
    group.sync(member, 1)
    if last == "leaves":
        group.driver.hold()
        assert group.leave(member, version=0).error == ErrorCode.NONE
        group.driver.release()
    else:
        group.driver.pass_time(SESSION_MS)
    assert group.state == "Dead"
    assert group.driver.shard.listed() == []
    assert written(group) == [(2, 0), (2, None)]
    assert group.join0().answer.generation_id == 1, "a group of that name begins anew"


def test_0_9_heartbeat_looks_at_the_state_first() -> None:
    """Whoever asks during a rebalance hears of it, member or not."""
    group = Old()
    first, _ = group.two()
    group.join0()
    assert group.state == "PreparingRebalance"
    assert group.heartbeat("stranger", 99) == ErrorCode.REBALANCE_IN_PROGRESS
    group.driver.pass_time(SESSION_MS - 1)
    assert group.heartbeat(first, 2) == ErrorCode.REBALANCE_IN_PROGRESS
    group.driver.pass_time(1)
    assert first not in group.driver.group().members, "and it does not renew the session"


def test_0_9_heartbeat_while_awaiting_sync_asks_to_rejoin() -> None:
    """Until 2.6.0; KAFKA-10134."""
    group = Old()
    member = group.join0().answer.member_id
    assert group.heartbeat(member, 1) == ErrorCode.REBALANCE_IN_PROGRESS


def test_0_9_commit_while_awaiting_sync_looks_at_the_state_first() -> None:
    """As Heartbeat."""
    group = Old()
    group.join0()
    assert group.commit(member_id="stranger", generation=9, version=2) == ErrorCode.REBALANCE_IN_PROGRESS


def test_0_9_group_of_the_unloaded_is_unknown() -> None:
    """Dead is UNKNOWN_MEMBER_ID until 2.2."""
    group = Old()
    first, _ = group.two()
    group.driver.carry_out(group.driver.shard.unloaded())
    assert group.join0(first).error == ErrorCode.UNKNOWN_MEMBER_ID
    assert group.heartbeat(first, 2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert group.sync(first, 2).error == ErrorCode.UNKNOWN_MEMBER_ID
    assert group.leave(first, version=0).error == ErrorCode.UNKNOWN_MEMBER_ID
    assert group.commit(member_id=first, generation=2, version=2) == ErrorCode.UNKNOWN_MEMBER_ID


def test_0_9_keeps_offsets_without_groups() -> None:
    """A commit of nobody creates none, and the offsets outlive the group."""
    group = Old()
    assert group.commit(5, version=2) == ErrorCode.NONE
    assert group.driver.shard.listed() == []
    assert group.fetched() == (5, ErrorCode.NONE)
    group.two()
    assert group.commit(6, version=2) == ErrorCode.UNKNOWN_MEMBER_ID
    group.driver.move()
    assert group.fetched() == (5, ErrorCode.NONE)


def test_0_9_offsets_expire_each_on_its_own() -> None:
    """Before KIP-211, also while the group reads: after a day, or when the client said."""
    group = Old()
    first, _ = group.two()
    group.commit(5, member_id=first, generation=2, version=2, partitions=[0])
    group.commit(6, member_id=first, generation=2, version=2, partitions=[1], retention_ms=1_000)
    group.driver.now += 1_000
    group.driver.tell("expire")
    assert group.fetched(1) == (6, ErrorCode.NONE)
    group.driver.now += 1
    group.driver.tell("expire")
    assert (group.fetched(0), group.fetched(1)) == ((5, 0), (-1, 0))
    group.driver.now += 24 * 3_600_000
    group.driver.tell("expire")
    assert group.fetched(0) == (-1, ErrorCode.NONE)
    assert group.state == "Stable"


def test_0_9_counts_from_the_timestamp_of_version_1() -> None:
    """The client may say when it committed."""
    group = Old()
    group.commit(5, version=1, timestamp=group.driver.now - 24 * 3_600_000)
    group.driver.now += 1
    group.driver.tell("expire")
    assert group.fetched() == (-1, ErrorCode.NONE)


def test_0_9_does_not_expire_syncs_or_new_members() -> None:
    """2.8.1 and 2.1.1."""
    group = Old()
    first, second = group.two()
    late = group.join0()
    for _ in range(60):
        group.driver.now += SESSION_MS - 1
        group.commit(1, member_id=first, generation=2, version=2)
        group.commit(1, member_id=second, generation=2, version=2)
    assert late.waits


def test_0_9_rebalance_waits_for_the_longest_session() -> None:
    """There is no other timeout."""
    group = Old()
    group.two()
    late = group.join0()
    group.driver.pass_time(SESSION_MS)
    assert late.answer.generation_id == 3


def test_0_9_sync_renews_the_session() -> None:
    """Parked or answered."""
    group = Old()
    member = group.join0().answer.member_id
    group.sync(member, 1)
    for _ in range(3):
        group.driver.pass_time(SESSION_MS - 1)
        group.sync(member, 1)
    assert member in group.driver.group().members


def test_0_9_knows_an_empty_group_id_only_in_join() -> None:
    """The other requests find no such group."""
    nameless = Group(Driver(BEHAVIOUR_0_9, CONFIG_0_9), "")
    assert nameless.join(version=0).error == ErrorCode.INVALID_GROUP_ID
    assert nameless.heartbeat("m", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert nameless.sync("m", 1).error == ErrorCode.UNKNOWN_MEMBER_ID
    assert nameless.leave("m", version=0).error == ErrorCode.UNKNOWN_MEMBER_ID


def test_0_9_sessions_are_short() -> None:
    """At most 30 s."""
    group = Old()
    assert group.join(version=0, session_ms=30_001).error == ErrorCode.INVALID_SESSION_TIMEOUT
    assert group.join(version=0, session_ms=30_000).error == ErrorCode.NONE


def test_0_9_group_keeps_its_type() -> None:
    """Two kinds of clients under one name are told so."""
    group = Old()
    group.two()
    refused = group.join(version=0, protocol_type="connect")
    assert refused.error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


# What is written.


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        (BEHAVIOUR_2_8, [(2, 3), (1, 3), (1, 1), (2, 3)]),
        (BEHAVIOUR_3_9, [(2, 3), (1, 3), (1, 1), (2, 3)]),
        (BEHAVIOUR_4_3, [(2, 3), (2, 3), (1, 4), (1, 1), (2, 3)]),
    ],
    ids=lambda value: value.release if isinstance(value, GroupBehaviour) else "",
)
def test_records_have_the_versions_of_the_release(
    behaviour: GroupBehaviour, expected: list[tuple[int, int | None]]
) -> None:
    """4.x also writes a new group at once; a retention makes it version 1 everywhere."""
    group = Group(Driver(behaviour))
    (member,) = group.stable()
    group.commit(5, member_id=member, generation=1)
    group.commit(5, member_id=member, generation=1, retention_ms=1_000, version=4)
    group.leave(member)
    assert written(group) == expected


def test_first_record_of_a_group_says_next_to_nothing() -> None:
    """Kafka 4: generation 0, no protocol type, no members."""
    group = Group(Driver())
    group.join()
    record = group.driver.log[0].record
    assert record is not None
    value = decode_value(2, record.value)
    assert (value.protocol_type, value.generation, value.protocol, value.leader) == ("", 0, None, None)
    assert (value.members, value.current_state_timestamp) == ([], group.driver.now)


def test_record_of_an_emptied_group_keeps_its_type() -> None:
    """Protocol and leader are null."""
    group = Group(Driver())
    (member,) = group.stable()
    group.leave(member)
    record = group.driver.log[-1].record
    assert record is not None
    value = decode_value(2, record.value)
    assert (value.protocol_type, value.generation, value.protocol, value.leader) == (
        "consumer",
        2,
        None,
        None,
    )


# Scala, 2.8 and 3.9.


@pytest.mark.parametrize("behaviour", SCALA, ids=["2.8", "3.9"])
def test_scala_answers_leave_before_the_group_is_written(behaviour: GroupBehaviour) -> None:
    """Nobody waits for the record of the emptied group."""
    group = Group(Driver(behaviour))
    (member,) = group.stable()
    group.driver.hold()
    assert group.leave(member).error == ErrorCode.NONE


@pytest.mark.parametrize("behaviour", SCALA, ids=["2.8", "3.9"])
def test_scala_names_no_missing_group(behaviour: GroupBehaviour) -> None:
    """GROUP_ID_NOT_FOUND came with the coordinator of 4.0."""
    group = Group(Driver(behaviour))
    assert group.commit(member_id="m", generation=1, version=9) == ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize("behaviour", SCALA, ids=["2.8", "3.9"])
def test_scala_delay_does_not_end_with_an_expired_id(behaviour: GroupBehaviour) -> None:
    """The initial delay cannot end early there."""
    config = GroupConfig(initial_rebalance_delay_ms=SESSION_MS + 5_000)
    group = Group(Driver(behaviour, config))
    group.join()
    group.driver.pass_time(1_000)
    _, call = group.with_id()
    group.driver.pass_time(SESSION_MS)
    assert call.waits


@pytest.mark.parametrize("behaviour", SCALA, ids=["2.8", "3.9"])
def test_scala_prolongs_only_the_first_delay(behaviour: GroupBehaviour) -> None:
    """Later, new members do not add to it."""
    group = Group(Driver(behaviour))
    (member,) = group.stable()
    group.leave(member)
    _, first = group.with_id()
    group.driver.pass_time(1_000)
    group.with_id()
    group.driver.pass_time(DELAY_MS - 1_000)
    assert first.answer.generation_id == 3


@pytest.mark.parametrize("behaviour", SCALA, ids=["2.8", "3.9"])
def test_scala_sync_renews_the_session_of_a_stable_member(behaviour: GroupBehaviour) -> None:
    """Kafka 4 does not."""
    group = Group(Driver(behaviour))
    (member,) = group.stable()
    for _ in range(3):
        group.driver.pass_time(SESSION_MS - 1)
        group.sync(member, 1)
    assert member in group.driver.group().members


def test_kafka_4_sync_does_not_renew_the_session() -> None:
    """The near miss."""
    group = Group(Driver())
    (member,) = group.stable()
    group.driver.pass_time(SESSION_MS - 1)
    group.sync(member, 1)
    group.driver.pass_time(1)
    assert group.state == "Empty"


@pytest.mark.parametrize("behaviour", SCALA, ids=["2.8", "3.9"])
def test_scala_refused_member_may_end_the_rebalance(behaviour: GroupBehaviour) -> None:
    """The one that was too many is gone, and all others are here."""
    driver = Driver(behaviour)
    group = Group(driver)
    first, second = group.stable(2)
    driver.config = GroupConfig(max_size=1)
    driver.move()
    call = group.join(first)
    assert group.join(second).error == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert not call.waits


def test_kafka_4_refused_member_does_not_end_the_rebalance() -> None:
    """The near miss: it ends with its timeout."""
    driver = Driver()
    group = Group(driver)
    first, second = group.stable(2)
    driver.config = GroupConfig(max_size=1)
    driver.move()
    call = group.join(first)
    assert group.join(second).error == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert call.waits
    driver.pass_time(REBALANCE_MS)
    assert not call.waits


def test_2_8_rejoin_keeps_the_timeouts() -> None:
    """Later releases take the new ones."""
    group = Group(Driver(BEHAVIOUR_2_8))
    (member,) = group.stable()
    group.join(member, session_ms=20_000)
    assert group.driver.group().members[member].session_timeout_ms == SESSION_MS


def test_2_8_lets_an_unknown_instance_of_a_known_member_pass() -> None:
    """It only looks whether the instance belongs to someone else. JoinGroup is strict even there."""
    group = Group(Driver(BEHAVIOUR_2_8))
    (member,) = group.stable()
    assert group.heartbeat(member, 1, "i") == ErrorCode.NONE
    assert group.commit(member_id=member, generation=1, instance="i") == ErrorCode.NONE
    assert group.join(member, instance="i", protocols=RANGE).error == ErrorCode.UNKNOWN_MEMBER_ID


def test_2_8_transaction_checks_member_and_generation_apart() -> None:
    """Each only if it is given."""
    group = Group(Driver(BEHAVIOUR_2_8))
    (member,) = group.stable()
    transaction = group.commit_in_transaction
    assert transaction(9, generation=1) == ErrorCode.NONE
    assert transaction(9, generation=2) == ErrorCode.ILLEGAL_GENERATION
    assert transaction(9, member_id=member) == ErrorCode.NONE
    assert transaction(9, member_id="m") == ErrorCode.UNKNOWN_MEMBER_ID


def test_scala_group_is_written_with_its_first_assignment() -> None:
    """Not before: a coordinator that moves earlier forgets it."""
    group = Group(Driver(BEHAVIOUR_3_9))
    group.completing()
    group.driver.move()
    assert group.state == "Dead"


def test_scala_forgets_unused_groups_while_loading() -> None:
    """Where no tombstone was written, the last offset's is enough."""
    group = Group(Driver(BEHAVIOUR_3_9))
    group.commit(5)
    group.driver.tell("topic_deleted", [TOPIC])
    group.driver.move()
    assert group.state == "Dead"
