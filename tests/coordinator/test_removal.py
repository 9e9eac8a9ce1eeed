"""How groups and offsets go."""

import pytest

from kelpie.coordinator.config import GroupConfig
from kelpie.coordinator.release_behaviour import BEHAVIOUR_3_9
from kelpie.errors import ErrorCode
from kelpie.wire.offsets_topic import decode_key
from tests.coordinator.clients import DELAY_MS, SESSION_MS, TOPIC, Group
from tests.coordinator.driver import COMMIT, Driver

DAY_MS = 24 * 3_600_000
RETENTION_MS = 7 * DAY_MS


@pytest.fixture
def group() -> Group:
    return Group(Driver())


def keep_alive(group: Group, member: str, ms: int) -> None:
    """Time passes in a Stable group, with heartbeats."""
    end = group.driver.now + ms
    while group.driver.now < end:
        group.driver.now = min(group.driver.now + SESSION_MS - 1, end)
        assert group.heartbeat(member, group.generation) == ErrorCode.NONE


# DeleteGroups.


def test_empty_group_is_deleted_with_its_offsets(group: Group) -> None:
    """And nothing of it is left in the log."""
    (member,) = group.stable()
    group.commit(5, member_id=member, generation=1, partitions=[0, 1])
    group.leave(member)
    assert group.delete().error == ErrorCode.NONE
    assert (group.state, group.fetched()) == ("Dead", (-1, ErrorCode.NONE))
    group.driver.move()
    assert group.state == "Dead"


@pytest.mark.parametrize("rest", ["preparing", "completing", "stable"])
def test_group_with_members_is_not_deleted(group: Group, rest: str) -> None:
    """Its members would go on and commit into nothing."""
    getattr(group, rest)()
    assert group.delete().error == ErrorCode.NON_EMPTY_GROUP


def test_missing_group_cannot_be_deleted(group: Group) -> None:
    """The administrator may have mistyped it."""
    assert group.delete().error == ErrorCode.GROUP_ID_NOT_FOUND


def test_deleting_takes_pending_offsets_along(group: Group) -> None:
    """The marker that comes later must not bring the group back."""
    group.commit_in_transaction(9)
    assert group.delete().error == ErrorCode.NONE
    group.driver.end_transaction(7, COMMIT)
    assert group.state == "Dead"


def test_deleting_takes_commits_along_that_are_being_written(group: Group) -> None:
    """They come first in the log, and their tombstones behind them."""
    group.driver.hold()
    group.commit_call(5)
    call = group.delete()
    group.driver.release()
    assert call.error == ErrorCode.NONE
    assert group.state == "Dead"
    group.driver.move()
    assert (group.state, group.fetched()) == ("Dead", (-1, ErrorCode.NONE))


def test_group_that_cannot_be_deleted_is_still_there(group: Group) -> None:
    """Its tombstones were not written."""
    group.commit(5)
    group.driver.hold()
    call = group.delete()
    group.driver.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert call.error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (group.state, group.fetched()) == ("Empty", (5, ErrorCode.NONE))


def test_who_joins_while_the_group_is_deleted_finds_a_new_one(group: Group) -> None:
    """The tombstone in the log is before the new group's record."""
    (member,) = group.stable()
    group.leave(member)
    group.driver.hold()
    group.delete()
    joined = group.join(version=3)
    group.driver.release()
    group.driver.pass_time(DELAY_MS)
    assert joined.answer.generation_id == 1


# OffsetDelete.


def test_offsets_of_an_empty_group_can_be_deleted(group: Group) -> None:
    """Others stay, and so does the group until the next expiry."""
    group.commit(5, partitions=[0, 1])
    (topic,) = group.delete_offsets(0, 3).answer.topics
    assert [each.error_code for each in topic.partitions] == [0, 0], "what is not there is deleted as well"
    assert (group.fetched(0), group.fetched(1)) == ((-1, 0), (5, 0))
    group.delete_offsets(1)
    assert group.state == "Empty"


def test_offsets_of_a_subscribed_topic_cannot_be_deleted(group: Group) -> None:
    """Its members are about to use them."""
    (member,) = group.stable()
    group.commit(5, member_id=member, generation=1)
    (topic,) = group.delete_offsets(0).answer.topics
    assert topic.partitions[0].error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert group.fetched() == (5, ErrorCode.NONE)


