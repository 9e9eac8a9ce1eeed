"""A member of a classic group: join, sync, heartbeat, leave; every error that may come back."""

from typing import Any

import pytest

from kelpie.assignors import subscription
from kelpie.consumer.effects import PartitionsAssigned, PartitionsLost, PartitionsRevoked, ProblemKind
from kelpie.consumer.membership.classic import ClassicMembership, JoinState
from kelpie.consumer.steps import StepKind
from kelpie.errors import ErrorCode
from kelpie.questions.fetch import AskRecords
from kelpie.questions.heartbeat import AskHeartbeat
from kelpie.questions.join_group import AskToJoin, Joined, JoinedMember
from kelpie.questions.sync_group import AskForAssignment, Synced
from kelpie.wire.consumer_protocol import partitions_in
from tests.consumer.stand import Stand
from tests.consumer.world import GONE, T0, T1, T2, TOO_OLD, World

_E = ErrorCode
ERRORS = [code for code in ErrorCode if code != _E.NONE]
ELSEWHERE = {_E.COORDINATOR_NOT_AVAILABLE, _E.NOT_COORDINATOR}
_JOIN_LATER = ELSEWHERE | {_E.COORDINATOR_LOAD_IN_PROGRESS}
JOIN_AT_ONCE = {_E.UNKNOWN_MEMBER_ID, _E.ILLEGAL_GENERATION, _E.REBALANCE_IN_PROGRESS}
KINDS = {
    _E.GROUP_AUTHORIZATION_FAILED: ProblemKind.NOT_AUTHORISED,
    _E.FENCED_INSTANCE_ID: ProblemKind.FENCED,
    _E.INCONSISTENT_GROUP_PROTOCOL: ProblemKind.REFUSED,
    _E.INVALID_GROUP_ID: ProblemKind.REFUSED,
    _E.INVALID_SESSION_TIMEOUT: ProblemKind.REFUSED,
    _E.GROUP_MAX_SIZE_REACHED: ProblemKind.REFUSED,
    _E.UNSUPPORTED_VERSION: ProblemKind.UNSUPPORTED,
}


def membership(stand: Stand) -> ClassicMembership:
    own = stand.consumer.membership
    assert isinstance(own, ClassicMembership)
    return own


def stable(**config: Any) -> Stand:
    """A consumer that has joined, and fetches."""
    stand = Stand(**config)
    stand.reach(AskRecords)
    stand.told(PartitionsAssigned)
    assert membership(stand).state is JoinState.STABLE
    return stand


def beating(**config: Any) -> Stand:
    """The same, with a heartbeat on its way."""
    stand = stable(**config)
    stand.wait(3_000)
    assert stand.has_asked(AskHeartbeat)
    return stand


# Joining.


def test_first_join_takes_the_id_that_it_is_given() -> None:
    """KIP-394: the coordinator gives an id first, so that a lost answer leaves no phantom member."""
    stand = Stand()
    stand.reach(AskToJoin)
    assert stand.question(AskToJoin).member_id == ""
    stand.give(AskToJoin, Joined(_E.MEMBER_ID_REQUIRED, member_id="m-7"))
    assert stand.question(AskToJoin).member_id == "m-7"
    (step,) = [step for step in stand.consumer.steps if step.kind is StepKind.JOIN]
    assert not step.failed


def test_leader_shares_out_for_everyone() -> None:
    """The coordinator only passes the assignment on."""
    world = World(topics={"t": 3})
    world.others = (JoinedMember("other", None, subscription("range", ["t"], [], -1)),)
    stand = Stand(world)
    stand.reach(AskForAssignment)
    assignments = stand.question(AskForAssignment).assignments
    handed = {member_id: partitions_in(blob) for member_id, blob in assignments}
    assert handed == {"m-1": [T0, T1], "other": [T2]}
    stand.run(AskRecords)
    assert stand.told(PartitionsAssigned) == [PartitionsAssigned((T0, T1))]


def test_leader_learns_of_topics_that_only_others_read() -> None:
    """It must know how many partitions they have before it can share them out."""
    world = World(topics={"t": 1, "u": 2})
    world.others = (JoinedMember("other", None, subscription("range", ["u"], [], -1)),)
    stand = Stand(world)
    stand.poll()
    stand.run_for(1_000, AskForAssignment)
    handed = {
        member_id: partitions_in(blob) for member_id, blob in stand.question(AskForAssignment).assignments
    }
    assert [str(partition) for partition in handed["other"]] == ["u-0", "u-1"]


