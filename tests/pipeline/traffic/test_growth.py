"""What was counted between scrapes, in columns: the same as the doctor says, whatever the scrapes are."""

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelpie.cluster.traffic import traffic_history
from kelpie.observations import Scrape, TrafficSeries
from kelpie.observations.traffic import BYTES, ENTRIES, MESSAGES
from kelpie.pipeline.tables.moments import instant
from kelpie.pipeline.traffic.growth import AMOUNTS, Growth, as_told, growth
from tests.pipeline.rows import at
from tests.pipeline.traffic.scrapes import Place, sample_rows, samples

OWN, OTHER, LOST = ("t", 0, "own"), ("t", 0, "other"), ("t", 0, "")
SERIES: list[Place] = [OWN, OTHER, LOST, ("t", 1, "own"), ("u", 0, None), ("u", 0, "ambiguous")]


def told(grown: Growth) -> set[tuple[Any, ...]]:
    """Broker, series, span and amounts of every delta."""
    both = grown.counted.rename_columns({"group": "label"}), grown.unattributed
    rows = [row for table in both for row in table.to_pylist()]
    columns = ("broker", "topic", "partition", "label", "began", "ended", *AMOUNTS)
    return {tuple(row[name] for name in columns) for row in rows}


scrapes_of_a_broker = st.lists(
    st.dictionaries(st.sampled_from(SERIES), st.integers(0, 6), max_size=5), min_size=1, max_size=6
)


@given(st.dictionaries(st.sampled_from(["broker 1", "broker 2", ""]), scrapes_of_a_broker, min_size=1))
def test_deltas_are_those_of_the_doctor(by_broker: dict[str, list[dict[Place, int]]]) -> None:
    """Series that appear, vanish, fall and stand still, on several brokers; "" and no label are the same."""
    rows = [
        sample_rows(values, 60 * number, broker)
        for broker, scrapes in by_broker.items()
        for number, values in enumerate(scrapes)
    ]
    wanted: set[tuple[Any, ...]] = set()
    history = traffic_history(*_observed([row for scrape in rows for row in scrape]))
    for span in history.spans:
        scrapes = [each.scrape for each in history.scrapes if each.scrape.broker == span.broker]
        place = scrapes.index(span.last.scrape)
        is_known = span.first is not None or (span.after_restart and _is_of_the_broker(history, span, place))
        began = scrapes[place - 1].at if is_known else None
        for series, amount in span.growth.items():
            wanted.add((span.broker, *series, began, span.last.scrape.at, *amount))
    grown = {(*row[:4], instant(row[4]), instant(row[5]), *row[6:]) for row in told(growth(samples(*rows)))}
    # The table also has a first scrape from which a second one goes on; the doctor leaves that out.
    assert wanted <= grown
    assert all(row[4] is None for row in grown - wanted)


def _is_of_the_broker(history: Any, span: Any, place: int) -> bool:
    """Scrapes without a broker's name are of one only if the earlier one has a series."""
    earlier = [each for each in history.scrapes if each.scrape.broker == span.broker][place - 1]
    return bool(span.broker) or bool(earlier.amounts)


def _observed(rows: list[dict[str, Any]]) -> tuple[list[Scrape], list[TrafficSeries]]:
    scrapes = {(row["broker"], row["source"]): instant(row["at"]) for row in rows}
    counters = {MESSAGES: "messages", BYTES: "bytes", ENTRIES: "entries"}
    series = [
        TrafficSeries(
            row["source"], row["topic"], row["partition"], row["group"], counter, row[column], row["broker"]
        )
        for row in rows
        if "topic" in row
        for counter, column in counters.items()
    ]
    return [Scrape(broker, when, source) for (broker, source), when in scrapes.items()], series


@given(scrapes_of_a_broker, st.lists(st.integers(0, 6), max_size=3))
def test_slices_give_the_same_as_all_at_once(scrapes: list[dict[Place, int]], cuts: list[int]) -> None:
    """A day is read in slices of time, and what is steady needs the scrape after."""
    rows = [sample_rows(values, 60 * number) for number, values in enumerate(scrapes)]
    rest, parts = samples(), []
    bounds = [0, *sorted(cuts), len(rows)]
    for first, last in pairwise(bounds):
        together = pa.concat_tables([rest, samples(*rows[first:last])]).unify_dictionaries()
        parts.append(growth(together, is_last=last == len(rows) and first == bounds[-2]))
        rest = parts[-1].rest
    whole = growth(samples(*rows))
    assert set().union(*map(told, parts)) == told(whole)
    assert sorted(map(str, _beside(parts))) == sorted(map(str, _beside([whole])))
    assert as_told(rest, told=True).to_pylist() == as_told(whole.rest, told=True).to_pylist()


def _beside(parts: list[Growth]) -> list[tuple[Any, ...]]:
    rows = [row for part in parts for row in part.unattributed.to_pylist()]
    return [(row["topic"], row["partition"], row["ended"], row["beside"]) for row in rows]


def test_frozen_series_of_the_broker_that_led_before_count_nothing() -> None:
    """After a move, one series is on two brokers: deltas are added up, not values."""
    rows = [
        sample_rows({OWN: 50}, 0),
        sample_rows({}, 0, "broker 2"),
        sample_rows({OWN: 50}, 60),
        sample_rows({OWN: 3}, 60, "broker 2"),
    ]
    later = [row for row in growth(samples(*rows)).counted.to_pylist() if row["began"] is not None]
    assert [(row["broker"], row["messages"]) for row in later] == [("broker 2", 3)]


def test_restart_of_a_broker_resets_all_its_series() -> None:
    """Also those that already have more than before: one that is gone tells."""
    rows = [sample_rows({OWN: 5, OTHER: 2, LOST: 1}, 0), sample_rows({OWN: 9, LOST: 4}, 60)]
    grown = growth(samples(*rows))
    assert [row["messages"] for row in grown.counted.to_pylist() if row["began"] == at(0)] == [9]
    (lost,) = [row for row in grown.unattributed.to_pylist() if row["began"] == at(0)]
    assert (lost["messages"], lost["after_restart"]) == (4, True)


@pytest.mark.parametrize(
    ("values", "steady"),
    [((1, 2, 3, 4), True), ((1, 1, 2, 3), False), ((1, 2, 3, 3), False), ((1, 2, 0, 1), False)],
)
def test_group_is_steady_if_it_is_counted_before_and_afterwards_too(
    values: tuple[int, ...], *, steady: bool
) -> None:
    """Else it may have lost its label, or got it, in between; or the broker was restarted."""
    rows = [
        sample_rows({OWN: value, LOST: 10 * number}, 60 * number)
        for number, value in enumerate(values, start=1)
    ]
    deltas = growth(samples(*rows)).unattributed.to_pylist()
    (delta,) = [row for row in deltas if row["ended"] == at(180)]
    assert [each["is_steady"] for each in delta["beside"] if each["group"] == "own"] in ([steady], [])
    assert steady == any(each["is_steady"] for each in delta["beside"])


def test_last_scrapes_are_what_the_next_day_goes_on_from() -> None:
    """It compares with them, and does not tell them again."""
    first = growth(samples(sample_rows({OWN: 1}, 0), sample_rows({OWN: 5}, 60)))
    carried = as_told(first.rest, told=True)
    second = growth(pa.concat_tables([carried, samples(sample_rows({OWN: 7}, 120))]))
    (row,) = second.counted.to_pylist()
    assert (row["began"], row["ended"], row["messages"]) == (at(60), at(120), 2)
