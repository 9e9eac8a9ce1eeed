"""Whose an unattributed delta is: exact only where nobody else can have fetched it."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelpie.pipeline.traffic.verdicts import attribute, shared
from tests.pipeline.traffic.scrapes import a_delta, assigned, committed, deltas, evidence

Row = dict[str, Any]
WHOLE = assigned("g", -600, 600)


def verdicts(delta: Row, *rows: Row) -> list[tuple[str, str | None, int]]:
    attributed = attribute(deltas(delta), evidence(*rows)).rows.to_pylist()
    return sorted((row["how"], row["group"], row["messages"]) for row in attributed)


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([WHOLE], id="one group throughout"),
        pytest.param([assigned("g", -600, 30), assigned("g", 30, 600)], id="another owner in the group"),
        pytest.param([WHOLE, assigned("h", -600, -61)], id="another group that was gone for a minute"),
        pytest.param([WHOLE, assigned("h", -600, 600, partition=1)], id="another group elsewhere"),
        pytest.param([WHOLE, committed("g", -5, 55, 70)], id="commits of its own"),
        pytest.param(
            [WHOLE, assigned("h", -9000, -8000), assigned("h", 700, 800), committed("h", -8000, 710, 9)],
            id="a group that was down all the time, and its next commit",
        ),
    ],
)
def test_exact(rows: list[Row]) -> None:
    """Only this group can have fetched it."""
    assert verdicts(a_delta(0, 60), *rows) == [("exact", "g", 100)]


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([], id="nobody is known"),
        pytest.param([assigned("g", 1, 600)], id="assigned only after the scrape before"),
        pytest.param([assigned("g", -600, 59)], id="gone before the scrape"),
        pytest.param([assigned("g", -600, 20), assigned("g", 21, 600)], id="a second without an owner"),
        pytest.param([WHOLE, assigned("h", -600, 600)], id="two groups"),
        pytest.param([WHOLE, assigned("h", -600, -30)], id="another group until half a minute before"),
        pytest.param([WHOLE, assigned("h", 90, 600)], id="another group half a minute afterwards"),
        pytest.param([WHOLE, assigned("h", 30, 30)], id="another group for a moment"),
        pytest.param([WHOLE, assigned("h", -600, 600, certain=False)], id="another group in logs"),
    ],
)
def test_unknown_where_several_or_none_can_have_fetched_it(rows: list[Row]) -> None:
    """And nothing tells how much each has read."""
    assert verdicts(a_delta(0, 60), *rows) == [("unknown", None, 100)]


def test_group_that_commits_without_joining_is_a_candidate() -> None:
    """assign() and commit: nothing but its commits shows that it reads."""
    rows = [WHOLE, committed("g", 0, 60, 30), committed("h", -30, 90, 40)]
    assert verdicts(a_delta(0, 60), *rows) == [("apportioned", "g", 60), ("apportioned", "h", 40)]


def test_times_that_are_not_known_make_nothing_exact() -> None:
    """The first scrape of a broker; and copied files, which have the time of the copying."""
    assert verdicts(a_delta(None, 60), WHOLE) == [("unknown", None, 100)]
    assert verdicts(a_delta(59.9, 60), WHOLE) == [("unknown", None, 100)]


def test_steady_group_is_no_candidate() -> None:
    """Its connection has a label, and keeps it: the other group is left."""
    both = [WHOLE, assigned("h", -600, 600)]
    assert verdicts(a_delta(0, 60, beside=[("h", 5, True)]), *both) == [("exact", "g", 100)]
    assert verdicts(a_delta(0, 60, beside=[("h", 5, False)]), *both) == [("unknown", None, 100)]


def test_delta_beside_a_single_steady_group_is_somebody_elses() -> None:
    """A consumer without any group: nothing tells of it, and the group is not given what it has not read."""
    assert verdicts(a_delta(0, 60, beside=[("g", 5, True)]), WHOLE) == [("unknown", None, 100)]


def test_group_that_loses_its_label_in_this_span_is_the_one() -> None:
    """Both its own series and the one without a name have grown."""
    assert verdicts(a_delta(0, 60, beside=[("g", 5, False)]), WHOLE) == [("exact", "g", 100)]


def test_labelled_group_of_which_nothing_else_is_known_may_have_lost_its_label_too() -> None:
    """So the one that is known is not certain."""
    assert verdicts(a_delta(0, 60, beside=[("z", 5, False)]), WHOLE) == [("unknown", None, 100)]


def test_stranger_that_shows_on_the_same_day_makes_the_partition_uncertain() -> None:
    """While the group had its label, somebody else was counted without one. Other partitions are certain."""
    strange = a_delta(600, 660, beside=[("g", 5, True)])
    whole = [assigned("g", -600, 900), assigned("g", -600, 900, partition=1)]
    rows = deltas(a_delta(0, 60), strange, a_delta(0, 60, partition=1))
    assert [row["how"] for row in attribute(rows, evidence(*whole)).rows.to_pylist()] == [
        "apportioned",
        "exact",
        "unknown",
    ]


@pytest.mark.parametrize(("advance", "how"), [(5800, "exact"), (4000, "apportioned")])
def test_more_than_the_group_committed_shows_a_stranger(advance: int, how: str) -> None:
    """Within an hour; what a consumer fetches ahead is no more than some percent, or one span."""
    spans = [a_delta(60 * number, 60 * number + 60) for number in range(60)]
    known = [assigned("g", -600, 9000), committed("g", 0, 3600, advance)]
    rows = attribute(deltas(*spans), evidence(*known)).rows.to_pylist()
    assert {row["how"] for row in rows} == {how}


def test_what_was_counted_under_its_own_name_is_not_given_to_a_group_again() -> None:
    """Its committed offsets advanced for that, too."""
    rows = [WHOLE, assigned("h", -600, 600), committed("g", 0, 60, 80), committed("h", 0, 60, 20)]
    delta = a_delta(0, 60, beside=[("g", 60, False)])
    assert verdicts(delta, *rows) == [("apportioned", "g", 50), ("apportioned", "h", 50)]


def test_single_candidate_that_only_logs_tell_of_gets_an_estimate() -> None:
    """Logs of one client say nothing of other groups."""
    assert verdicts(a_delta(0, 60), assigned("g", -600, 600, certain=False)) == [("apportioned", "g", 100)]


def test_topics_of_the_default_namespace_have_two_names() -> None:
    """Pulsar's and the client's. Topics of other namespaces are others."""
    default = a_delta(0, 60, topic="persistent://public/default/t")
    assert verdicts(default, WHOLE) == [("exact", "g", 100)]
    assert verdicts(a_delta(0, 60, topic="persistent://other/default/t"), WHOLE) == [("unknown", None, 100)]


@given(
    st.lists(st.integers(0, 1 << 50), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), st.floats(1e-9, 1e12)), min_size=1, max_size=12),
)
def test_shares_are_whole_and_add_up(totals: list[int], parts: list[tuple[int, float]]) -> None:
    """To the byte, whatever the weights are; and no share is off by one or more from its part."""
    of_total = np.array([min(total, len(totals) - 1) for total, _ in parts])
    weights = np.array([weight for _, weight in parts])
    shares = shared(np.array(totals), of_total, weights, np.arange(len(parts)))
    for number in set(of_total.tolist()):
        mine = of_total == number
        assert shares[mine].sum() == totals[number]
        wanted = weights[mine] / weights[mine].sum() * totals[number]
        assert (abs(shares[mine] - wanted) <= 2 + totals[number] * 2**-28).all()
    assert (shares >= 0).all()


def test_equal_remainders_go_to_the_first_in_order() -> None:
    """The same every time, so that running twice changes nothing."""
    shares = shared(np.array([10]), np.array([0, 0, 0]), np.ones(3), np.array([2, 0, 1]))
    assert shares.tolist() == [3, 4, 3]
