"""The closed form of the probability that a rebalance of Kafka 0.8 fails."""

import pytest

from kelpie.zookeeper.likelihood import (
    Disturbance,
    conflict_probability,
    failure_probability,
    session_outlives,
)


def test_conflicts_are_counted_over_all_victims_and_names() -> None:
    """By hand: with 8 members and 8 partitions, whoever joins before the victim takes its partition away."""
    join, leave = Disturbance.KILL_AND_JOIN, Disturbance.KILL_AND_LEAVE
    assert conflict_probability(join, members=2, partitions=8) == 1.0
    assert conflict_probability(join, members=8, partitions=8) == 0.5
    assert conflict_probability(join, members=4, partitions=8) == 11 / 20
    assert conflict_probability(leave, members=1, partitions=8) == 0.0
    assert 0 < conflict_probability(leave, members=4, partitions=8) < 1


def test_a_dead_session_of_6_s_ends_between_4_and_8_s() -> None:
    """Half of them after 6 s, which is when the defaults try for the last time."""
    assert session_outlives(4_000, 6_000) == 1.0
    assert session_outlives(6_000, 6_000) == pytest.approx(0.5)
    assert session_outlives(8_000, 6_000) == 0.0
    assert session_outlives(7_000, 6_000) == pytest.approx(1 / 8)


def test_of_several_dead_sessions_the_last_one_counts() -> None:
    """That is why a restart of a whole group fails more often in a large group."""
    shares = [session_outlives(7_000, 6_000, sessions=number) for number in (1, 2, 4, 16, 1_000)]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(0.5, abs=0.01)  # Then only the tick decides.


def test_retries_that_outlast_the_session_never_fail() -> None:
    """(retries − 1) × back-off above timeout + tick; one less, and some fail."""
    for event in Disturbance:
        assert failure_probability(event, members=4, partitions=8, retries=6) == pytest.approx(0)
    few = failure_probability(Disturbance.KILL_AND_LEAVE, members=4, partitions=8, retries=4)
    assert 0 < few < 0.5
