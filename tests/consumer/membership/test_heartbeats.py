"""A member of a classic group: heartbeats, the deadlines behind them, and the end."""

import pytest

from kelpie.consumer.effects import (
    ConsumerClosed,
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
    ProblemKind,
)
from kelpie.consumer.membership.classic import JoinState
from kelpie.consumer.steps import StepKind
from kelpie.errors import ErrorCode
from kelpie.questions.fetch import AskRecords
from kelpie.questions.find_coordinator import AskCoordinator
from kelpie.questions.heartbeat import AskHeartbeat
from kelpie.questions.join_group import AskToJoin
from kelpie.questions.leave_group import AskToLeave
from kelpie.questions.metadata import AskMetadata
from tests.consumer.membership.test_classic import (
    ELSEWHERE,
    ERRORS,
    JOIN_AT_ONCE,
    KINDS,
    beating,
    membership,
    stable,
)
from tests.consumer.stand import Stand
from tests.consumer.world import GONE, T0, T1

_E = ErrorCode


@pytest.mark.parametrize("error", ERRORS)
def test_every_error_of_a_heartbeat(error: ErrorCode) -> None:
    """Most mean: join again. What cannot be mended is raised by the poll that is under way."""
    stand = beating()
    stand.give(AskHeartbeat, error)
    stand.run(AskToJoin, AskRecords)
    if error in ELSEWHERE:
        assert membership(stand).state is JoinState.STABLE
        stand.run_for(200, AskToJoin, AskRecords)
        assert stand.consumer.coordinator is not None
    elif error in JOIN_AT_ONCE:
        rejoin = stand.question(AskToJoin)
        assert rejoin.member_id == ("" if error == _E.UNKNOWN_MEMBER_ID else "m-1")
        assert stand.told(PartitionsRevoked) == (
            [PartitionsRevoked((T0, T1))] if error == _E.REBALANCE_IN_PROGRESS else []
        )
        assert stand.told(PartitionsLost) == (
            [] if error == _E.REBALANCE_IN_PROGRESS else [PartitionsLost((T0, T1))]
        )
    else:
        expected = KINDS.get(error)
        if expected in (ProblemKind.REFUSED, ProblemKind.UNSUPPORTED):
            expected = None  # Heartbeats are not refused for these reasons.
        assert stand.problem().kind is (expected or ProblemKind.UNEXPECTED)


def test_heartbeats_go_on_between_polls() -> None:
    """KIP-62: liveness is not the application's business, until max.poll.interval.ms."""
    stand = stable()
    stand.end_poll()
    stand.run_for(30_000)
    beats = sum(step.times for step in stand.consumer.steps if step.kind is StepKind.HEARTBEAT)
    assert beats == 10


def test_held_heartbeats_are_not_sent() -> None:
    """A process that hangs: the coordinator will drop it, and it does not know."""
    stand = stable()
    stand._do(stand.consumer.mute_heartbeats(stand.now))
    stand.run_for(60_000, AskRecords)
    assert not any(step.kind is StepKind.HEARTBEAT for step in stand.consumer.steps)
    stand._do(stand.consumer.mute_heartbeats(stand.now, muted=False))
    stand.run(AskRecords)
    assert any(step.kind is StepKind.HEARTBEAT for step in stand.consumer.steps)


def test_session_without_an_answer_makes_the_coordinator_unknown() -> None:
    """It may be cut off; then another broker has taken over."""
    stand = beating(session_timeout_ms=10_000, request_timeout_ms=60_000)
    stand.wait(10_000)
    assert stand.has_asked(AskCoordinator) or stand.consumer.coordinator is None


def test_late_poll_makes_the_member_leave() -> None:
    """Whatever the application is doing, the others must not wait for it."""
    stand = stable(max_poll_interval_ms=10_000)
    stand.end_poll()
    stand.run_for(10_000, AskToLeave)
    leave = stand.question(AskToLeave)
    assert (leave.member_id, leave.reason) == ("m-1", "consumer poll timeout has expired.")
    stand.run()
    stand.told(PartitionsAssigned)
    stand.poll()
    assert stand.told(PartitionsLost) == [PartitionsLost((T0, T1))]
    assert stand.question(AskToJoin).member_id == ""
    stand.run(AskRecords)
    assert stand.told(PartitionsAssigned) == [PartitionsAssigned((T0, T1))]


def test_static_member_does_not_leave_when_its_poll_is_late() -> None:
    """It is expected back; its session decides."""
    stand = stable(max_poll_interval_ms=10_000, group_instance_id="i")
    stand.end_poll()
    stand.run_for(11_000)
    assert not any(step.kind is StepKind.LEAVE for step in stand.consumer.steps)
    assert membership(stand).state is JoinState.UNJOINED


def test_fenced_member_is_told_at_every_poll() -> None:
    """Another process has its name: it must not come back and push the other one out."""
    stand = beating(group_instance_id="i")
    stand.give(AskHeartbeat, _E.FENCED_INSTANCE_ID)
    assert stand.problem().kind is ProblemKind.FENCED
    for _ in range(2):
        stand.poll()
        assert stand.problem().kind is ProblemKind.FENCED
    stand.wait(60_000)
    assert not stand.has_asked(AskToJoin)


def test_late_answer_of_an_old_generation_is_ignored() -> None:
    """A heartbeat's refusal may arrive when the member has joined anew."""
    stand = beating()
    old = stand.asked(AskHeartbeat)
    membership(stand).rejoin("rebalance enforced by user")
    stand._do(stand.consumer.woken(stand.now))
    stand.run(AskRecords, AskHeartbeat)
    assert membership(stand).identity.generation == 2
    stand.settle_one(old, _E.UNKNOWN_MEMBER_ID)
    assert membership(stand).identity.generation == 2


# The end.


def test_closing_leaves_the_group() -> None:
    """So that the others need not wait for the session to end."""
    stand = stable()
    stand.close()
    assert stand.told(PartitionsRevoked) == [PartitionsRevoked((T0, T1))]
    assert stand.question(AskToLeave).reason == "the consumer is being closed"
    assert stand.told(ConsumerClosed) == []
    stand.give(AskToLeave, 0)
    assert stand.told(ConsumerClosed) == [ConsumerClosed()]


@pytest.mark.parametrize("answer", [_E.UNKNOWN_MEMBER_ID, GONE])
def test_closing_ends_whatever_the_coordinator_says(answer: object) -> None:
    """A dead coordinator must not keep a consumer alive."""
    stand = stable()
    stand.close()
    stand.give(AskToLeave, answer)
    assert stand.told(ConsumerClosed) == [ConsumerClosed()]


def test_closing_a_static_member_does_not_leave() -> None:
    """KIP-345: a restart must not cause a rebalance."""
    stand = stable(group_instance_id="i")
    stand.close()
    assert not stand.has_asked(AskToLeave)
    assert stand.told(ConsumerClosed) == [ConsumerClosed()]


def test_closing_before_anything_is_known_ends_at_once() -> None:
    """There is nothing to leave."""
    stand = Stand()
    stand.close()
    assert stand.told(ConsumerClosed) == [ConsumerClosed()]
    assert not stand.has_asked(AskMetadata)