def test_leader_gives_nothing_to_a_member_that_cannot_be_understood() -> None:
    """One broken client must not stop the group."""
    world = World()
    world.others = (JoinedMember("other", None, b"\xff"),)
    stand = Stand(world)
    stand.reach(AskForAssignment)
    assert dict(stand.question(AskForAssignment).assignments).keys() == {"m-1", "other"}
    stand.run(AskRecords)
    assert stand.told(PartitionsAssigned) == [PartitionsAssigned((T0, T1))]


def test_leader_notices_new_partitions() -> None:
    """Nobody else does: the coordinator knows nothing of topics in the classic protocol."""
    stand = stable(metadata_max_age_ms=10_000)
    stand.world.topics["t"] = 3
    stand.run_for(11_000, AskRecords, AskToJoin)
    assert stand.question(AskToJoin).reason == "topics of the group have changed"


def test_static_leader_that_returns_lets_the_assignment_stand() -> None:
    """KIP-814: it leads, and must not assign anew."""
    stand = Stand(group_instance_id="i")
    stand.reach(AskToJoin)
    mine = (JoinedMember("m", "i", subscription("range", ["t"], [], -1)),)
    stand.give(AskToJoin, Joined(0, 4, "consumer", "range", "m", "m", mine, skip_assignment=True))
    assert stand.question(AskForAssignment).assignments == ()


@pytest.mark.parametrize("error", ERRORS)
def test_every_error_of_a_join(error: ErrorCode) -> None:
    """Join again at once, later, elsewhere; or poll raises it."""
    stand = Stand(retry_backoff_ms=100)
    stand.reach(AskToJoin)
    stand.give(AskToJoin, Joined(error, member_id="given"))
    stand.run(AskToJoin)
    if error in JOIN_AT_ONCE or error == _E.MEMBER_ID_REQUIRED:
        assert stand.has_asked(AskToJoin)
    elif error in _JOIN_LATER:
        assert not stand.has_asked(AskToJoin)
        assert (stand.consumer.coordinator is None) == (error in ELSEWHERE)
        stand.run_for(200, AskToJoin)
        assert stand.has_asked(AskToJoin)
    else:
        problem = stand.problem()
        assert (problem.kind, problem.error) == (KINDS.get(error, ProblemKind.UNEXPECTED), error)
        assert stand.last_step.failed
        assert stand.last_step.needed
        assert not stand.has_asked(AskToJoin)


@pytest.mark.parametrize("error", ERRORS)
def test_every_error_of_a_sync(error: ErrorCode) -> None:
    """The same; here the member id and the generation may be lost."""
    stand = Stand(retry_backoff_ms=100)
    stand.reach(AskForAssignment)
    stand.give(AskForAssignment, Synced(error))
    stand.run(AskToJoin)
    if error in _JOIN_LATER:
        assert not stand.has_asked(AskToJoin)
        stand.run_for(200, AskToJoin)
    if error in JOIN_AT_ONCE | _JOIN_LATER:
        rejoin = stand.question(AskToJoin)
        assert rejoin.member_id == ("" if error == _E.UNKNOWN_MEMBER_ID else "m-1")
        dropped = error in (_E.UNKNOWN_MEMBER_ID, _E.ILLEGAL_GENERATION)
        assert (membership(stand).identity.generation == -1) == dropped
    else:
        assert stand.problem().kind is KINDS.get(error, ProblemKind.UNEXPECTED)


def test_join_that_is_never_answered_is_tried_elsewhere() -> None:
    """The connection broke: the coordinator may have moved."""
    stand = Stand()
    stand.reach(AskToJoin)
    stand.give(AskToJoin, GONE)
    stand.run_for(500, AskToJoin)
    assert stand.has_asked(AskToJoin)


def test_join_may_take_as_long_as_others_may_take_to_poll() -> None:
    """The coordinator answers when all members have come, not before."""
    stand = Stand(max_poll_interval_ms=600_000)
    assert stand.reach(AskToJoin).timeout_ms == 605_000


def test_refusals_without_end_are_slowed_down() -> None:
    """Join again at once, and again, and again: a coordinator gone mad must not be flooded."""
    stand = Stand()
    stand.reach(AskToJoin)
    for _ in range(3):
        stand.give(AskToJoin, Joined(_E.UNKNOWN_MEMBER_ID))
        assert stand.has_asked(AskToJoin)
    stand.give(AskToJoin, Joined(_E.UNKNOWN_MEMBER_ID))
    assert not stand.has_asked(AskToJoin)


def test_static_membership_on_a_broker_that_is_too_old_is_raised() -> None:
    """A static member that silently became a dynamic one would be a trap."""
    stand = Stand(group_instance_id="i")
    stand.reach(AskToJoin)
    assert stand.question(AskToJoin).oldest == 5
    stand.give(AskToJoin, TOO_OLD)
    assert stand.problem().kind is ProblemKind.UNSUPPORTED


