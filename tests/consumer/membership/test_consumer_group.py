"""A member of the newer group protocol (KIP-848): every state, every error."""

import pytest

from kelpie.consumer.config import GroupProtocol
from kelpie.consumer.effects import (
    ConsumerClosed,
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
    ProblemKind,
)
from kelpie.consumer.membership.consumer_group import ConsumerGroupMembership, MemberState
from kelpie.consumer.steps import StepKind
from kelpie.errors import ErrorCode
from kelpie.questions.consumer_group_heartbeat import AskNewerHeartbeat, Beat
from kelpie.questions.fetch import AskRecords
from kelpie.questions.metadata import AskMetadata
from kelpie.questions.offset_commit import AskToCommit
from kelpie.questions.offset_fetch import AskCommitted
from tests.consumer.stand import Stand
from tests.consumer.world import GONE, T0, T1, TOO_OLD, World, ids, topic_id

_E = ErrorCode
ERRORS = [code for code in ErrorCode if code != _E.NONE]
_ELSEWHERE = {_E.COORDINATOR_NOT_AVAILABLE, _E.NOT_COORDINATOR}
_FENCED = {_E.UNKNOWN_MEMBER_ID, _E.FENCED_MEMBER_EPOCH}


def newer(**config: object) -> Stand:
    world = World(granted=(T0, T1))
    return Stand(world, **{"group_protocol": GroupProtocol.CONSUMER, **config})


def stable(**config: object) -> Stand:
    stand = newer(**config)
    stand.reach(AskRecords)
    stand.run(AskRecords)
    stand.told(PartitionsAssigned)
    assert membership(stand).state is MemberState.STABLE
    return stand


def beating(**config: object) -> Stand:
    stand = stable(**config)
    stand.wait(5_000)
    assert stand.has_asked(AskNewerHeartbeat)
    return stand


def membership(stand: Stand) -> ConsumerGroupMembership:
    own = stand.consumer.membership
    assert isinstance(own, ConsumerGroupMembership)
    return own


def test_first_heartbeat_joins_and_tells_everything() -> None:
    """Epoch 0, an id of its own choice, topics, and that it owns nothing."""
    stand = newer(group_remote_assignor="uniform", max_poll_interval_ms=60_000)
    stand.reach(AskNewerHeartbeat)
    question = stand.question(AskNewerHeartbeat)
    assert (question.epoch, question.member_id, question.topics) == (0, "new-1", ("t",))
    assert (question.owned, question.server_assignor) == ((), "uniform")
    assert question.rebalance_timeout_ms == 60_000


def test_it_does_not_join_before_it_is_polled() -> None:
    """An application that never polls would hold partitions for nothing."""
    stand = newer()
    stand.run_for(10_000)
    assert not any(step.kind is StepKind.JOIN for step in stand.consumer.steps)


def test_assignment_is_taken_on_and_acknowledged_at_once() -> None:
    """The coordinator gives the rest of the group what others own only when it has heard of it."""
    stand = newer()
    stand.reach(AskNewerHeartbeat)
    stand.give(AskNewerHeartbeat, Beat(0, None, "new-1", 1, 5_000, ids((T0, T1))))
    assert stand.told(PartitionsAssigned) == [PartitionsAssigned((T0, T1))]
    assert stand.question(AskNewerHeartbeat).owned == ids((T0, T1))


def test_later_heartbeats_tell_only_what_has_changed() -> None:
    """Group, member and epoch: that is all."""
    stand = beating()
    question = stand.question(AskNewerHeartbeat)
    assert (question.topics, question.owned, question.server_assignor) == (None, None, None)
    assert question.epoch == 1


def test_offsets_are_asked_for_as_a_member() -> None:
    """With id and epoch, so that a member that was cut off is refused."""
    stand = newer()
    stand.reach(AskCommitted)
    question = stand.question(AskCommitted)
    assert (question.member_id, question.member_epoch) == ("new-1", 1)
    stand.run(AskRecords)
    stand.commit()
    commit = stand.question(AskToCommit)
    assert (commit.generation, commit.member_id, commit.oldest) == (1, "new-1", 9)


def test_what_goes_is_given_up_before_what_comes_is_taken_on() -> None:
    """And the rest goes on being read."""
    stand = beating()
    stand.give(AskNewerHeartbeat, Beat(0, None, "new-1", 2, 5_000, ids((T1,))))
    assert stand.told(PartitionsRevoked) == [PartitionsRevoked((T0,))]
    assert stand.told(PartitionsAssigned) == [PartitionsAssigned(())]
    assert stand.question(AskNewerHeartbeat).owned == ids((T1,))
    assert membership(stand).identity.generation == 2


def test_reconciling_waits_for_a_poll() -> None:
    """The application hears of partitions in polls only."""
    stand = beating()
    stand.end_poll()
    stand.world.granted = (T1,)
    stand.give(AskNewerHeartbeat, Beat(0, None, "new-1", 2, 5_000, ids((T1,))))
    stand.run_for(10_000)
    assert membership(stand).state is MemberState.RECONCILING
    stand.poll()
    assert stand.told(PartitionsRevoked) == [PartitionsRevoked((T0,))]


