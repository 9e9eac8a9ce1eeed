"""What a consumer does from its start to its end: both behaviours do the same while nothing fails."""

import pytest

from kelpie.zookeeper.config import Behaviour
from kelpie.zookeeper.effects import PartitionsOwned, PartitionsReleased
from kelpie.zookeeper.requests import CreateEphemeral, Delete, Put, Read
from kelpie.zookeeper.steps import (
    AttemptBegan,
    AttemptEnded,
    Cause,
    Claimed,
    FetchersStopped,
    NoBrokers,
    OffsetsCommitted,
    OffsetsRead,
    OwnersReleased,
    TopicAssigned,
)
from tests.zookeeper.stand import PATHS, Stand, partition

FAITHFUL, RECOVERING = Behaviour.FAITHFUL, Behaviour.RECOVERING
both = pytest.mark.parametrize("behaviour", list(Behaviour))


@both
def test_a_lonely_consumer_takes_every_partition(behaviour: Behaviour) -> None:
    """Registered, one owner node per partition with the thread's name, and reading."""
    stand = Stand()
    seat = stand.consumer(behaviour).start()
    assert sorted(seat.reading) == [partition(number) for number in range(4)]
    owner = stand.tree.get(PATHS.owner(partition(2)))
    assert owner is not None
    assert (owner.value, owner.session) == (b"c-0", seat.session)
    assert stand.tree.get(PATHS.member("c")) is not None
    assert seat.told == [PartitionsOwned(tuple(partition(number) for number in range(4)))]


def test_the_steps_of_an_attempt_come_in_the_order_of_0_8() -> None:
    """Fetchers stop and offsets are committed before the release; offsets are read before the claim."""
    stand = Stand(partitions=2)
    seat = stand.consumer(FAITHFUL).start()
    seat.consume(0, 5)
    before = seat.machine.history.count
    stand.other_member("a")
    kinds = [type(recorded.step) for recorded in seat.machine.history.since(before)]
    assert [kind for kind in kinds if kind.__name__ != "Triggered"] == [
        AttemptBegan,
        FetchersStopped,
        OffsetsCommitted,
        OwnersReleased,
        TopicAssigned,
        OffsetsRead,
        Claimed,
        AttemptEnded,
    ]
    releases = seat.asked.index(Delete(PATHS.owner(partition(0))))
    assert seat.asked.index(Put(PATHS.offset(partition(0)), b"5")) < releases
    claim = CreateEphemeral(PATHS.owner(partition(1)), b"c-0")
    last_claim = len(seat.asked) - 1 - seat.asked[::-1].index(claim)
    assert Read(PATHS.offset(partition(1))) in seat.asked[releases:last_claim]


def test_recovering_reads_offsets_after_the_claim() -> None:
    """Before it, the last owner may still commit: what was read would be too old."""
    stand = Stand(partitions=1)
    seat = stand.consumer(RECOVERING).start()
    claim = CreateEphemeral(PATHS.owner(partition(0)), b"c-0")
    assert seat.asked.index(claim) < seat.asked.index(Read(PATHS.offset(partition(0))))


@both
def test_two_consumers_share_and_the_second_takes_over(behaviour: Behaviour) -> None:
    """A join and a clean leave; committed offsets pass from one to the other."""
    stand = Stand()
    first = stand.consumer(behaviour, "a").start()
    first.consume(3, 17)
    second = stand.consumer(behaviour, "b").start()
    stand.advance(2_000)
    assert sorted(first.reading) == [partition(0), partition(1)]
    assert second.reading == {partition(2): -1, partition(3): 17}
    assert any(isinstance(event, PartitionsReleased) for event in first.told)
    second.consume(3, 20)
    second.close()
    assert second.is_ended
    assert first.reading[partition(3)] == 20
    assert sorted(first.reading) == [partition(number) for number in range(4)]


@both
def test_threads_of_one_consumer_own_their_partitions_each(behaviour: Behaviour) -> None:
    """The owner node names the thread, not only the consumer."""
    stand = Stand()
    stand.consumer(behaviour, threads=3).start()
    owners = [stand.tree.get(PATHS.owner(partition(number))) for number in range(4)]
    assert [owner.value for owner in owners if owner] == [b"c-0", b"c-0", b"c-1", b"c-2"]


