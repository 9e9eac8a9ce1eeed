"""Committed offsets: stored, fetched in every shape, held back by transactions."""

import pytest

from kelpie.coordinator import offset_fetch
from kelpie.coordinator.classic.state import ClassicGroupState
from kelpie.coordinator.config import GroupConfig
from kelpie.coordinator.release_behaviour import BEHAVIOUR_3_9, BEHAVIOUR_4_3, GroupBehaviour
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.wire.api.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kelpie.wire.compiler import decode, encode
from tests.coordinator.clients import DELAY_MS, TOPIC, Group
from tests.coordinator.driver import ABORT, COMMIT, Driver

UNSTABLE = (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)


@pytest.fixture
def group() -> Group:
    return Group(Driver())


# Commits.


def test_commit_of_nobody_creates_a_simple_group(group: Group) -> None:
    """Empty and without a protocol type: it is only there for its offsets."""
    assert group.commit(5) == ErrorCode.NONE
    (listed,) = group.driver.shard.listed()
    assert (listed.group_id, listed.protocol_type, listed.group_state) == ("g", "", "Empty")
    assert len(group.driver.log) == 1, "no record of the group itself"
    group.driver.move()
    assert group.fetched() == (5, ErrorCode.NONE)
    assert group.state == "Empty"


@pytest.mark.parametrize(
    ("version", "error"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)]
)
def test_commit_of_a_member_to_a_missing_group_is_refused(
    group: Group, version: int, error: ErrorCode
) -> None:
    """Version 9 has a word for it."""
    assert group.commit(member_id="m", generation=1, version=version) == error


def test_commit_is_answered_once_it_is_written(group: Group) -> None:
    """Otherwise a failover could bring the older offset back."""
    group.driver.hold()
    call = group.commit_call(5)
    assert call.waits
    assert group.fetched() == (-1, ErrorCode.NONE)
    group.driver.release()
    assert call.answer.topics[0].partitions[0].error_code == 0
    assert group.fetched() == (5, ErrorCode.NONE)