def test_automatic_commit_comes_before_partitions_are_given_up() -> None:
    """As in the classic protocol."""
    stand = stable(enable_auto_commit=True)
    stand.run()
    stand.wait(5_000)
    stand.poll()
    stand.run(AskNewerHeartbeat, AskRecords, AskToCommit)
    stand.give(AskNewerHeartbeat, Beat(0, None, "new-1", 2, 5_000, ids((T1,))))
    assert stand.told(PartitionsRevoked) == []
    stand.poll()
    stand.run_for(100, AskNewerHeartbeat, AskRecords)
    assert stand.told(PartitionsRevoked) == [PartitionsRevoked((T0,))]


def test_topic_that_is_not_known_yet_is_asked_for() -> None:
    """Assignments come by topic id; the name is in the metadata."""
    stand = beating()
    assignment = tuple(sorted([*ids((T0,)), (topic_id("new"), (0,))]))
    stand.give(AskNewerHeartbeat, Beat(0, None, "new-1", 2, 5_000, assignment))
    assert membership(stand).state is MemberState.RECONCILING
    stand.run_for(500, AskRecords, AskMetadata, AskNewerHeartbeat)
    assert stand.has_asked(AskMetadata)
    assert stand.consumer.assignment.partitions == (T0,), "what is known is taken on already"


@pytest.mark.parametrize("error", ERRORS)
def test_every_error_of_a_heartbeat(error: ErrorCode) -> None:
    """Elsewhere, later, from the beginning; or the end."""
    stand = beating()
    stand.give(AskNewerHeartbeat, Beat(error, "because"))
    if error in _ELSEWHERE:
        assert stand.consumer.coordinator is None
        stand.run_for(300, AskRecords, AskNewerHeartbeat)
        assert stand.question(AskNewerHeartbeat).topics == ("t",), "the new one is told everything"
    elif error == _E.COORDINATOR_LOAD_IN_PROGRESS:
        assert not stand.has_asked(AskNewerHeartbeat)
        stand.wait(100)
        assert stand.has_asked(AskNewerHeartbeat)
    elif error in _FENCED:
        assert stand.told(PartitionsLost) == [PartitionsLost((T0, T1))]
        stand.wait(100)
        assert stand.question(AskNewerHeartbeat).epoch == 0
    elif error == _E.TOPIC_AUTHORIZATION_FAILED:
        assert stand.problem().kind is ProblemKind.NOT_AUTHORISED
        assert stand.told(PartitionsLost) == []
        stand.wait(5_000)
        assert stand.has_asked(AskNewerHeartbeat)
    else:
        assert stand.told(PartitionsLost) == [PartitionsLost((T0, T1))]
        assert stand.problem().error == error
        stand.poll()
        assert stand.problem().error == error, "every poll says so"
        stand.run_for(60_000, AskRecords)
        assert not stand.has_asked(AskNewerHeartbeat)


def test_broker_without_the_protocol_is_raised() -> None:
    """Before 4.0 it had to be switched on; older ones know nothing of it."""
    stand = newer()
    stand.reach(AskNewerHeartbeat)
    stand.give(AskNewerHeartbeat, TOO_OLD)
    assert stand.problem().kind is ProblemKind.UNSUPPORTED


def test_lost_answer_makes_the_next_heartbeat_tell_everything() -> None:
    """Nobody knows what the coordinator has heard."""
    stand = beating()
    stand.give(AskNewerHeartbeat, GONE)
    stand.run_for(1_000, AskRecords, AskNewerHeartbeat)
    question = stand.question(AskNewerHeartbeat)
    assert (question.topics, question.owned) == (("t",), ids((T0, T1)))


def test_late_poll_leaves_and_the_next_poll_joins_again() -> None:
    """Epoch −1: its partitions go to others at once."""
    stand = stable(max_poll_interval_ms=12_000)
    stand.end_poll()
    stand.run_for(11_000)
    stand.wait(1_000)
    assert [question.epoch for question in stand.questions(AskNewerHeartbeat)] == [-1]
    assert stand.told(PartitionsLost) == [PartitionsLost((T0, T1))]
    stand.run_for(60_000)
    assert membership(stand).state is MemberState.STALE
    stand.poll()
    assert stand.question(AskNewerHeartbeat).epoch == 0


@pytest.mark.parametrize(("instance", "epoch"), [(None, -1), ("i", -2)])
def test_closing_says_goodbye(instance: str | None, epoch: int) -> None:
    """A static member goes for a while: its partitions wait for it."""
    stand = stable(group_instance_id=instance)
    stand.close()
    assert stand.told(PartitionsRevoked) == [PartitionsRevoked((T0, T1))]
    assert stand.question(AskNewerHeartbeat).epoch == epoch
    stand.run()
    assert stand.told(ConsumerClosed) == [ConsumerClosed()]


def test_held_heartbeats_are_not_sent() -> None:
    """A process that hangs."""
    stand = stable()
    stand._do(stand.consumer.mute_heartbeats(stand.now))
    stand.run_for(60_000, AskRecords)
    assert not stand.has_asked(AskNewerHeartbeat)


def test_coordinator_may_choose_the_member_id() -> None:
    """Version 0 of the request, of Kafka 3.7 to 3.9."""
    stand = newer()
    stand.reach(AskNewerHeartbeat)
    assert stand.question(AskNewerHeartbeat).request(0).member_id == ""
    stand.give(AskNewerHeartbeat, Beat(0, None, "given", 1, 5_000, ids((T0, T1))))
    assert membership(stand).identity.member_id == "given"
