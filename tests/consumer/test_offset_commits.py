"""Committing offsets, on demand and automatically, and every error that may come back."""

import pytest

from kelpie.consumer.effects import (
    CommitFailed,
    ConsumerClosed,
    OffsetsCommitted,
    PartitionsRevoked,
    ProblemKind,
    RecordsDelivered,
)
from kelpie.consumer.steps import StepKind
from kelpie.errors import ErrorCode
from kelpie.questions.fetch import AskRecords
from kelpie.questions.find_coordinator import AskCoordinator
from kelpie.questions.heartbeat import AskHeartbeat
from kelpie.questions.join_group import AskToJoin
from kelpie.questions.leave_group import AskToLeave
from kelpie.questions.offset_commit import AskToCommit, OffsetToCommit
from tests.consumer.membership.test_classic import beating, stable
from tests.consumer.positions.test_fetch_positions import by_hand
from tests.consumer.stand import Stand
from tests.consumer.world import GONE, T0, T1, TOO_OLD, World

_E = ErrorCode
ERRORS = [code for code in ErrorCode if code != _E.NONE]
_REDISCOVER = {_E.REQUEST_TIMED_OUT, _E.COORDINATOR_NOT_AVAILABLE, _E.NOT_COORDINATOR}
_AGAIN = _REDISCOVER | {
    _E.UNKNOWN_TOPIC_OR_PARTITION,
    _E.COORDINATOR_LOAD_IN_PROGRESS,
    _E.STALE_MEMBER_EPOCH,
}
_KINDS = {
    _E.ILLEGAL_GENERATION: ProblemKind.COMMIT_FAILED,
    _E.UNKNOWN_MEMBER_ID: ProblemKind.COMMIT_FAILED,
    _E.FENCED_MEMBER_EPOCH: ProblemKind.COMMIT_FAILED,
    _E.GROUP_ID_NOT_FOUND: ProblemKind.COMMIT_FAILED,
    _E.REBALANCE_IN_PROGRESS: ProblemKind.REBALANCING,
    _E.FENCED_INSTANCE_ID: ProblemKind.FENCED,
    _E.GROUP_AUTHORIZATION_FAILED: ProblemKind.NOT_AUTHORISED,
    _E.TOPIC_AUTHORIZATION_FAILED: ProblemKind.NOT_AUTHORISED,
    _E.OFFSET_METADATA_TOO_LARGE: ProblemKind.REFUSED,
    _E.INVALID_COMMIT_OFFSET_SIZE: ProblemKind.REFUSED,
}


def committing() -> tuple[Stand, int]:
    stand = stable()
    stand.run()
    return stand, stand.commit()


def test_commit_stores_what_was_handed_out() -> None:
    """With the epoch of the last record, so that the next reader can check it."""
    stand, commit_id = committing()
    question = stand.question(AskToCommit)
    assert question.offsets == {T0: (3, 5, ""), T1: (3, 5, "")}
    assert (question.generation, question.member_id) == (1, "m-1")
    stand.run()
    offsets = {T0: OffsetToCommit(3, 5), T1: OffsetToCommit(3, 5)}
    assert stand.told(OffsetsCommitted) == [OffsetsCommitted(commit_id, offsets)]


def test_given_offsets_are_committed_as_they_are() -> None:
    """Also of partitions that are not assigned: that is the caller's business."""
    stand = stable()
    stand.commit(offsets={T1: OffsetToCommit(9, None, "note")})
    assert stand.question(AskToCommit).offsets == {T1: (9, None, "note")}


def test_nothing_to_commit_is_committed_at_once() -> None:
    """No request is needed for it."""
    stand = Stand()
    commit_id = stand.commit()
    assert stand.told(OffsetsCommitted) == [OffsetsCommitted(commit_id, {})]


@pytest.mark.parametrize("error", ERRORS)
def test_every_error_of_a_commit(error: ErrorCode) -> None:
    """Again, elsewhere, or refused; the membership hears of what concerns it."""
    stand, commit_id = committing()
    stand.give(AskToCommit, {T0: error, T1: 0})
    if error in _AGAIN:
        assert (stand.consumer.coordinator is None) == (error in _REDISCOVER)
        stand.run_for(1_000)
        (committed,) = stand.told(OffsetsCommitted)
        assert committed.commit_id == commit_id
        return
    (refused,) = stand.told(CommitFailed)
    assert refused.commit_id == commit_id
    assert (refused.problem.kind, refused.problem.partitions) == (
        _KINDS.get(error, ProblemKind.UNEXPECTED),
        (T0,),
    )
    stand.poll()
    rejoins = error in (_E.ILLEGAL_GENERATION, _E.UNKNOWN_MEMBER_ID, _E.REBALANCE_IN_PROGRESS)
    stand.run(AskRecords, AskToJoin)
    assert stand.has_asked(AskToJoin) == rejoins


def test_commit_is_given_up_when_its_time_is_over() -> None:
    """And says so: the caller must not believe that it is stored."""
    stand = stable()
    stand.run()
    stand.world.instead[AskToCommit] = [{T0: _E.COORDINATOR_LOAD_IN_PROGRESS, T1: 0}] * 100
    commit_id = stand.commit(limit_ms=2_000)
    stand.run_for(2_000)
    (refused,) = stand.told(CommitFailed)
    assert (refused.commit_id, refused.problem.kind) == (commit_id, ProblemKind.COMMIT_FAILED)


def test_unanswered_commit_is_sent_again() -> None:
    """Storing the same offset twice does no harm."""
    stand, commit_id = committing()
    stand.give(AskToCommit, GONE)
    stand.run_for(2_000)
    assert [committed.commit_id for committed in stand.told(OffsetsCommitted)] == [commit_id]


