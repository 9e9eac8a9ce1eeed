"""Findings explain each other: by one table, in both directions of time, and without a circle."""

from graphlib import TopologicalSorter
from itertools import count
from typing import Any

import pytest

from kelpie.doctor.causes import CAUSES, CLOSE_MS, linked
from kelpie.doctor.finding import Finding, Severity
from kelpie.doctor.rules import rules
from tests.doctor.building import HOUR, NOW

_causes = count()


def a_finding(code: str, group: str | None = "billing", **fields: Any) -> Finding:
    name = rules()[code].name if code in rules() else "unknown"
    given = {"cause": f"{code} {next(_causes)}", **fields}
    return Finding(code, name, Severity.CRITICAL, group, f"{code} of {group}", "", (), **given)


def explained(*findings: Finding) -> dict[str, list[str]]:
    """By code: the codes of what explains it."""
    by_id = {finding.id: finding for finding in linked(findings)}
    return {each.code: [by_id[cause].code for cause in each.caused_by] for each in by_id.values()}


def test_the_table_names_rules_that_exist_and_makes_no_circle() -> None:
    """A finding that explains itself would be shown nowhere."""
    graph: dict[str, set[str]] = {}
    for row in CAUSES:
        assert row.cause in rules()
        for effect in row.effects:
            assert effect in rules()
            graph.setdefault(effect, set()).add(row.cause)
    assert list(TopologicalSorter(graph).static_order())


def test_a_dead_broker_explains_the_partition_and_the_partition_the_group() -> None:
    """Each by its nearest cause: the group stopped because its partition has no leader."""
    broker = a_finding("KLP100", None, brokers=(2,), partitions=("orders-0",))
    partition = a_finding("KLP311", brokers=(2,), partitions=("orders-0",))
    stopped = a_finding("KLP310", partitions=("orders-0", "orders-1"))
    assert explained(stopped, partition, broker) == {
        "KLP310": ["KLP311"],
        "KLP311": ["KLP100"],
        "KLP100": [],
    }


@pytest.mark.parametrize(
    ("cause", "effect"),
    [("KLP203", "KLP201"), ("KLP204", "KLP201"), ("KLP101", "KLP310"), ("KLP202", "KLP309")],
)
def test_one_explains_the_other_in_the_same_group_only(cause: str, effect: str) -> None:
    """Another group's slow member is no reason for this one's storm."""
    assert explained(a_finding(cause), a_finding(effect))[effect] == [cause]
    assert explained(a_finding(cause, "other"), a_finding(effect))[effect] == []


def test_a_hanging_transaction_explains_only_readers_of_its_partition() -> None:
    """The group may stand still elsewhere for another reason."""
    hanging = a_finding("KLP306", partitions=("orders-0",))
    assert explained(hanging, a_finding("KLP309", partitions=("orders-0",)))["KLP309"] == ["KLP306"]
    assert explained(hanging, a_finding("KLP309", partitions=("orders-1",)))["KLP309"] == []


def test_a_topic_that_was_created_again_explains_missing_offsets_in_all_its_partitions() -> None:
    """Kafka removed the offsets of the old topic; members wrote some of them once more. Seen on 4.3.1."""
    created_again = a_finding("KLP314", partitions=("orders-eu-2", "orders-eu-3"))
    uncommitted = a_finding("KLP301", partitions=("orders-eu-0",))
    assert explained(created_again, uncommitted)["KLP301"] == ["KLP314"]
    elsewhere = a_finding("KLP301", partitions=("orders-0",))
    assert explained(created_again, elsewhere)["KLP301"] == []
    other_group = a_finding("KLP301", "other", partitions=("orders-eu-0",))
    assert explained(created_again, other_group)["KLP301"] == []


def test_what_was_over_before_or_began_long_after_explains_nothing() -> None:
    """A member that polled too slowly yesterday, and a storm today, have nothing in common."""
    storm = a_finding("KLP201", since=NOW - CLOSE_MS)
    assert explained(a_finding("KLP203", since=NOW - 9 * HOUR, until=NOW - 8 * HOUR), storm)["KLP201"] == []
    until_now = a_finding("KLP203", since=NOW - 9 * HOUR, until=NOW - 1000)
    assert explained(until_now, storm)["KLP201"] == ["KLP203"]
    early = a_finding("KLP201", since=NOW - 9 * HOUR)
    assert explained(a_finding("KLP203", since=NOW - HOUR), early)["KLP201"] == []
    assert explained(a_finding("KLP203"), early)["KLP201"] == ["KLP203"]


def test_without_a_coordinator_no_group_goes_on_whenever_it_stopped() -> None:
    """It had nothing to read before; now it could not commit if it had. An outage that is over explains
    nothing that lasts.
    """
    stopped = a_finding("KLP310", since=NOW - 9 * HOUR)
    assert explained(a_finding("KLP101", since=NOW - HOUR), stopped)["KLP310"] == ["KLP101"]
    over = a_finding("KLP101", since=NOW - 9 * HOUR, until=NOW - 1000)
    assert explained(over, stopped)["KLP310"] == []


def test_ids_are_stable_and_told_apart() -> None:
    """By group, whatever partitions it has it in; by cause, where a rule finds several things."""
    first, second = linked([a_finding("KLP311", cause="orders-0"), a_finding("KLP311", "other")])
    assert first.id != second.id
    assert linked([a_finding("KLP311", cause="orders-0 and orders-1")])[0].id == first.id
    several = linked([a_finding("KLP404", cause="/a"), a_finding("KLP404", cause="/b")])
    assert len({each.id for each in several}) == 2
    twins = linked([a_finding("KLP404", cause="/a"), a_finding("KLP404", cause="/a")])
    assert len({each.id for each in twins}) == 2
    assert linked(linked([a_finding("KLP999")]))[0].caused_by == ()
