"""How a rebalance fails: as 0.8.2.2 does, and as Kelpie's own consumer recovers from it."""

import pytest

from kelpie.zookeeper.config import Behaviour
from kelpie.zookeeper.effects import PartitionsLost, RebalanceFailure
from kelpie.zookeeper.requests import Delete, Put
from kelpie.zookeeper.steps import (
    AttemptBegan,
    Cause,
    ClaimTrusted,
    CommitRefused,
    Conflict,
    RebalanceFailed,
    RegistrationWaits,
)
from tests.zookeeper.stand import BACKOFF_MS, PATHS, RETRIES, SESSION_MS, Seat, Stand, partition

FAITHFUL, RECOVERING = Behaviour.FAITHFUL, Behaviour.RECOVERING


def failing(behaviour: Behaviour) -> tuple[Stand, Seat]:
    """Consumer z is dead and still registered; b joins, and so c gets a partition that z's node holds."""
    stand = Stand()
    stand.other_member("z")
    stand.other_owner(2, "z-0")
    stand.other_owner(3, "z-0")
    seat = stand.consumer(behaviour).start()
    assert sorted(seat.reading) == [partition(0), partition(1)]
    stand.other_member("b", stand.kafka)
    return stand, seat


def test_a_failure_in_the_watcher_of_0_8_dies_silently() -> None:
    """Registered, owning nothing, and nobody is told: the fault that the document describes."""
    stand, seat = failing(FAITHFUL)
    stand.advance(60_000)
    assert seat.reading == {}
    assert stand.tree.get(PATHS.member("c")) is not None
    assert stand.tree.get(PATHS.owner(partition(0))) is None
    assert not [event for event in seat.told if isinstance(event, RebalanceFailure)]
    assert seat.steps(RebalanceFailed) == [RebalanceFailed(Cause.MEMBERS, RETRIES, is_told=False)]
    assert len(seat.steps(Conflict)) == RETRIES


def test_the_last_back_off_of_0_8_is_followed_by_nothing() -> None:
    """So (retries − 1) × back-off counts, and not retries × back-off."""
    stand, seat = failing(FAITHFUL)
    attempts = len(seat.steps(AttemptBegan))
    stand.advance((RETRIES - 1) * BACKOFF_MS)
    assert len(seat.steps(AttemptBegan)) == attempts + RETRIES - 1
    assert not seat.steps(RebalanceFailed)
    stand.change(Delete(PATHS.owner(partition(2))))  # Too late: nothing is in the way any more.
    stand.advance(60_000)
    assert seat.steps(RebalanceFailed)
    assert seat.reading == {}


def test_any_change_of_the_group_heals_0_8() -> None:
    """The dead member's registration vanishes with its owner node."""
    stand, seat = failing(FAITHFUL)
    stand.advance(60_000)
    stand.end_session(stand.others)
    assert sorted(seat.reading) == [partition(2), partition(3)]


def test_a_failure_at_the_start_of_0_8_is_raised() -> None:
    """createMessageStreams throws, and an application that closes is gone from the group."""
    stand = Stand()
    stand.other_member("a")
    stand.other_owner(3, "a-0")
    seat = stand.consumer(FAITHFUL).start()
    stand.advance(RETRIES * BACKOFF_MS)
    (event,) = seat.told
    assert isinstance(event, RebalanceFailure)
    assert (event.message, event.recovers_in_ms) == (f"c can't rebalance after {RETRIES} retries", None)
    seat.close()
    assert stand.tree.get(PATHS.member("c")) is None


def test_an_application_of_0_8_that_goes_on_becomes_a_zombie() -> None:
    """It did not get its streams, but its connector claims partitions at the next change."""
    stand = Stand()
    stand.other_member("a")
    stand.other_owner(3, "a-0")
    stand.consumer(FAITHFUL).start()
    stand.advance(RETRIES * BACKOFF_MS)
    stand.end_session(stand.others)
    assert stand.tree.get(PATHS.owner(partition(3))) is not None


def test_a_new_session_of_0_8_that_cannot_rebalance_dies_in_the_event_thread() -> None:
    """As recorded of orders-d-fail: one failure by the new session, then two by the watcher."""
    stand = Stand()
    seat = stand.consumer(FAITHFUL).start()
    seat.expire()
    stand.other_member("a")
    stand.other_owner(3, "a-0")
    seat.connect()
    stand.advance(60_000)
    causes = [step.cause for step in seat.steps(RebalanceFailed) if isinstance(step, RebalanceFailed)]
    assert causes == [Cause.SESSION, Cause.MEMBERS, Cause.PARTITIONS]
    assert seat.reading == {}
    assert not [event for event in seat.told if isinstance(event, RebalanceFailure)]


def stale_owner(behaviour: Behaviour) -> tuple[Stand, Seat, int]:
    """Consumer c in a new session, while ZooKeeper has not yet removed the nodes of the one before."""
    stand = Stand()
    seat = stand.consumer(behaviour).start()
    old = seat.session
    stand.tree.carry_out(old, Delete(PATHS.member("c")))
    stand.tree.take_fired()
    seat.disconnect()
    seat.connect()
    return stand, seat, old


def test_0_8_trusts_an_owner_node_of_its_own_expired_session() -> None:
    """The name is its own, so it counts as claimed, though ZooKeeper is about to remove the node."""
    _, seat, _ = stale_owner(FAITHFUL)
    assert len(seat.reading) == 4
    trusted = [step for step in seat.steps(ClaimTrusted) if isinstance(step, ClaimTrusted)]
    assert trusted
    assert not trusted[0].is_own_session