def test_offsets_of_another_topic_can_be_deleted_while_members_read(group: Group) -> None:
    """Nobody reads it any more."""
    (member,) = group.stable()
    group.commit(5, member_id=member, generation=1, topic="payments")
    (topic,) = group.delete_offsets(0, topic="payments").answer.topics
    assert topic.partitions[0].error_code == ErrorCode.NONE
    assert group.fetch_call(None).answer.topics == []


def test_before_the_first_generation_every_topic_counts_as_subscribed(group: Group) -> None:
    """The subscriptions are not known yet."""
    group.commit(5, topic="payments")
    group.preparing()
    (topic,) = group.delete_offsets(0, topic="payments").answer.topics
    assert topic.partitions[0].error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


def test_metadata_that_cannot_be_read_count_as_subscribed(group: Group) -> None:
    """Any consumer may put anything there."""
    call = group.join(version=3, protocols=[("range", b"?")])
    group.driver.pass_time(DELAY_MS)
    assert call.error == ErrorCode.NONE
    (topic,) = group.delete_offsets(0).answer.topics
    assert topic.partitions[0].error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


def test_offsets_of_a_group_that_is_no_consumer_need_it_empty(group: Group) -> None:
    """What its members read is not for the coordinator to know."""
    group.join(version=3, protocol_type="connect")
    assert group.delete_offsets(0).error == ErrorCode.NON_EMPTY_GROUP


def test_offsets_of_a_missing_group_cannot_be_deleted(group: Group) -> None:
    """As for groups."""
    call = group.delete_offsets(0)
    assert (call.error, call.answer.topics) == (ErrorCode.GROUP_ID_NOT_FOUND, [])


def test_offsets_that_cannot_be_deleted_are_still_there(group: Group) -> None:
    """The error is that of the response."""
    group.commit(5)
    group.driver.hold()
    call = group.delete_offsets(0)
    group.driver.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert call.error == ErrorCode.NOT_COORDINATOR
    assert group.fetched() == (5, ErrorCode.NONE)


# Topics.


def test_offsets_go_with_their_topic(group: Group) -> None:
    """A topic of the same name begins at 0 again."""
    group.commit(5)
    group.commit(6, topic="payments")
    group.commit_in_transaction(9, partitions=[1])
    group.driver.tell("topic_deleted", [TOPIC])
    assert [topic.name for topic in group.fetch_call(None).answer.topics] == ["payments"]
    assert group.fetched(1, stable=True) == (-1, ErrorCode.NONE)


def test_topic_without_offsets_writes_nothing(group: Group) -> None:
    """Most topics are not of this shard."""
    group.commit(5)
    group.driver.tell("topic_deleted", ["payments"])
    assert len(group.driver.log) == 1


# Age.


def test_offsets_of_an_empty_group_expire_after_it_became_empty(group: Group) -> None:
    """KIP-211: however old the commit is, members may have been there until now."""
    (member,) = group.stable()
    group.commit(5, member_id=member, generation=1)
    keep_alive(group, member, 60_000)
    group.leave(member)
    group.driver.now += RETENTION_MS - 1
    group.driver.tell("expire")
    assert group.fetched() == (5, ErrorCode.NONE)
    group.driver.now += 1
    group.driver.tell("expire")
    assert group.state == "Dead"


def test_offsets_of_a_simple_group_expire_after_their_commit(group: Group) -> None:
    """Each on its own."""
    group.commit(5, partitions=[0])
    group.driver.now += DAY_MS
    group.commit(6, partitions=[1])
    group.driver.now += RETENTION_MS - DAY_MS
    group.driver.tell("expire")
    assert (group.fetched(0), group.fetched(1)) == ((-1, 0), (6, 0))


def test_subscribed_topics_of_a_live_group_never_expire() -> None:
    """A partition that has seen nothing for long is still read."""
    group = Group(Driver(config=GroupConfig(offsets_retention_ms=60_000)))
    (member,) = group.stable()
    group.commit(5, member_id=member, generation=1)
    group.commit(6, member_id=member, generation=1, topic="payments")
    keep_alive(group, member, 60_000)
    group.driver.tell("expire")
    assert [topic.name for topic in group.fetch_call(None).answer.topics] == [TOPIC]