def test_commit_in_a_version_that_the_broker_lacks_is_refused() -> None:
    """Kafka 0.8.1 kept offsets in ZooKeeper."""
    stand, _ = committing()
    stand.give(AskToCommit, TOO_OLD)
    assert stand.told(CommitFailed)[0].problem.kind is ProblemKind.UNSUPPORTED


def test_commits_are_sent_one_after_the_other() -> None:
    """An older one must not overtake a newer one."""
    stand = stable()
    first = stand.commit(offsets={T0: OffsetToCommit(1)})
    second = stand.commit(offsets={T0: OffsetToCommit(2)})
    assert stand.question(AskToCommit).offsets[T0][0] == 1
    stand.run(AskRecords)
    assert [committed.commit_id for committed in stand.told(OffsetsCommitted)] == [first, second]
    assert stand.world.committed[T0].offset == 2


def test_member_that_is_joining_may_not_commit() -> None:
    """Its partitions are another's, perhaps, in a moment."""
    stand = beating()
    stand.give(AskHeartbeat, _E.REBALANCE_IN_PROGRESS)
    stand.commit(offsets={T0: OffsetToCommit(1)})
    assert stand.told(CommitFailed)[0].problem.kind is ProblemKind.REBALANCING


def test_member_that_was_dropped_may_not_commit() -> None:
    """The zombie's commit: it must not overwrite the new owner's."""
    stand = stable(max_poll_interval_ms=5_000)
    stand.end_poll()
    stand.run_for(6_000)
    stand.commit(offsets={T0: OffsetToCommit(1)})
    assert stand.told(CommitFailed)[0].problem.kind is ProblemKind.COMMIT_FAILED


def test_consumer_without_a_group_has_nowhere_to_commit() -> None:
    """Said at once, not after a time limit."""
    stand = by_hand(group_id=None)
    stand.commit(offsets={T0: OffsetToCommit(1)})
    assert stand.told(CommitFailed)[0].problem.kind is ProblemKind.REFUSED


def test_outsider_commits_without_being_a_member() -> None:
    """A generation of −1 and no member id: a simple consumer."""
    stand = by_hand()
    stand.reach(AskRecords)
    stand.commit(offsets={T0: OffsetToCommit(1)})
    question = stand.question(AskToCommit)
    assert (question.generation, question.member_id) == (-1, "")


# Automatic commits.


def test_automatic_commit_is_sent_by_polls_at_its_interval() -> None:
    """Not more often, and not without a poll."""
    stand = stable(enable_auto_commit=True, auto_commit_interval_ms=1_000)
    stand.run()
    stand.records()
    stand.run_for(5_000)
    assert not any(step.kind is StepKind.COMMIT for step in stand.consumer.steps)
    stand.poll()
    stand.run(AskRecords)
    assert stand.world.committed[T0].offset == 3, "what the poll before has handed out, and not this one's"


def test_automatic_commit_that_fails_raises_nothing() -> None:
    """It is tried again with a later poll."""
    stand = stable(enable_auto_commit=True, auto_commit_interval_ms=1_000)
    stand.run()
    stand.world.instead[AskToCommit] = [{T0: _E.OFFSET_METADATA_TOO_LARGE, T1: 0}]
    stand.run_for(1_000)
    stand.poll()
    stand.run(AskRecords)
    stand.told(RecordsDelivered)
    assert stand.events == [event for event in stand.events if not isinstance(event, CommitFailed)]
    stand.run_for(1_000)
    stand.poll()
    stand.run(AskRecords)
    assert T0 in stand.world.committed


def test_automatic_commit_comes_before_partitions_are_given_up() -> None:
    """Otherwise the next owner reads again what this one has read."""
    world = World(logs={T0: (0, 3), T1: (0, 3)})
    stand = beating(world=world, enable_auto_commit=True, auto_commit_interval_ms=60_000)
    stand.give(AskRecords, world.answer(stand.asked(AskRecords)))
    stand.poll()
    stand.give(AskHeartbeat, _E.REBALANCE_IN_PROGRESS)
    stand.run(AskToCommit, AskToJoin, AskRecords)
    assert stand.has_asked(AskToCommit)
    assert not stand.has_asked(AskToJoin)
    assert stand.told(PartitionsRevoked) == []
    stand.run(AskToJoin, AskRecords)
    assert stand.told(PartitionsRevoked) == [PartitionsRevoked((T0, T1))]
    assert stand.has_asked(AskToJoin)


def test_closing_commits_first_and_leaves_then() -> None:
    """In this order: who has left may not commit."""
    stand = stable(enable_auto_commit=True)
    stand.run()
    stand.close()
    assert stand.has_asked(AskToCommit)
    assert not stand.has_asked(AskToLeave)
    stand.run(AskToLeave)
    assert stand.has_asked(AskToLeave)
    stand.run()
    assert stand.told(ConsumerClosed) == [ConsumerClosed()]


def test_closing_does_not_wait_for_a_coordinator_for_ever() -> None:
    """What cannot be committed in request.timeout.ms is not."""
    stand = stable(enable_auto_commit=True, request_timeout_ms=3_000)
    stand.run()
    stand.close()
    stand.give(AskToCommit, GONE)
    stand.wait(10_000)
    for _ in range(20):
        if stand.has_asked(AskCoordinator):
            stand.give(AskCoordinator, GONE)
        stand.wait(1_000)
    assert stand.told(ConsumerClosed) == [ConsumerClosed()]
