"""Scrapes of a broker, one after another: what grew, what began again, what stands still."""

from kelpie.attribution.counters import Amount, Series
from kelpie.cluster.traffic import Span, total
from tests.doctor.rules.kop import a_listing, a_scrape, kop

OWN, OTHER, LOST = ("t", 0, "own"), ("t", 0, "other"), ("t", 0, "")


def grown(span: Span) -> dict[str, int]:
    return {series.group: amount.messages for series, amount in span.growth.items()}


def test_growth_is_what_came_between_two_scrapes() -> None:
    """All three counters; what has not grown is left out."""
    (span,) = kop(a_scrape({OWN: 5, OTHER: 1}), a_scrape({OWN: 8, OTHER: 1})).traffic_history.spans
    assert span.growth == {Series("t", 0, "own"): Amount(3, 300, 3)}


def test_three_scrapes_are_two_spans_and_the_sum_is_conserved() -> None:
    """No message is counted twice, and none is left out."""
    history = kop(*(a_scrape({OWN: number}) for number in (1, 5, 9))).traffic_history
    assert [grown(span) for span in history.spans] == [{"own": 4}, {"own": 4}]
    assert total(amount for span in history.spans for amount in span.growth.values()) == Amount(8, 800, 8)
    assert history.newest == history.spans[-1:]


def test_a_series_that_is_gone_or_smaller_tells_of_a_restart() -> None:
    """What the later scrape has was counted since then, even where it has more than before."""
    gone = kop(a_scrape({OWN: 5, OTHER: 2}), a_scrape({OWN: 9})).traffic_history
    assert [(grown(span), span.after_restart) for span in gone.spans] == [
        ({"own": 5, "other": 2}, False),
        ({"own": 9}, True),
    ]
    smaller = kop(a_scrape({OWN: 5}), a_scrape({OWN: 1}), a_scrape({OWN: 4})).traffic_history
    assert [grown(span) for span in smaller.spans] == [{"own": 5}, {"own": 1}, {"own": 3}]
    assert [span.after_restart for span in smaller.spans] == [False, True, False]


def test_brokers_are_apart() -> None:
    """After a move, one series is on two brokers: values must not be compared across them."""
    cluster = kop(
        a_scrape({OWN: 50}), a_scrape({}, "broker 2"), a_scrape({OWN: 50}), a_scrape({OWN: 3}, "broker 2")
    )
    assert {span.broker: grown(span) for span in cluster.traffic_history.newest} == {
        "broker 1": {},
        "broker 2": {"own": 3},
    }


def test_labels_say_whether_groups_are_counted() -> None:
    """No label anywhere is a setting, unless nodes say otherwise."""
    off = a_scrape({("t", 0, None): 1})
    assert kop(off).traffic_history.counts_groups("broker 1") is False
    assert kop(off, a_listing({"10.0.0.7-a": "g"})).traffic_history.counts_groups("broker 1") is None
    assert kop(a_scrape({LOST: 1})).traffic_history.counts_groups("broker 1") is True
    labelled = a_scrape({OWN: 1}, "broker 2")
    assert kop(off, labelled).traffic_history.counts_groups("broker 1") is True
    assert kop(off, a_scrape({LOST: 1}, "broker 2")).traffic_history.counts_groups("broker 1") is False
