"""Topics with their groups, and the offsets topic as a map."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from kelpie.evidence import read_evidence
from kelpie.examination import Examination
from tests.evidence import unpacked
from tests.web.watching import pages

CLUSTER = "/clusters/main"


@pytest.fixture(scope="module")
def outage() -> Iterator[TestClient]:
    evidence = read_evidence([unpacked("kafka-4.3.1-coordinator-outage")])
    with pages(Examination(evidence=evidence)) as browser:
        yield browser


def test_topics_name_the_groups_that_read_them(outage: TestClient) -> None:
    rows = {row["topic"]: row for row in outage.get(f"{CLUSTER}/topics.json").json()["topics"]}
    assert set(rows) == {"orders", "payments", "__transaction_state"}
    assert "checkout-53" in rows["orders"]["groups"]
    assert rows["orders"]["partitions"] == 6
    assert rows["orders"]["worst"] == "KLP101"


@pytest.mark.parametrize(("pattern", "expected"), [("ORD", ["orders"]), ("pay*", ["payments"]), ("x", [])])
def test_topics_are_filtered_by_name(outage: TestClient, pattern: str, expected: list[str]) -> None:
    data = outage.get(f"{CLUSTER}/topics.json", params={"pattern": pattern}).json()
    assert [row["topic"] for row in data["topics"]] == expected
    assert data["count"] == len(expected)


def test_a_topic_tells_how_far_each_group_is_in_it(outage: TestClient) -> None:
    """The group also reads another topic: only the lag here counts."""
    data = outage.get(f"{CLUSTER}/topic.json?name=orders").json()
    group = outage.get(f"{CLUSTER}/group.json?name=checkout-53").json()
    here = sum(row["lag"] for row in group["partitions"] if row["topic"] == "orders")
    reader = next(row for row in data["readers"] if row["group"] == "checkout-53")
    assert reader["lag_in_topic"] == here > 0
    assert [row["partition"] for row in data["partition_views"]] == list(range(6))
    assert data["partition_views"][0]["log_end"] == 964


def test_a_topic_that_nobody_knows_is_not_found(outage: TestClient) -> None:
    assert outage.get(f"{CLUSTER}/topic?name=nothing").status_code == 404


def test_the_map_has_each_partition_below_its_leader(outage: TestClient) -> None:
    text = outage.get(f"{CLUSTER}/offsets-topic").text
    partitions = outage.get(f"{CLUSTER}/offsets-topic.json").json()["partitions"]
    lost = [row["partition"] for row in partitions if row["health"] == "no_leader"]
    of_lost, of_broker = text.split("<h3>")[1:3]
    assert len(lost) == 17
    for number in range(50):
        assert (f"<b>{number}</b>" in of_lost) == (number in lost)
        assert (f"<b>{number}</b>" in of_broker.split("<table>")[0]) == (number not in lost)


def test_a_partition_of_the_map_leads_to_its_groups(outage: TestClient) -> None:
    data = outage.get(f"{CLUSTER}/groups.json?offsets-partition=25").json()
    assert {row["group"] for row in data["groups"]} == {"checkout-130", "checkout-293", "checkout-8"}
    assert outage.get(f"{CLUSTER}/groups.json?coordinator=1").json()["count"] == 6