def test_group_of_another_kind_is_not_joined() -> None:
    """A connect cluster uses the same API."""
    stand = Stand()
    stand.reach(AskToJoin)
    stand.give(AskToJoin, Joined(0, 1, "connect", "sessioned", "m", "m"))
    assert stand.problem().kind is ProblemKind.REFUSED


# Rebalances.


def test_eager_member_gives_everything_up_before_it_joins() -> None:
    """Its partitions are revoked, and fetched no more, from then on until it has joined."""
    stand = beating()
    stand.give(AskHeartbeat, _E.REBALANCE_IN_PROGRESS)
    assert stand.told(PartitionsRevoked) == [PartitionsRevoked((T0, T1))]
    assert stand.has_asked(AskToJoin)
    assert stand.consumer.assignment.partitions == ()


def test_cooperative_member_goes_on_while_it_joins() -> None:
    """KIP-429: only what it must give up stops."""
    stand = beating(assignors=("cooperative-sticky",))
    stand.give(AskHeartbeat, _E.REBALANCE_IN_PROGRESS)
    assert stand.has_asked(AskToJoin)
    assert stand.told(PartitionsRevoked) == []
    stand.run(AskToJoin)
    assert [record.offset for record in stand.records()] == [0, 1, 2, 0, 1, 2], "records come all the same"


def test_cooperative_member_gives_up_what_it_lost_and_joins_again() -> None:
    """So that the new owner gets it in a second rebalance."""
    stand = beating(assignors=("cooperative-sticky",))
    stand.world.leads, stand.world.granted = False, (T0,)
    stand.give(AskHeartbeat, _E.REBALANCE_IN_PROGRESS)
    stand.run(AskRecords)
    assert stand.told(PartitionsRevoked) == [PartitionsRevoked((T1,))]
    assert stand.told(PartitionsAssigned) == [PartitionsAssigned(()), PartitionsAssigned(())]
    joins = [
        step for step in stand.consumer.steps if step.kind is StepKind.JOIN and "generation" in step.answer
    ]
    assert [step.answer.split(",")[0] for step in joins] == ["generation 1", "generation 2", "generation 3"]


def test_position_survives_a_cooperative_rebalance() -> None:
    """What was kept is not asked for again."""
    stand = beating(assignors=("cooperative-sticky",))
    stand.run()
    before = stand.consumer.assignment.positions()
    assert before[T0].offset > 0
    stand.poll()
    stand.wait(3_000)
    stand.give(AskHeartbeat, _E.REBALANCE_IN_PROGRESS)
    stand.run(AskRecords)
    assert stand.consumer.assignment.positions()[T0].offset >= before[T0].offset


def test_cooperative_member_that_was_dropped_loses_everything() -> None:
    """Another may have its partitions by now: going on would read records twice."""
    stand = beating(assignors=("cooperative-sticky",))
    stand.give(AskHeartbeat, _E.UNKNOWN_MEMBER_ID)
    assert stand.told(PartitionsLost) == [PartitionsLost((T0, T1))]
    assert stand.consumer.assignment.partitions == ()


def test_sticky_member_remembers_what_it_had() -> None:
    """It gives everything up, and asks for the same again, in its user data."""
    stand = beating(assignors=("sticky",))
    stand.give(AskHeartbeat, _E.REBALANCE_IN_PROGRESS)
    ((name, blob),) = stand.question(AskToJoin).protocols
    assert blob == subscription(name, ["t"], [], 1, [T0, T1], remembered_in=1)


def test_assignment_waits_for_a_poll() -> None:
    """The application hears of partitions in polls only."""
    stand = Stand()
    stand.reach(AskForAssignment)
    stand.end_poll()
    stand.run()
    assert stand.told(PartitionsAssigned) == []
    stand.poll()
    assert stand.told(PartitionsAssigned) == [PartitionsAssigned((T0, T1))]


def test_application_that_does_not_poll_does_not_rejoin() -> None:
    """The group waits for it: that is how one slow consumer stops them all."""
    stand = beating()
    stand.end_poll()
    stand.give(AskHeartbeat, _E.REBALANCE_IN_PROGRESS)
    stand.run_for(10_000, AskRecords)
    assert not stand.has_asked(AskToJoin)
    assert [step.times for step in stand.consumer.steps if step.kind is StepKind.HEARTBEAT][-1] >= 2
    stand.poll()
    assert stand.has_asked(AskToJoin)
