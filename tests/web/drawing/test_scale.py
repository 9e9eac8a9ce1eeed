"""Ticks are round, and not too many."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelpie.web.drawing.scale import (
    DAY,
    HOUR,
    Frame,
    duration_ticks,
    number_ticks,
    short_number,
    time_ticks,
)

NOON = 1_800_014_400_000
"""2027-01-15 12:00 UTC."""


@given(st.floats(min_value=0, max_value=1e15))
def test_ticks_of_numbers_reach_the_greatest_value(greatest: float) -> None:
    ticks = number_ticks(greatest)
    assert ticks[0] == 0
    assert ticks[-1] >= greatest * (1 - 1e-6)
    assert 2 <= len(ticks) <= 6
    assert number_ticks(greatest, least_step=1)[1] >= 1


@given(st.floats(min_value=0, max_value=1e13))
def test_ticks_of_durations_reach_the_greatest_value(greatest: float) -> None:
    ticks = duration_ticks(greatest)
    assert ticks[-1] >= greatest * (1 - 1e-6)
    assert 2 <= len(ticks) <= 6


@given(st.integers(0, 4_000_000_000_000), st.integers(10_000, 20 * 365 * DAY))
def test_ticks_of_time_lie_within_the_frame_and_are_few(begin: int, span: int) -> None:
    ticks = time_ticks(Frame(begin, begin + span))
    assert 1 <= len(ticks) <= 8
    assert all(begin <= tick.value <= begin + span for tick in ticks)


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        (40_000, ["01-15 12:00:00", "12:00:10", "12:00:20", "12:00:30", "12:00:40"]),
        (HOUR, ["01-15 12:00", "12:10", "12:20", "12:30", "12:40", "12:50", "13:00"]),
        (DAY, ["01-15 12:00", "18:00", "01-16 00:00", "06:00", "12:00"]),
        (3 * DAY, ["01-15 12:00", "01-16 00:00", "12:00", "01-17 00:00", "12:00", "01-18 00:00", "12:00"]),
        (
            14 * DAY,
            [
                "2027-01-16",
                "2027-01-18",
                "2027-01-20",
                "2027-01-22",
                "2027-01-24",
                "2027-01-26",
                "2027-01-28",
            ],
        ),
        (120 * DAY, ["2027-02-01", "2027-03-01", "2027-04-01", "2027-05-01"]),
    ],
)
def test_ticks_of_time_are_round_and_name_the_day_where_it_changes(span: int, expected: list[str]) -> None:
    assert [tick.text for tick in time_ticks(Frame(NOON, NOON + span))] == expected


def test_long_numbers_are_short() -> None:
    assert [short_number(each) for each in (0, 0.5, 250, 1_500, 20_000_000, 3e12)] == [
        "0",
        "0.5",
        "250",
        "1.5k",
        "20M",
        "3T",
    ]
