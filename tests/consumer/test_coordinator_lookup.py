"""How a consumer finds its coordinator, and what follows from each answer."""

from itertools import pairwise

import pytest

from kelpie.consumer.effects import Failure, FailureKind, ProblemKind
from kelpie.consumer.steps import StepKind
from kelpie.errors import ErrorCode, info
from kelpie.questions.find_coordinator import AskCoordinator, FoundCoordinator
from kelpie.questions.join_group import AskToJoin
from kelpie.questions.metadata import AskMetadata
from tests.consumer.stand import Stand
from tests.consumer.world import GONE, LATE

ERRORS = [code for code in ErrorCode if code != ErrorCode.NONE]
_RETRIABLE = [code for code in ERRORS if info(code).retriable]
_FATAL = [code for code in ERRORS if not info(code).retriable]


@pytest.mark.parametrize("error", _RETRIABLE)
def test_retriable_error_is_asked_again_after_the_back_off(error: int) -> None:
    """15 above all: the partition may get a leader any moment, and nobody tells the consumer."""
    stand = Stand(retry_backoff_ms=100)
    stand.reach(AskCoordinator)
    stand.give(AskCoordinator, FoundCoordinator(error))
    assert not stand.has_asked(AskCoordinator)
    stand.wait(99)
    assert not stand.has_asked(AskCoordinator)
    stand.wait(1)
    assert stand.has_asked(AskCoordinator)
    assert stand.has_asked(AskMetadata), "what the consumer knows of the cluster may be old"


@pytest.mark.parametrize("error", _FATAL)
def test_other_errors_are_raised_by_poll(error: int) -> None:
    """No waiting helps against a missing permission; and poll tries again when it is called again."""
    stand = Stand()
    stand.reach(AskCoordinator)
    stand.give(AskCoordinator, FoundCoordinator(error))
    problem = stand.problem()
    assert problem.error == error
    assert (problem.kind is ProblemKind.NOT_AUTHORISED) == (error == ErrorCode.GROUP_AUTHORIZATION_FAILED)
    stand.wait(5_000)
    assert not stand.has_asked(AskCoordinator)
    stand.poll()
    assert stand.has_asked(AskCoordinator)


def test_back_off_doubles_up_to_its_limit() -> None:
    """A cluster in trouble must not be asked by every consumer as fast as it can."""
    stand = Stand(retry_backoff_ms=100, retry_backoff_max_ms=1000)
    stand.reach(AskCoordinator)
    asked_at = [stand.now]
    for _ in range(6):
        stand.give(AskCoordinator, FoundCoordinator(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        while not stand.has_asked(AskCoordinator):
            stand.run(AskCoordinator)
            assert stand.wake_at is not None
            stand.wait(stand.wake_at - stand.now)
        asked_at.append(stand.now)
    waits = [later - earlier for earlier, later in pairwise(asked_at)]
    assert waits == [100, 200, 400, 800, 1000, 1000]


def test_coordinator_gets_a_connection_of_its_own() -> None:
    """A heartbeat must not wait behind a fetch, even when one broker serves both."""
    stand = Stand()
    stand.world.coordinator = 1
    join = stand.reach(AskToJoin)
    assert join.node.for_group
    assert (join.node.node_id, join.node.host) == (1, "one")


@pytest.mark.parametrize("failure", [GONE, LATE, Failure(FailureKind.UNREACHABLE, "refused")])
def test_broker_that_does_not_answer_is_replaced_by_another(failure: Failure) -> None:
    """Any broker can tell; one that has just failed is left alone for a while."""
    stand = Stand(reconnect_backoff_ms=1_000)
    stand.reach(AskCoordinator)
    stand.run(AskCoordinator)  # Metadata: brokers 1 and 2 are known.
    first = stand.asked(AskCoordinator).node
    stand.give(AskCoordinator, failure)
    stand.wait(100)
    assert stand.asked(AskCoordinator).node != first


def test_coordinator_that_cannot_be_reached_is_forgotten_and_looked_for_again() -> None:
    """Until the controller has noticed, brokers still name the dead one."""
    stand = Stand()
    stand.reach(AskToJoin)
    stand.give(AskToJoin, GONE)
    assert stand.consumer.coordinator is None
    stand.wait(1_000)
    assert stand.has_asked(AskCoordinator)
    stand.world.coordinator = 1
    stand.run(AskToJoin)
    stand.wait(1_000)
    assert stand.asked(AskToJoin).node.node_id == 1


def test_lookup_leaves_steps_that_say_what_is_needed() -> None:
    """The step that fails must say why, and what the answer would have to be."""
    stand = Stand(retry_backoff_max_ms=100)
    stand.world.instead[AskCoordinator] = [FoundCoordinator(15)] * 5
    stand.reach(AskCoordinator)
    stand.run_for(550, AskToJoin)
    steps = [step for step in stand.consumer.steps if step.kind is StepKind.LOOKUP]
    (failed,) = {step.answer for step in steps if step.failed}
    assert failed == "15 COORDINATOR_NOT_AVAILABLE"
    assert sum(step.times for step in steps if step.failed) == 5
    assert all("__consumer_offsets" in step.needed for step in steps if step.failed)
    assert not steps[-1].failed
    assert steps[-1].request == "FindCoordinator(g)"
