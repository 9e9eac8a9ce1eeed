"""The history of a live cluster in memory: bounded, and true where it is coarse."""

from itertools import pairwise
from math import isnan, nan

import pytest

from kelpie.doctor.group_history import Value
from kelpie.web.history import History, Numbers

SECOND = 1000
EVERY = 30 * SECOND


def filled(history: History, looks: int, groups: int = 3) -> History:
    for number in range(looks):
        rows = [(f"g{group}", Numbers(number, members=group)) for group in range(groups)]
        history.add(number * EVERY, rows)
    return history


def test_the_numbers_of_a_group_come_back_by_time() -> None:
    history = filled(History(), 3)
    assert history.of("g1").lag == [Value(0, 0), Value(EVERY, 1), Value(2 * EVERY, 2)]
    assert history.of("g1").members[-1] == Value(2 * EVERY, 1)
    assert history.of("g1").lag_ms == [], "nobody told it"
    assert history.of("nobody").begin is None


def test_a_large_lag_keeps_all_its_digits() -> None:
    history = History()
    history.add(1, [("a", Numbers(123_456_789_012))])
    assert history.of("a").lag == [Value(1, 123_456_789_012)]


def test_groups_come_and_go() -> None:
    history = History()
    history.add(1, [("old", Numbers(1))])
    history.add(2, [("old", Numbers(2)), ("new", Numbers(5))])
    history.add(3, [("new", Numbers(6))])
    assert history.of("old").lag == [Value(1, 1), Value(2, 2)]
    assert history.of("new").lag == [Value(2, 5), Value(3, 6)]


def test_ten_thousand_groups_fit_into_the_bytes_they_are_given() -> None:
    """For as long as Kelpie runs: there are fewer looks, not more bytes."""
    budget = 8 * 1024 * 1024
    history = History(most_bytes=budget)
    for number in range(60):
        history.add(number * EVERY, [(f"group-{group}", Numbers(group)) for group in range(10_000)])
    assert history.bytes <= budget
    assert len(history.times) == budget // (28 * 10_000)


@pytest.mark.parametrize("looks", [500, 2_500])
def test_what_is_recent_stays_as_it_was_and_what_is_old_becomes_coarse(looks: int) -> None:
    history = filled(History(most_looks=100), looks)
    times = history.times
    assert len(times) == 100
    assert times[0] == 0, "the beginning is kept"
    assert times[-3:] == [(looks - 3) * EVERY, (looks - 2) * EVERY, (looks - 1) * EVERY]
    gaps = [later - earlier for earlier, later in pairwise(times[1:])]
    assert max(gaps[:20]) > 3 * max(gaps[-20:])
    for gap, until in zip(gaps, times[2:], strict=False):
        age = times[-1] - until + gap
        assert gap <= max(2 * EVERY, 0.25 * age), "no part is much coarser than its age asks for"


def test_merged_looks_keep_peaks_means_and_sums() -> None:
    history = History(most_looks=16)
    history.add(0, [("a", Numbers(0))])
    for number in range(1, 200):
        peak = 1_000_000 if number == 57 else 10
        history.add(
            number * EVERY,
            [("a", Numbers(peak, nan, 4.0, 6.0 if number % 2 else 12.0, 3, 1 if number in (57, 90) else 0))],
        )
    known = history.of("a")
    assert len(known.lag) == 16
    assert max(value.value for value in known.lag) == 1_000_000, "a peak is not lost"
    assert {value.value for value in known.records} == {4.0}
    assert all(6.0 <= value.value <= 12.0 for value in known.commits)
    assert len(known.rebalances) == 2
    assert known.lag_ms == []


def test_groups_that_are_gone_for_long_are_forgotten() -> None:
    """Consoles make a new group each time: their names must not be kept for ever."""
    history = History(most_looks=20)
    for number in range(400):
        throwaway = [(f"console-{number}-{each}", Numbers(1)) for each in range(20)]
        history.add(number * EVERY, [("billing", Numbers(number)), *throwaway])
    assert len(history._places) < 3_000
    assert history.of("billing").lag[-1] == Value(399 * EVERY, 399)
    assert len(history.of("billing").lag) == 20
    assert history.of("console-399-0").lag == [Value(399 * EVERY, 1)]
    assert not any(isnan(value.value) for value in history.of("billing").lag)


def test_a_clock_that_went_back_adds_nothing() -> None:
    history = filled(History(), 2)
    history.add(5, [("g0", Numbers(99))])
    assert history.times == [0, EVERY]