@both
def test_without_brokers_it_waits_for_one(behaviour: Behaviour) -> None:
    """No broker is a success that owns nothing; the first broker triggers a rebalance."""
    stand = Stand(has_broker=False)
    seat = stand.consumer(behaviour).start()
    assert seat.reading == {}
    assert seat.steps(NoBrokers)
    stand.add_broker()
    assert len(seat.reading) == 4
    assert [step.cause for step in seat.steps(AttemptBegan) if isinstance(step, AttemptBegan)][
        -1
    ] is Cause.BROKERS


@both
def test_new_partitions_of_a_topic_trigger_a_rebalance(behaviour: Behaviour) -> None:
    """The topic's node is watched again after each change."""
    stand = Stand(partitions=1)
    seat = stand.consumer(behaviour).start()
    for number in (2, 3):
        stand.set_partitions("t", number)
        assert len(seat.reading) == number


@both
def test_a_pattern_takes_up_topics_that_are_created_later(behaviour: Behaviour) -> None:
    """The fourth trigger, for white lists only; topics that do not match change nothing."""
    stand = Stand(partitions=1)
    seat = stand.consumer(behaviour, pattern="t|u.*").start()
    stand.set_partitions("x", 1)
    assert sorted(seat.reading) == [partition(0)]
    stand.set_partitions("u-1", 2)
    assert sorted(seat.reading) == [partition(0), partition(0, "u-1"), partition(1, "u-1")]
    stand.set_partitions("u-1", 3)
    assert partition(2, "u-1") in seat.reading


@both
def test_changes_during_a_rebalance_are_gathered_into_one_more(behaviour: Behaviour) -> None:
    """The watcher's flag: ten changes do not make ten rebalances."""
    stand = Stand()
    seat = stand.consumer(behaviour).start()
    seat.held = []
    before = len(seat.steps(AttemptBegan))
    for number in range(10):
        stand.other_member(f"m{number}")
    seat.release_held()
    stand.advance(10)
    assert 1 <= len(seat.steps(AttemptBegan)) - before <= 3


@both
def test_offsets_are_committed_regularly_and_only_when_new(behaviour: Behaviour) -> None:
    """auto.commit.interval.ms is 60 s by default."""
    stand = Stand(partitions=2)
    seat = stand.consumer(behaviour).start()
    seat.consume(1, 7)
    stand.advance(60_000)
    node = stand.tree.get(PATHS.offset(partition(1)))
    assert node is not None
    assert node.value == b"7"
    stand.advance(120_000)
    assert stand.tree.get(PATHS.offset(partition(1))) == node
    assert stand.tree.get(PATHS.offset(partition(0))) is None


@both
def test_without_auto_commit_offsets_are_committed_on_demand(behaviour: Behaviour) -> None:
    """Neither a rebalance nor the end commits then."""
    stand = Stand(partitions=1)
    seat = stand.consumer(behaviour, auto_commit=False).start()
    seat.consume(0, 3)
    seat.do(seat.machine.commit(stand.now))
    seat.consume(0, 9)
    seat.close()
    node = stand.tree.get(PATHS.offset(partition(0)))
    assert node is not None
    assert node.value == b"3"


@both
def test_a_request_whose_answer_was_lost_is_asked_again(behaviour: Behaviour) -> None:
    """The owner nodes may have been created before the connection broke: they are its own, and count."""
    stand = Stand(partitions=2)
    seat = stand.consumer(behaviour)
    seat.held = []
    seat.start()
    while not any(
        isinstance(request, CreateEphemeral) and "owners" in request.path for request in seat.asked
    ):
        held, seat.held = seat.held, []
        for ask in held:
            is_claim = any("owners" in request.path for request in ask.requests)
            answers = tuple(stand.tree.carry_out(seat.session, request) for request in ask.requests)
            seat.asked += ask.requests
            if not is_claim:
                seat.do(seat.machine.answered(ask.token, answers, stand.now))
    seat.held = None
    seat.disconnect()
    seat.connect(seat.session)
    assert len(seat.reading) == 2
