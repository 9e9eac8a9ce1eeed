"""Where a consumer begins: committed offsets, reset policy, validation, and every error on the way."""

from typing import Any

import pytest

from kelpie.consumer.config import IsolationLevel
from kelpie.consumer.effects import ProblemKind
from kelpie.consumer.positions.partition_state import FetchState
from kelpie.consumer.positions.reset_policy import EARLIEST, LATEST, NONE, ResetPolicy
from kelpie.errors import ErrorCode, info
from kelpie.model.names import TopicPartition
from kelpie.questions.fetch import AskRecords
from kelpie.questions.find_coordinator import AskCoordinator
from kelpie.questions.join_group import AskToJoin
from kelpie.questions.list_offsets import AskOffsets, ListedOffset
from kelpie.questions.offset_fetch import AskCommitted, CommittedOffset, CommittedOffsets
from kelpie.questions.offset_for_leader_epoch import AskEpochEnds, EpochEnd
from tests.consumer.stand import Stand
from tests.consumer.world import GONE, T0, T1, TOO_OLD, World

_E = ErrorCode
ERRORS = [code for code in ErrorCode if code != _E.NONE]
_REDISCOVER = {_E.COORDINATOR_NOT_AVAILABLE, _E.NOT_COORDINATOR}
_OF_MEMBERS = {_E.ILLEGAL_GENERATION, _E.UNKNOWN_MEMBER_ID, _E.STALE_MEMBER_EPOCH}


def by_hand(world: World | None = None, **config: Any) -> Stand:
    """A consumer of two partitions that it took by itself: no joining in the way."""
    return Stand(world, **{"partitions": (T0, T1), **config})


def offsets(stand: Stand) -> dict[TopicPartition, int]:
    return {partition: at.offset for partition, at in stand.consumer.assignment.positions().items()}


def state(stand: Stand, partition: TopicPartition) -> FetchState:
    own = stand.consumer.assignment.get(partition)
    assert own is not None
    return own.fetch_state


# The order.


def test_committed_offsets_come_first_and_the_policy_takes_the_rest() -> None:
    """updateFetchPositions: ListOffsets is not asked before the coordinator has told."""
    stand = by_hand(World(committed={T0: CommittedOffset(4)}))
    stand.reach(AskCommitted)
    assert not stand.has_asked(AskOffsets)
    stand.run(AskOffsets, AskRecords)
    assert offsets(stand) == {T0: 4}
    assert set(stand.question(AskOffsets).wanted) == {T1}
    stand.run(AskRecords)
    assert offsets(stand) == {T0: 4, T1: 0}


def test_nothing_is_asked_when_all_have_positions() -> None:
    """Positions are taken up once, not with every poll."""
    stand = by_hand(World(committed={T0: CommittedOffset(4), T1: CommittedOffset(5)}))
    stand.reach(AskRecords)
    stand.run_for(2_000)
    stand.poll()
    assert not stand.has_asked(AskCommitted)
    assert not stand.has_asked(AskOffsets)


def test_consumer_without_a_group_goes_by_the_policy_alone() -> None:
    """There is nobody to commit for it."""
    stand = by_hand(group_id=None, auto_offset_reset=LATEST)
    stand.reach(AskRecords)
    assert offsets(stand) == {T0: 10, T1: 10}
    assert stand.consumer.coordinator is None


def test_partition_without_a_leader_waits_for_one() -> None:
    """The others begin meanwhile."""
    stand = by_hand(World(leaders={T1: None}))
    stand.reach(AskRecords)
    assert offsets(stand) == {T0: 0}
    assert state(stand, T1) is FetchState.AWAIT_RESET
    stand.world.leaders = {}
    stand.run_for(2_000, AskRecords)
    assert offsets(stand) == {T0: 0, T1: 0}


# OffsetFetch.


def _committed(error: int = 0, row_error: int = 0) -> CommittedOffsets:
    return CommittedOffsets(error, {T0: CommittedOffset(3, error=row_error), T1: CommittedOffset(4)})


