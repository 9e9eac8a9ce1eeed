"""From when to when the rows of a finding lasted."""

from typing import NamedTuple

from kelpie.doctor.zookeeper.period import Period


class Row(NamedTuple):
    since: int
    until: int | None


def test_a_period_reaches_from_the_first_beginning_to_the_last_end() -> None:
    """Whatever the order of its rows; the longest row need not be the last to end."""
    period = Period.of([Row(50, 60), Row(10, 40), Row(30, 55)])
    assert period == Period(10, 60, 30)
    assert period.is_over


def test_a_period_goes_on_while_one_row_does() -> None:
    """The length of what has ended is told all the same."""
    period = Period.of([Row(10, 40), Row(5, None)])
    assert period == Period(5, None, 30)
    assert not period.is_over
    assert Period.of([Row(5, None)]).longest_ms == 0
