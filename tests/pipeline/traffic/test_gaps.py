"""From when to when a label was missing, and why."""

from typing import Any

from kelpie.cluster.mappings import MappingHistory, mapping_history
from kelpie.pipeline.traffic.gaps import Gap, explained, gaps, joined
from kelpie.pipeline.traffic.verdicts import attribute
from tests.doctor.rules.kop import a_listing
from tests.pipeline.rows import at
from tests.pipeline.traffic.scrapes import a_delta, assigned, deltas, evidence

NOTHING = MappingHistory(())
WHOLE = assigned("g", -600, 600)


def told(*rows: dict[str, Any], mappings: MappingHistory = NOTHING) -> list[dict[str, Any]]:
    """Half of the deltas at a time, as tasks do."""
    pieces: list[Gap] = []
    for some in (rows[: len(rows) // 2], rows[len(rows) // 2 :]):
        table = deltas(*some)
        pieces = joined([*pieces, *gaps(table, attribute(table, evidence(WHOLE)))])
    return [explained(piece, mappings) for piece in pieces]


def test_spans_that_follow_each_other_are_one_gap() -> None:
    """Until one scrape shows no growth without a name; another broker is another gap."""
    rows = told(
        a_delta(0, 60),
        a_delta(60, 120),
        a_delta(120, 180, 50),
        a_delta(240, 300),
        a_delta(60, 120, broker="broker 2"),
    )
    assert [(row["broker"], row["began"], row["ended"], row["messages"]) for row in rows] == [
        ("broker 1", at(0), at(180), 250),
        ("broker 1", at(240), at(300), 100),
        ("broker 2", at(60), at(120), 100),
    ]
    assert all((row["groups"], row["exact"]) == (["g"], row["messages"]) for row in rows)


def why(delta: dict[str, Any], *listings: dict[str, str]) -> str:
    seen = [a_listing(nodes) for nodes in listings]
    history = mapping_history(
        [row for rows in seen for row in rows.mapping_listings],
        [row for rows in seen for row in rows.mappings],
    )
    (row,) = told(delta, mappings=history)
    text: str = row["why"]
    return text


def test_reason_is_what_the_mapping_tree_shows() -> None:
    """A node that was there and is gone; none at all; one that is there."""
    both, one = {"10.0.0.7-a": "g", "10.0.0.8-b": "h"}, {"10.0.0.8-b": "h"}
    assert "/client_group_id/10.0.0.7-a named g" in why(a_delta(0, 60), both, one)
    assert "no node that names g" in why(a_delta(0, 60), one)
    assert "A node of the mapping tree names g" in why(a_delta(0, 60), both)
    assert "g had the partition" in why(a_delta(0, 60))


def test_reason_where_no_group_is_known() -> None:
    """And what the scrapes themselves tell."""
    assert "No group is known" in why(a_delta(0, 60, topic="other"))
    assert "10.0.0.7-a named g" in why(
        a_delta(0, 60, topic="other"), {"10.0.0.7-a": "g", "10.0.0.8-b": "h"}, {"10.0.0.8-b": "h"}
    )
    assert "before the first scrape" in why(a_delta(None, 60))
    assert "kopEnableGroupLevelConsumerMetrics" in why(a_delta(0, 60, has_labels=False))
    assert "same host and client id" in why(a_delta(0, 60, label="ambiguous"))
    assert "started again" in why(a_delta(0, 60, after_restart=True))