@pytest.mark.parametrize("error", ERRORS)
def test_every_error_of_the_group_in_offset_fetch(error: ErrorCode) -> None:
    """Ask again, look for the coordinator first, or raise it."""
    stand = by_hand()
    stand.reach(AskCommitted)
    stand.give(AskCommitted, CommittedOffsets(error, {}))
    if error in _REDISCOVER:
        assert stand.consumer.coordinator is None
    if error in _OF_MEMBERS or (info(error).retriable and error != _E.UNKNOWN_TOPIC_OR_PARTITION):
        assert stand.last_step.failed
        stand.run_for(300, AskRecords, AskCommitted)
        assert stand.has_asked(AskCommitted)
    else:
        problem = stand.problem()
        forbidden = error in (_E.GROUP_AUTHORIZATION_FAILED, _E.TOPIC_AUTHORIZATION_FAILED)
        assert (problem.kind is ProblemKind.NOT_AUTHORISED) == forbidden
        assert problem.error == error


@pytest.mark.parametrize("error", ERRORS)
def test_every_error_of_a_partition_in_offset_fetch(error: ErrorCode) -> None:
    """Kafka 0.9 has no other place for them; later 3, 29 and 88 are to be expected."""
    stand = by_hand()
    stand.reach(AskCommitted)
    stand.give(AskCommitted, _committed(row_error=error))
    assert offsets(stand) == {}, "one partition without an answer holds them all back"
    if error in _OF_MEMBERS or (info(error).retriable and error != _E.UNKNOWN_TOPIC_OR_PARTITION):
        stand.run_for(300, AskRecords, AskCommitted)
        assert stand.has_asked(AskCommitted)
    else:
        problem = stand.problem()
        assert (problem.error, problem.partitions) == (error, (T0,))


def test_lost_connection_in_offset_fetch_looks_for_the_coordinator_anew() -> None:
    """It may be dead."""
    stand = by_hand()
    stand.reach(AskCommitted)
    stand.give(AskCommitted, GONE)
    stand.run_for(1_000, AskRecords, AskCoordinator)
    assert stand.has_asked(AskCoordinator)


def test_broker_too_old_for_offset_fetch_is_raised() -> None:
    """Before 0.8.2 offsets were in ZooKeeper only."""
    stand = by_hand()
    stand.reach(AskCommitted)
    stand.give(AskCommitted, TOO_OLD)
    assert stand.problem().kind is ProblemKind.UNSUPPORTED


def test_members_of_kafka_0_9_join_again_when_their_generation_is_refused() -> None:
    """There OffsetFetch checks the member, too."""
    stand = Stand()
    stand.reach(AskCommitted)
    stand.give(AskCommitted, _committed(row_error=_E.UNKNOWN_MEMBER_ID))
    assert stand.has_asked(AskToJoin)


def test_nothing_committed_and_no_policy_is_raised_with_every_poll() -> None:
    """Until somebody has committed an offset."""
    stand = by_hand(auto_offset_reset=NONE)
    stand.reach(AskCommitted)
    stand.run()
    assert (problem := stand.problem()).kind is ProblemKind.NO_OFFSET
    assert problem.partitions == (T0, T1)
    stand.world.committed = {T0: CommittedOffset(1), T1: CommittedOffset(2)}
    stand.poll()
    stand.run(AskRecords)
    assert offsets(stand) == {T0: 1, T1: 2}


def test_partition_taken_away_meanwhile_gets_no_position() -> None:
    """The answer comes, and belongs to nobody."""
    stand = by_hand(World(committed={T0: CommittedOffset(1), T1: CommittedOffset(2)}))
    stand.reach(AskCommitted)
    stand.consumer.assignment.assign((T1,))
    stand.run(AskRecords)
    assert offsets(stand) == {T1: 2}
    assert "t-0 no longer concerns it" in stand.consumer.steps[-1].follows


# ListOffsets.


