"""The states of a partition, and which may follow which."""

import itertools

import pytest

from kelpie.consumer.metadata import NO_LEADER, Leader
from kelpie.consumer.positions.partition_state import (
    MAY_BECOME,
    FetchPosition,
    FetchState,
    TopicPartitionState,
)
from kelpie.consumer.positions.reset_policy import EARLIEST, LATEST, NONE, ResetPolicy, Strategy

_S = FetchState
_ALLOWED = {
    (_S.INITIALIZING, _S.FETCHING),
    (_S.INITIALIZING, _S.AWAIT_RESET),
    (_S.INITIALIZING, _S.AWAIT_VALIDATION),
    (_S.FETCHING, _S.FETCHING),
    (_S.FETCHING, _S.AWAIT_RESET),
    (_S.FETCHING, _S.AWAIT_VALIDATION),
    (_S.AWAIT_RESET, _S.FETCHING),
    (_S.AWAIT_RESET, _S.AWAIT_RESET),
    (_S.AWAIT_VALIDATION, _S.FETCHING),
    (_S.AWAIT_VALIDATION, _S.AWAIT_RESET),
    (_S.AWAIT_VALIDATION, _S.AWAIT_VALIDATION),
}
OLD, NEW = Leader(1, 4), Leader(2, 5)


def _state(partition: TopicPartitionState) -> FetchState:
    return partition.fetch_state


@pytest.mark.parametrize(("before", "after"), list(itertools.product(FetchState, repeat=2)))
def test_table_is_kafkas(before: FetchState, after: FetchState) -> None:
    """SubscriptionState.FetchStates, cell by cell."""
    assert (after in MAY_BECOME[before]) == ((before, after) in _ALLOWED)


def _in(state: FetchState) -> TopicPartitionState:
    own = TopicPartitionState()
    if state is _S.FETCHING:
        own.seek_validated(FetchPosition(7, None, OLD))
    elif state is _S.AWAIT_RESET:
        own.reset(EARLIEST)
    elif state is _S.AWAIT_VALIDATION:
        own.seek_unvalidated(FetchPosition(7, 3, OLD))
    assert own.fetch_state is state
    return own


@pytest.mark.parametrize("state", FetchState)
def test_position_is_there_in_two_states_only(state: FetchState) -> None:
    """And only one of them is fetched."""
    own = _in(state)
    assert (own.position is not None) == state.has_position
    assert own.is_fetchable == (state is _S.FETCHING)


def test_position_with_an_epoch_is_checked_and_one_without_is_not() -> None:
    """Without the epoch of the last record there is nothing to compare."""
    own = TopicPartitionState()
    own.seek_unvalidated(FetchPosition(7, None, OLD))
    assert own.fetch_state is _S.FETCHING
    own.seek_unvalidated(FetchPosition(7, 3, NO_LEADER))
    assert own.fetch_state is _S.FETCHING
    own.seek_unvalidated(FetchPosition(7, 3, OLD))
    assert _state(own) is _S.AWAIT_VALIDATION


def test_another_leader_makes_a_position_doubtful() -> None:
    """Its log may be shorter than what was read."""
    own = _in(_S.FETCHING)
    own.seek_validated(FetchPosition(7, 3, OLD))
    assert not own.meet_leader(OLD)
    assert own.meet_leader(NEW)
    assert own.position == FetchPosition(7, 3, NEW)
    own.validated()
    assert own.is_fetchable


def test_missing_leader_and_pending_reset_make_nothing_doubtful() -> None:
    """Nobody to ask, and nothing to ask about."""
    own = _in(_S.FETCHING)
    own.seek_validated(FetchPosition(7, 3, OLD))
    assert not own.meet_leader(NO_LEADER)
    assert own.is_fetchable
    waiting = _in(_S.AWAIT_RESET)
    assert not waiting.meet_leader(NEW)
    assert waiting.fetch_state is _S.AWAIT_RESET


def test_reset_clears_the_position_and_a_seek_the_reset() -> None:
    """One of the two says where to begin, never both."""
    own = _in(_S.FETCHING)
    own.reset(LATEST)
    assert (own.position, own.policy) == (None, LATEST)
    own.seek_validated(FetchPosition(3))
    assert (own.position, own.policy) == (FetchPosition(3), None)


def test_paused_and_revoked_partitions_are_not_fetched() -> None:
    """They keep their position all the same."""
    own = _in(_S.FETCHING)
    own.paused = True
    assert not own.is_fetchable
    own.paused = False
    own.being_revoked = True
    assert not own.is_fetchable
    assert own.position is not None


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("earliest", EARLIEST),
        (" latest ", LATEST),
        ("none", NONE),
        ("by_duration:PT1H", ResetPolicy(Strategy.BY_DURATION, 3_600_000)),
        ("by_duration:P1DT2M0.5S", ResetPolicy(Strategy.BY_DURATION, 86_520_500)),
        ("by_duration:PT0S", ResetPolicy(Strategy.BY_DURATION, 0)),
    ],
)
def test_policies_are_read_as_kafka_writes_them(text: str, policy: ResetPolicy) -> None:
    """KIP-1106 brought durations, in ISO 8601."""
    assert ResetPolicy.parse(text) == policy


@pytest.mark.parametrize(
    "text",
    ["", "smallest", "by_duration", "by_duration:", "by_duration:P", "by_duration:-PT1H", "latest:PT1H"],
)
def test_other_policies_are_refused_with_the_ones_that_exist(text: str) -> None:
    """smallest was the ZooKeeper consumer's word."""
    with pytest.raises(ValueError, match=r"earliest, latest, none|ISO 8601"):
        ResetPolicy.parse(text)


def test_duration_is_counted_from_each_attempt() -> None:
    """And never from before 1970."""
    hour = ResetPolicy.parse("by_duration:PT1H")
    assert (hour.timestamp(5_000_000), hour.timestamp(5_000_001), hour.timestamp(10)) == (
        1_400_000,
        1_400_001,
        0,
    )
    assert (EARLIEST.timestamp(1), LATEST.timestamp(1)) == (-2, -1)
