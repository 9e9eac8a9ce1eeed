"""Whatever happens, and in whatever order, the consumer keeps its promises.

`Stand` looks after each event: it never fetches what it does not own, never has two lookups under way, is
never woken in the past, and is silent after its end. Here everything that can come back does, at random.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kelpie.consumer.config import GroupProtocol
from kelpie.consumer.effects import (
    ConsumerClosed,
    Failure,
    FailureKind,
    PartitionsLost,
    PartitionsRevoked,
    RecordsDelivered,
)
from kelpie.consumer.membership.classic import ClassicMembership
from kelpie.consumer.positions.reset_policy import EARLIEST, LATEST, NONE
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.questions.consumer_group_heartbeat import AskNewerHeartbeat, Beat
from kelpie.questions.fetch import AskRecords, FetchAnswer, FetchedPartition
from kelpie.questions.find_coordinator import AskCoordinator, FoundCoordinator
from kelpie.questions.heartbeat import AskHeartbeat
from kelpie.questions.join_group import AskToJoin, Joined
from kelpie.questions.leave_group import AskToLeave
from kelpie.questions.list_offsets import AskOffsets, ListedOffset
from kelpie.questions.metadata import AskMetadata, ClusterFacts
from kelpie.questions.offset_commit import AskToCommit, OffsetToCommit
from kelpie.questions.offset_fetch import AskCommitted, CommittedOffset, CommittedOffsets
from kelpie.questions.offset_for_leader_epoch import AskEpochEnds, EpochEnd
from kelpie.questions.sync_group import AskForAssignment, Synced
from tests.consumer.stand import Stand
from tests.consumer.world import T0, T1, World, ids

_errors = st.sampled_from([code for code in ErrorCode if code])
_failures = st.builds(Failure, st.sampled_from(FailureKind), st.just("It went wrong."))
_CONFIGS: dict[str, dict[str, Any]] = {
    "eager": {},
    "cooperative": {"assignors": ("cooperative-sticky",), "enable_auto_commit": True},
    "static": {"group_instance_id": "i", "assignors": ("sticky",)},
    "newer": {"group_protocol": GroupProtocol.CONSUMER, "enable_auto_commit": True},
    "by hand": {"partitions": (T0, T1)},
    "without a group": {"partitions": (T0, T1), "group_id": None},
}


def _refusal(question: Any, error: int) -> Any:
    """An answer of the right shape that carries an error wherever it can."""
    match question:
        case AskMetadata():
            return ClusterFacts({}, {}, error)
        case AskCoordinator():
            return FoundCoordinator(error)
        case AskToJoin():
            return Joined(error, member_id="given")
        case AskForAssignment():
            return Synced(error)
        case AskHeartbeat() | AskToLeave():
            return error
        case AskNewerHeartbeat():
            return Beat(error)
        case AskCommitted():
            return CommittedOffsets(0, {T0: CommittedOffset(1, error=error)})
        case AskToCommit():
            return dict.fromkeys(question.offsets, error)
        case AskOffsets():
            return {partition: ListedOffset(error) for partition in question.wanted}
        case AskEpochEnds():
            return {partition: EpochEnd(error) for partition in question.wanted}
        case AskRecords():
            return FetchAnswer(0, {partition: FetchedPartition(error) for partition in question.wanted})
    raise AssertionError(question)


def _step(stand: Stand, data: st.DataObject) -> None:
    world = stand.world
    match data.draw(st.integers(0, 11)):
        case 0 | 1 | 2 | 3 | 4 if stand.open:
            request = data.draw(st.sampled_from(stand.open))
            if isinstance(request.question, AskNewerHeartbeat) and data.draw(st.booleans()):
                owned = data.draw(st.sampled_from([None, ids(()), ids((T0,)), ids((T0, T1))]))
                stand.settle_one(request, Beat(0, None, request.question.member_id, 3, 1_000, owned))
            else:
                stand.settle_one(request, world.answer(request))
        case 5 if stand.open:
            request = data.draw(st.sampled_from(stand.open))
            stand.settle_one(request, _refusal(request.question, data.draw(_errors)))
        case 6 if stand.open:
            stand.settle_one(data.draw(st.sampled_from(stand.open)), data.draw(_failures))
        case 7:
            stand.wait(data.draw(st.sampled_from([1, 50, 100, 1_000, 5_000, 60_000])))
        case 8:
            stand.end_poll()
        case 9:
            stand.commit(offsets=data.draw(st.sampled_from([None, {T0: OffsetToCommit(3)}])))
        case 10:
            leader = st.sampled_from([1, 2, None])
            world.leaders = {T0: data.draw(leader), T1: data.draw(leader)}
            world.epoch += data.draw(st.integers(0, 1))
            world.coordinator = data.draw(st.sampled_from([1, 2]))
            world.leads = data.draw(st.booleans())
            world.granted = data.draw(st.sampled_from([(), (T0,), (T1,), (T0, T1)]))
            start = data.draw(st.integers(0, 8))
            world.logs = {T0: (start, start + data.draw(st.integers(0, 9)))}
        case _:
            stand.poll()


@pytest.mark.parametrize("name", _CONFIGS)
@given(data=st.data())
@settings(max_examples=25)
def test_no_order_of_events_breaks_it(name: str, data: st.DataObject) -> None:
    """A consumer that raises, or asks for what is not its own, is worse than one that stops."""
    policy = data.draw(st.sampled_from([EARLIEST, LATEST, NONE]))
    config = {"auto_offset_reset": policy, "max_poll_interval_ms": 20_000, **_CONFIGS[name]}
    stand = Stand(World(granted=(T0,)), **config)
    owned: set[TopicPartition] = set(stand.consumer.assignment.partitions)
    for _ in range(data.draw(st.integers(1, 60))):
        _step(stand, data)
        for event in stand.events:
            match event:
                case RecordsDelivered(records):
                    got = {TopicPartition(record.topic, record.partition) for record in records}
                    assert got <= owned, "records of a partition that it was not told to own"
                case PartitionsRevoked(partitions) | PartitionsLost(partitions):
                    owned -= set(partitions)
                case _ if hasattr(event, "partitions"):
                    owned |= set(event.partitions)
        stand.events.clear()
        assert set(stand.consumer.assignment.partitions) == owned, "the application was not told"
    stand.close()
    for _ in range(200):
        if stand.told(ConsumerClosed):
            return
        if stand.open:
            stand.settle_one(stand.open[0], stand.world.answer(stand.open[0]))
        else:
            stand.wait(1_000)
    raise AssertionError("it cannot be closed")


@pytest.mark.parametrize("name", _CONFIGS)
@given(data=st.data())
@settings(max_examples=12)
def test_it_recovers_when_the_cluster_does(name: str, data: st.DataObject) -> None:
    """After any trouble that can be mended, records come again: it is stuck nowhere."""
    stand = Stand(World(granted=(T0, T1)), **{"max_poll_interval_ms": 20_000, **_CONFIGS[name]})
    for _ in range(data.draw(st.integers(1, 40))):
        _step(stand, data)
    healthy = stand.world
    healthy.leaders, healthy.coordinator, healthy.leads = {}, 1, False
    healthy.granted, healthy.logs = (T0, T1), {T0: (0, 1_000), T1: (0, 1_000)}
    stand.events.clear()
    if isinstance(stand.consumer.membership, ClassicMembership):
        stand.consumer.membership.rejoin("it may have been given nothing before")
    stand._do(stand.consumer.woken(stand.now))
    for _ in range(60):
        stand.poll()
        if stand.problems_are_final():
            return
        stand.run_for(2_000, AskRecords)
        for request in stand.all_asked(AskRecords):
            stand.settle_one(request, healthy.answer(request))
        if stand.records():
            return
    raise AssertionError(f"no record came: {stand.consumer.steps[-10:]}")