def test_recovering_waits_until_the_owner_node_of_its_own_expired_session_is_gone() -> None:
    """It reads nothing that another consumer could claim a moment later."""
    stand, seat, old = stale_owner(RECOVERING)
    stand.advance(200)
    assert seat.reading == {}
    conflict = seat.steps(Conflict)[0]
    assert isinstance(conflict, Conflict)
    assert conflict.is_own_stale
    stand.end_session(old)
    assert len(seat.reading) == 4
    owner = stand.tree.get(PATHS.owner(partition(0)))
    assert owner is not None
    assert owner.session == seat.session


@pytest.mark.parametrize("behaviour", list(Behaviour))
def test_a_registration_of_an_expired_session_is_waited_out(behaviour: Behaviour) -> None:
    """Both do; 0.8 looks again after a whole session, recovering after a back-off."""
    stand = Stand()
    seat = stand.consumer(behaviour).start()
    old = seat.session
    seat.disconnect()
    seat.connect()
    assert seat.steps(RegistrationWaits)
    stand.end_session(old)
    stand.advance(SESSION_MS)
    node = stand.tree.get(PATHS.member("c"))
    assert node is not None
    assert node.session == seat.session
    assert len(seat.reading) == 4


def test_recovering_tells_the_failure_and_comes_back_by_itself() -> None:
    """No change of the group is needed: it tries again after a back-off."""
    stand, seat = failing(RECOVERING)
    stand.advance(RETRIES * BACKOFF_MS)
    failures = [event for event in seat.told if isinstance(event, RebalanceFailure)]
    assert failures
    assert failures[0].recovers_in_ms is not None
    stand.tree.carry_out(stand.others, Delete(PATHS.owner(partition(2))))
    stand.tree.take_fired()  # Even if no watch tells it.
    stand.advance(5_000)
    assert sorted(seat.reading) == [partition(2)]


def test_the_back_off_of_recovering_grows_and_has_jitter() -> None:
    """A group of many must not come back in one moment, again and again."""
    stand, seat = failing(RECOVERING)
    stand.advance(120_000)
    waits = [event.recovers_in_ms for event in seat.told if isinstance(event, RebalanceFailure)]
    assert waits[:4] == [1_000, 2_000, 4_000, 8_000]
    assert waits[-1] == 30_000


def test_recovering_goes_on_as_soon_as_the_node_in_the_way_is_deleted() -> None:
    """It watches the node: no need to sleep the back-off out."""
    stand, seat = failing(RECOVERING)
    stand.advance(BACKOFF_MS // 5)
    assert seat.reading == {}
    stand.change(Delete(PATHS.owner(partition(2))))
    assert sorted(seat.reading) == [partition(2)]


def test_recovering_loses_its_partitions_with_the_session_and_takes_them_again() -> None:
    """The application is told, and reading stops at once."""
    stand = Stand()
    seat = stand.consumer(RECOVERING).start()
    seat.expire()
    assert seat.reading == {}
    assert seat.told[-1] == PartitionsLost(tuple(partition(number) for number in range(4)))
    seat.connect()
    assert len(seat.reading) == 4


def test_recovering_stops_reading_before_its_session_can_have_expired() -> None:
    """A third of the session is left when a client notices the silence."""
    stand = Stand()
    seat = stand.consumer(RECOVERING).start()
    seat.disconnect()
    stand.advance(SESSION_MS // 3 - 1)
    assert len(seat.reading) == 4
    stand.advance(1)
    assert seat.reading == {}
    seat.connect(seat.session)
    assert len(seat.reading) == 4


def test_recovering_survives_minutes_without_zookeeper() -> None:
    """The session expires while ZooKeeper cannot be asked."""
    stand = Stand()
    seat = stand.consumer(RECOVERING).start()
    seat.consume(1, 4)
    seat.disconnect()
    stand.advance(300_000)
    stand.end_session(seat.session)
    seat.do(seat.machine.session_expired(stand.now))
    seat.connect()
    assert len(seat.reading) == 4


def test_recovering_registers_again_when_its_registration_was_deleted() -> None:
    """By an operator, for example: the deletion is a change of the group."""
    stand = Stand()
    seat = stand.consumer(RECOVERING).start()
    stand.change(Delete(PATHS.member("c")))
    assert stand.tree.get(PATHS.member("c")) is not None
    assert len(seat.reading) == 4


def test_recovering_never_commits_an_older_offset() -> None:
    """Another consumer has committed since: the greater offset stays, and a later one follows it."""
    stand = Stand(partitions=1)
    seat = stand.consumer(RECOVERING).start()
    seat.consume(0, 5)
    seat.do(seat.machine.commit(stand.now))
    stand.change(Put(PATHS.offset(partition(0)), b"50"))
    seat.consume(0, 7)
    seat.do(seat.machine.commit(stand.now))
    node = stand.tree.get(PATHS.offset(partition(0)))
    assert node is not None
    assert node.value == b"50"
    assert seat.steps(CommitRefused)
    seat.consume(0, 60)
    seat.do(seat.machine.commit(stand.now))
    node = stand.tree.get(PATHS.offset(partition(0)))
    assert node is not None
    assert node.value == b"60"


@pytest.mark.parametrize("behaviour", list(Behaviour))
def test_closing_during_a_back_off_ends_the_session(behaviour: Behaviour) -> None:
    """0.8 sleeps its back-off out first; recovering ends at once."""
    stand, seat = failing(behaviour)
    seat.close()
    assert seat.is_ended is (behaviour is RECOVERING)
    stand.advance(BACKOFF_MS)
    assert seat.is_ended
    assert stand.tree.get(PATHS.member("c")) is None