@pytest.mark.parametrize("error", ERRORS)
def test_every_error_of_list_offsets(error: ErrorCode) -> None:
    """All are tried again with new metadata, even unknown ones, save a missing permission."""
    stand = by_hand(group_id=None)
    stand.reach(AskOffsets)
    stand.give(AskOffsets, {T0: ListedOffset(error), T1: ListedOffset(0, 3)})
    assert offsets(stand) == {T1: 3}, "each partition has its own answer"
    if error == _E.TOPIC_AUTHORIZATION_FAILED:
        assert stand.problem().kind is ProblemKind.NOT_AUTHORISED
        return
    if error == _E.UNSUPPORTED_FOR_MESSAGE_FORMAT:
        stand.wait(29_999)
        assert not stand.has_asked(AskOffsets)
        stand.wait(1)
    else:
        stand.run_for(99, AskOffsets, AskRecords)
        assert not stand.has_asked(AskOffsets)
        stand.run_for(101, AskOffsets, AskRecords)
        assert sum(step.request.startswith("Metadata") and step.times for step in stand.consumer.steps) >= 2
    assert set(stand.question(AskOffsets).wanted) == {T0}


def test_leaders_are_asked_one_request_each() -> None:
    """Grouped by leader, not partition by partition."""
    stand = by_hand(World(leaders={T0: 1, T1: 2}), group_id=None)
    stand.poll()
    stand.run(AskOffsets)
    asked = {
        request.node.node_id: set(question.wanted)
        for request, question in zip(stand.all_asked(AskOffsets), stand.questions(AskOffsets), strict=True)
    }
    assert asked == {1: {T0}, 2: {T1}}


def test_unanswered_list_offsets_is_asked_again_of_the_leader_known_then() -> None:
    """It may have moved."""
    stand = by_hand(group_id=None)
    stand.reach(AskOffsets)
    stand.world.leaders = {T0: 2, T1: 2}
    for _ in range(2):  # The second time it has heard of the new leader.
        stand.give(AskOffsets, GONE)
        stand.run_for(1_000, AskOffsets)
    assert stand.asked(AskOffsets).node.node_id == 2


def test_duration_without_a_record_so_young_waits_for_one() -> None:
    """It asks again, with the time counted anew, when the first request would have timed out."""
    stand = by_hand(group_id=None, auto_offset_reset=ResetPolicy.parse("by_duration:PT1M"))
    stand.reach(AskOffsets)
    first = stand.question(AskOffsets)
    assert first.wanted[T0][0] == stand.now - 60_000
    assert first.oldest == 1, "version 0 knows no records by time"
    stand.give(AskOffsets, {T0: ListedOffset(0, None), T1: ListedOffset(0, 5)})
    assert state(stand, T0) is FetchState.AWAIT_RESET
    stand.run_for(30_000, AskOffsets, AskRecords)
    again = stand.question(AskOffsets)
    assert again.wanted[T0][0] == stand.now - 60_000


def test_answer_to_a_reset_that_is_no_longer_wanted_is_ignored() -> None:
    """Somebody sought elsewhere while it was on its way."""
    stand = by_hand(group_id=None)
    stand.reach(AskOffsets)
    stand._do(stand.consumer.seek(T0, 7, stand.now))
    stand.run(AskRecords)
    assert offsets(stand) == {T0: 7, T1: 0}


def test_readers_of_committed_records_ask_so() -> None:
    """Their latest is the last stable offset; version 2 at least can tell."""
    stand = by_hand(group_id=None, isolation_level=IsolationLevel.READ_COMMITTED)
    stand.reach(AskOffsets)
    question = stand.question(AskOffsets)
    assert (question.isolation_level, question.oldest) == (1, 2)


# OffsetForLeaderEpoch.


def _doubtful(**config: Any) -> Stand:
    """Positions at 8 whose leader has changed since."""
    committed = {T0: CommittedOffset(8, 5), T1: CommittedOffset(8, 5)}
    stand = by_hand(World(committed=committed), **config)
    stand.reach(AskEpochEnds)
    return stand