@pytest.mark.parametrize(
    ("behaviour", "error", "told"),
    [
        (BEHAVIOUR_4_3, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (BEHAVIOUR_4_3, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (BEHAVIOUR_4_3, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (BEHAVIOUR_4_3, ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (BEHAVIOUR_3_9, ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
        (BEHAVIOUR_3_9, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REQUEST_TIMED_OUT),
    ],
)
def test_failed_commit_is_told_for_every_partition(
    behaviour: GroupBehaviour, error: ErrorCode, told: ErrorCode
) -> None:
    """Also for those that would have been refused for another reason."""
    group = Group(Driver(behaviour))
    group.driver.hold()
    call = group.commit_call(5, partitions=[0, 1])
    if error is ErrorCode.REQUEST_TIMED_OUT:
        group.driver.time_out()
    else:
        group.driver.fail(error)
    (topic,) = call.answer.topics
    assert [each.error_code for each in topic.partitions] == [told, told]


def test_group_of_a_failed_commit_is_forgotten(group: Group) -> None:
    """It was created for that commit."""
    group.driver.broken = ErrorCode.NOT_ENOUGH_REPLICAS
    group.commit(5)
    assert group.state == "Dead"


def test_commit_that_timed_out_may_still_count(group: Group) -> None:
    """The client is told to look for the coordinator; the record is in the log all the same."""
    group.driver.hold()
    call = group.commit_call(5)
    group.driver.time_out()
    assert call.answer.topics[0].partitions[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    group.driver.release()
    assert group.fetched() == (5, ErrorCode.NONE)


@pytest.mark.parametrize(
    ("metadata", "error"),
    [
        ("x" * 4096, ErrorCode.NONE),
        ("x" * 4097, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ("你" * 4096, ErrorCode.NONE),
        ("😀" * 2048, ErrorCode.NONE),
        ("😀" * 2049, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        (None, ErrorCode.NONE),
    ],
    ids=["at the limit", "above", "three bytes each", "pairs at the limit", "pairs above", "null"],
)
def test_metadata_are_measured_in_utf16(group: Group, metadata: str | None, error: ErrorCode) -> None:
    """offset.metadata.max.bytes is held against String.length() of Java."""
    assert group.commit(5, metadata=metadata) == error


def test_partition_with_large_metadata_does_not_hold_up_the_others() -> None:
    """Each partition has its own result."""
    group = Group(Driver(config=GroupConfig(offset_metadata_max_bytes=3)))
    group.commit(5, metadata="long", partitions=[0])
    assert group.state == "Empty", "the group is created before its offsets are looked at"
    assert group.driver.log == []
    group.commit(6, metadata="ok", partitions=[1])
    assert (group.fetched(0), group.fetched(1)) == ((-1, 0), (6, 0))


def test_topic_id_is_stored_with_the_offset(group: Group) -> None:
    """Kafka 4.1 and later; the driver's caller fills it in."""
    group.commit(5, topic_id=b"\x01" * 16)
    stored = group.driver.shard.state.offsets.of("g")[TopicPartition(TOPIC, 0)]
    assert stored.topic_id == b"\x01" * 16


# Fetches.


def test_fetch_of_all_names_only_what_is_committed(group: Group) -> None:
    """Topics null."""
    group.commit(5, partitions=[2, 0], metadata="m")
    group.commit(6, topic="payments")
    answer = group.fetch_call(None).answer
    found = {
        (topic.name, each.partition_index): (each.committed_offset, each.metadata, each.error_code)
        for topic in answer.topics
        for each in topic.partitions
    }
    assert found == {("orders", 2): (5, "m", 0), ("orders", 0): (5, "m", 0), ("payments", 0): (6, "", 0)}


def test_fetch_of_a_missing_group_is_no_error(group: Group) -> None:
    """A consumer then begins where auto.offset.reset says."""
    assert group.fetched() == (-1, ErrorCode.NONE)
    assert group.fetch_call(None).answer.topics == []


@pytest.mark.parametrize("version", range(1, 11))
def test_answer_fits_every_version(group: Group, version: int) -> None:
    """One group in the old shapes, a list of groups in the new."""
    group.commit(5, metadata="m")
    if version < 8:
        asked = OffsetFetchRequest(
            group_id="g", topics=[OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0, 1])]
        )
    else:
        topics = [OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0, 1])]
        asked = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)])
    groups = offset_fetch.groups_asked(asked, version)
    parts = [group.driver.shard.offsets_of(each.group_id, each.topics, False) for each in groups]
    response = offset_fetch.response_of(parts, version)
    again = decode(type(response), version, encode(response, version))
    answered = again.groups[0].topics if version >= 8 else again.topics
    assert [each.committed_offset for each in answered[0].partitions] == [5, -1]
    refusal = offset_fetch.response_of(
        [offset_fetch.refused(groups[0], ErrorCode.NOT_COORDINATOR, version)], version
    )
    read = decode(type(refusal), version, encode(refusal, version))
    if version >= 8:
        assert read.groups[0].error_code == ErrorCode.NOT_COORDINATOR
    elif version >= 2:
        assert read.error_code == ErrorCode.NOT_COORDINATOR
    else:
        assert {each.error_code for each in read.topics[0].partitions} == {ErrorCode.NOT_COORDINATOR}


@pytest.mark.parametrize("version", [2, 7])
def test_null_topics_of_old_versions_ask_for_all(version: int) -> None:
    """Since version 2."""
    (asked,) = offset_fetch.groups_asked(OffsetFetchRequest(group_id="g", topics=None), version)
    assert asked.topics is None


def test_stable_fetch_waits_for_commits_that_are_being_written(group: Group) -> None:
    """Kafka 4: the answer holds what was committed before it was asked."""
    group.commit(4)
    group.driver.hold()
    group.commit_call(5)
    group.commit_call(6)
    stable, plain = group.fetch_call(stable=True), group.fetch_call()
    assert stable.waits
    assert plain.answer.topics[0].partitions[0].committed_offset == 4
    group.driver.release()
    assert stable.answer.topics[0].partitions[0].committed_offset == 6


def test_stable_fetch_does_not_wait_for_ever(group: Group) -> None:
    """A commit that fails leaves the older offset."""
    group.commit(4)
    group.driver.hold()
    group.commit_call(5)
    stable = group.fetch_call(stable=True)
    group.driver.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert stable.answer.topics[0].partitions[0].committed_offset == 4


def test_stable_fetch_waits_no_longer_than_a_commit_may_take(group: Group) -> None:
    """offsets.commit.timeout.ms; Kafka then sends the client to look for the coordinator."""
    group.driver.hold()
    group.commit_call(5)
    stable = group.fetch_call(stable=True)
    group.driver.pass_time(4_999)
    assert stable.waits
    group.driver.pass_time(1)
    assert stable.error == ErrorCode.NOT_COORDINATOR


def test_stable_fetch_is_sent_to_the_next_coordinator(group: Group) -> None:
    """If this one goes while it waits."""
    group.driver.hold()
    group.commit_call(5)
    stable = group.fetch_call(stable=True)
    group.driver.move()
    assert stable.error == ErrorCode.NOT_COORDINATOR


def test_stable_fetch_of_scala_is_unstable_while_a_commit_is_written() -> None:
    """Up to 3.9 the client has to ask again."""
    group = Group(Driver(BEHAVIOUR_3_9))
    group.commit(4)
    group.driver.hold()
    group.commit_call(5)
    assert group.fetched(stable=True) == UNSTABLE
    assert group.fetched(1, stable=True) == (-1, ErrorCode.NONE)
    group.driver.release()
    assert group.fetched(stable=True) == (5, ErrorCode.NONE)


# Transactions.


def test_offset_of_a_transaction_counts_when_it_commits(group: Group) -> None:
    """Until then it is pending, and the older one holds."""
    group.commit(4)
    assert group.commit_in_transaction(9) == ErrorCode.NONE
    assert group.fetched() == (4, ErrorCode.NONE)
    group.driver.end_transaction(7, COMMIT)
    assert group.fetched() == (9, ErrorCode.NONE)


def test_offset_of_an_aborted_transaction_is_dropped(group: Group) -> None:
    """As if it had never been."""
    group.commit(4)
    group.commit_in_transaction(9)
    group.driver.end_transaction(7, ABORT)
    assert group.fetched(stable=True) == (4, ErrorCode.NONE)


def test_stable_fetch_is_unstable_while_a_transaction_is_open(group: Group) -> None:
    """KIP-447: whoever takes over a partition must not begin before the transaction of the one before it."""
    group.commit(4)
    group.commit_in_transaction(9)
    assert group.fetched(stable=True) == UNSTABLE
    assert group.fetched(1, stable=True) == (-1, ErrorCode.NONE)
    (topic,) = group.fetch_call(None, stable=True).answer.topics
    assert topic.partitions[0].error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
    group.driver.end_transaction(7, COMMIT)
    assert group.fetched(stable=True) == (9, ErrorCode.NONE)


def test_stable_fetch_is_unstable_while_a_transactional_commit_is_written(group: Group) -> None:
    """It does not wait for those: they would be unstable anyway."""
    group.driver.hold()
    group.commit_in_transaction_call(9)
    assert group.fetched(stable=True) == UNSTABLE


def test_pending_offsets_survive_a_move(group: Group) -> None:
    """They are in the log, and so will be their marker."""
    group.commit_in_transaction(9)
    group.driver.move()
    assert group.fetched(stable=True) == UNSTABLE
    group.driver.end_transaction(7, COMMIT)
    assert group.fetched() == (9, ErrorCode.NONE)


def test_later_plain_commit_outlives_an_earlier_transactional_one(group: Group) -> None:
    """What counts is the place of the records, not of the marker."""
    group.commit_in_transaction(9)
    group.commit(4)
    group.driver.end_transaction(7, COMMIT)
    assert group.fetched() == (4, ErrorCode.NONE)


def test_transactions_of_several_producers_are_kept_apart(group: Group) -> None:
    """One ends, the other goes on."""
    group.commit_in_transaction(8, producer_id=1)
    group.commit_in_transaction(9, producer_id=2)
    group.driver.end_transaction(2, COMMIT)
    assert group.fetched() == (9, ErrorCode.NONE)
    assert group.fetched(stable=True) == UNSTABLE
    group.driver.end_transaction(1, COMMIT)
    assert group.fetched(stable=True) == (9, ErrorCode.NONE)


def test_tombstone_drops_pending_offsets(group: Group) -> None:
    """A deleted offset does not come back with the marker."""
    group.commit_in_transaction(9)
    assert group.delete_offsets(0).error == ErrorCode.NONE
    assert group.fetched(stable=True) == (-1, ErrorCode.NONE)
    group.driver.end_transaction(7, COMMIT)
    assert group.fetched() == (-1, ErrorCode.NONE)


def test_marker_of_a_stranger_is_ignored(group: Group) -> None:
    """Transactions without offsets of this shard end here as well."""
    group.commit(4)
    group.driver.end_transaction(99, COMMIT)
    assert group.fetched() == (4, ErrorCode.NONE)


def test_transaction_writes_in_the_producers_name(group: Group) -> None:
    """Producer id and epoch are the driver's to put on the batch."""
    group.driver.hold()
    group.commit_in_transaction_call(9, producer_id=5)
    (_, outcome) = group.driver.waiting[0]
    assert outcome.producer == (5, 0)


def test_transaction_does_not_look_at_the_state(group: Group) -> None:
    """It may commit while the group completes a rebalance, where a plain commit may not."""
    (member,) = group.completing()
    assert group.commit_in_transaction(9, member_id=member, generation=1) == ErrorCode.NONE


def test_transaction_without_a_member_is_accepted_in_any_state(group: Group) -> None:
    """Producers before KIP-447 know nothing of members."""
    group.stable()
    assert group.commit_in_transaction(9) == ErrorCode.NONE


def test_transaction_checks_the_member_if_it_is_given(group: Group) -> None:
    """KIP-447: a zombie's transaction is refused."""
    (member,) = group.stable()
    transaction = group.commit_in_transaction
    assert transaction(9, member_id="m", generation=1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert transaction(9, member_id=member, generation=2) == ErrorCode.ILLEGAL_GENERATION
    assert transaction(9, member_id=member) == ErrorCode.ILLEGAL_GENERATION
    assert transaction(9, generation=1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert transaction(9, member_id=member, generation=1, instance="i") == ErrorCode.UNKNOWN_MEMBER_ID
    assert transaction(9, member_id=member, generation=1) == ErrorCode.NONE


def test_transaction_fences_an_instance(group: Group) -> None:
    """As any request of a static member."""
    old = group.join(instance="i")
    group.driver.pass_time(DELAY_MS)
    group.sync(old.answer.member_id, 1)
    group.join(instance="i")
    fenced = group.commit_in_transaction(9, member_id=old.answer.member_id, generation=1, instance="i")
    assert fenced == ErrorCode.FENCED_INSTANCE_ID


def test_transaction_of_a_member_to_a_missing_group_is_refused(group: Group) -> None:
    """Without a member it creates the group."""
    assert group.commit_in_transaction(9, member_id="m", generation=1) == ErrorCode.ILLEGAL_GENERATION
    assert group.commit_in_transaction(9) == ErrorCode.NONE
    assert group.driver.group().state is ClassicGroupState.EMPTY


def test_failed_transactional_commit_is_told_for_every_partition(group: Group) -> None:
    """NETWORK_EXCEPTION, when a transaction could not be verified, becomes one that all clients retry."""
    group.driver.broken = ErrorCode.NETWORK_EXCEPTION
    assert group.commit_in_transaction(9) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    group.driver.broken = None
    assert group.fetched(stable=True) == (-1, ErrorCode.NONE)
    assert group.commit_in_transaction(9, metadata="x" * 5_000) == ErrorCode.OFFSET_METADATA_TOO_LARGE