@pytest.mark.parametrize("rest", ["preparing", "completing"])
def test_nothing_expires_during_a_rebalance(rest: str) -> None:
    """Who subscribes to what is about to change."""
    group = Group(Driver(config=GroupConfig(offsets_retention_ms=1_000)))
    group.commit(6, topic="payments")
    getattr(group, rest)()
    group.driver.now += 2_000
    group.driver.tell("expire")
    assert len(group.fetch_call(None).answer.topics) == 1


def test_end_that_the_client_named_counts(group: Group) -> None:
    """OffsetCommit version 2 to 4 with a retention: sooner or later than the broker's."""
    group.commit(5, partitions=[0], retention_ms=1_000, version=4)
    group.commit(6, partitions=[1], retention_ms=2 * RETENTION_MS, version=4)
    group.driver.now += 999
    group.driver.tell("expire")
    assert group.fetched(0) == (5, ErrorCode.NONE)
    group.driver.now += 1
    group.driver.tell("expire")
    assert group.fetched(0) == (-1, ErrorCode.NONE)
    group.driver.now += RETENTION_MS
    group.driver.tell("expire")
    assert group.fetched(1) == (6, ErrorCode.NONE)


def test_offset_that_a_transaction_holds_does_not_expire(group: Group) -> None:
    """Nor does its group."""
    group.commit(5)
    group.commit_in_transaction(9)
    group.driver.now += RETENTION_MS
    group.driver.tell("expire")
    assert group.fetched() == (5, ErrorCode.NONE)


def test_empty_group_without_offsets_goes_at_the_next_expiry(group: Group) -> None:
    """Its generation begins at 0 again: generations are not monotone over such a gap."""
    (member,) = group.stable()
    group.leave(member)
    group.driver.pass_time(group.driver.config.offsets_retention_check_interval_ms)
    assert group.state == "Dead"
    _, call = group.with_id()
    group.driver.pass_time(DELAY_MS)
    assert call.answer.generation_id == 1


def test_group_of_ids_given_out_goes_too(group: Group) -> None:
    """A quirk of Kafka 4: it is Empty, and nobody looks at who may come back."""
    member = group.join().answer.member_id
    group.driver.tell("expire")
    assert group.join(member).error == ErrorCode.UNKNOWN_MEMBER_ID


def test_expiry_comes_every_ten_minutes_by_itself(group: Group) -> None:
    """offsets.retention.check.interval.ms."""
    group.commit(5)
    group.driver.pass_time(RETENTION_MS - 1)
    assert group.state == "Empty"
    group.driver.pass_time(600_000)
    assert group.state == "Dead"
    assert ("expire",) in group.driver.timers


def test_expiry_that_cannot_be_written_changes_nothing(group: Group) -> None:
    """It comes again."""
    group.commit(5)
    group.driver.now += RETENTION_MS
    group.driver.broken = ErrorCode.NOT_ENOUGH_REPLICAS
    group.driver.tell("expire")
    assert (group.state, group.fetched()) == ("Empty", (5, ErrorCode.NONE))


def test_group_with_a_commit_on_its_way_stays(group: Group) -> None:
    """It is about to have an offset."""
    (member,) = group.stable()
    group.leave(member)
    group.driver.hold()
    group.commit_call(5)
    group.driver.tell("expire")
    group.driver.release()
    assert (group.state, group.fetched()) == ("Empty", (5, ErrorCode.NONE))


def test_scala_forgets_a_group_with_its_last_offset() -> None:
    """Up to 3.9; and if its generation is 0 no tombstone tells of it."""
    group = Group(Driver(BEHAVIOUR_3_9))
    group.commit(5)
    group.delete_offsets(0)
    assert group.state == "Dead"
    types = [decode_key(logged.record.key)[0] for logged in group.driver.log if logged.record]
    assert types == [1, 1]
    (member,) = group.stable()
    group.commit(5, member_id=member, generation=1)
    group.leave(member)
    group.driver.tell("topic_deleted", [TOPIC])
    assert group.state == "Dead"
    last = group.driver.log[-1].record
    assert last is not None
    assert (decode_key(last.key)[0], last.value) == (2, None)