def test_committed_position_is_checked_before_it_is_used() -> None:
    """The commit carries the epoch of the last record read."""
    stand = _doubtful()
    assert stand.question(AskEpochEnds).wanted == {T0: (5, 5), T1: (5, 5)}
    assert not stand.has_asked(AskRecords)
    stand.run(AskRecords)
    assert set(stand.question(AskRecords).wanted) == {T0, T1}


@pytest.mark.parametrize("error", ERRORS)
def test_every_error_of_offset_for_leader_epoch(error: ErrorCode) -> None:
    """As with ListOffsets: tried again, save a missing permission."""
    stand = _doubtful()
    stand.give(AskEpochEnds, {T0: EpochEnd(error), T1: EpochEnd(0, 5, 10)})
    assert state(stand, T0) is FetchState.AWAIT_VALIDATION
    assert state(stand, T1) is FetchState.FETCHING
    if error == _E.TOPIC_AUTHORIZATION_FAILED:
        assert stand.problem().kind is ProblemKind.NOT_AUTHORISED
    else:
        stand.run_for(300, AskEpochEnds, AskRecords)
        assert set(stand.question(AskEpochEnds).wanted) == {T0}


def test_truncated_log_is_continued_where_it_ends() -> None:
    """Not where the policy would begin: that could be a whole log away."""
    stand = _doubtful(auto_offset_reset=EARLIEST)
    stand.give(AskEpochEnds, {T0: EpochEnd(0, 4, 6), T1: EpochEnd(0, 5, 8)})
    assert offsets(stand) == {T0: 6, T1: 8}
    assert "2 offsets before 8 are gone" in stand.last_step.follows


@pytest.mark.parametrize(("end", "told"), [(EpochEnd(0, 4, 6), "at 6"), (EpochEnd(0, -1, -1), "somewhere")])
def test_truncated_log_without_a_policy_is_raised(end: EpochEnd, told: str) -> None:
    """The application must decide what to do about records that are gone."""
    stand = _doubtful(auto_offset_reset=NONE)
    stand.give(AskEpochEnds, {T0: end, T1: EpochEnd(0, 5, 10)})
    problem = stand.problem()
    assert problem.kind is ProblemKind.TRUNCATED
    assert told in problem.text


def test_epoch_that_the_leader_does_not_know_goes_to_the_policy() -> None:
    """There is nothing to compare with."""
    stand = _doubtful(auto_offset_reset=LATEST)
    stand.give(AskEpochEnds, {T0: EpochEnd(0, -1, -1), T1: EpochEnd(0, 5, 10)})
    stand.run(AskRecords)
    assert offsets(stand) == {T0: 10, T1: 8}


def test_broker_that_cannot_check_is_trusted() -> None:
    """Before 2.3 a consumer may not ask, and none would consume if that stopped it."""
    stand = _doubtful()
    stand.give(AskEpochEnds, TOO_OLD)
    assert set(stand.question(AskRecords).wanted) == {T0, T1}


def test_check_of_a_position_that_has_moved_is_ignored() -> None:
    """The answer is about another place."""
    stand = _doubtful()
    stand._do(stand.consumer.seek(T0, 2, stand.now))
    stand.give(AskEpochEnds, {T0: EpochEnd(0, 4, 1), T1: EpochEnd(0, 5, 10)})
    assert offsets(stand) == {T0: 2, T1: 8}


def test_change_of_leader_is_checked_while_consuming() -> None:
    """What was read came from the old one."""
    stand = by_hand()
    stand.reach(AskRecords)
    stand.run()
    stand.records()
    stand.world.epoch = 6
    stand.consumer.metadata.outdated()
    stand.run_for(200, AskRecords)
    stand.poll()
    assert stand.question(AskEpochEnds).wanted == {T0: (6, 5), T1: (6, 5)}


def test_older_epoch_than_the_one_known_is_not_believed() -> None:
    """A broker that lags behind must not lead back to a former leader."""
    stand = by_hand()
    stand.reach(AskRecords)
    stand.world.epoch, stand.world.leaders = 4, {T0: 2, T1: 2}
    stand.consumer.metadata.outdated()
    stand.run_for(300, AskRecords)
    assert stand.consumer.metadata.leader(T0).node_id == 1
