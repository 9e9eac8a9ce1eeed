"""Burrow's addresses, for programs that were written for Burrow."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from kelpie.evidence import read_evidence
from kelpie.examination import Examination
from kelpie.observations import Observations
from tests.evidence import unpacked
from tests.web.watching import pages

ROOT = "/v3/kafka"
GROUP = f"{ROOT}/main/consumer/checkout-53"


@pytest.fixture(scope="module")
def outage() -> Iterator[TestClient]:
    evidence = read_evidence([unpacked("kafka-4.3.1-coordinator-outage")])
    with pages(Examination(evidence=evidence), exporters=["burrow"]) as browser:
        yield browser


def test_clusters_topics_and_groups_are_listed(outage: TestClient) -> None:
    assert outage.get(ROOT).json()["clusters"] == ["main"]
    topics = outage.get(f"{ROOT}/main/topic").json()["topics"]
    assert {"orders", "__consumer_offsets"} <= set(topics)
    assert len(outage.get(f"{ROOT}/main/topic/orders").json()["offsets"]) == 6
    groups = outage.get(f"{ROOT}/main/consumer").json()["consumers"]
    assert len(groups) == 14
    assert "checkout-53" in outage.get(f"{ROOT}/main/topic/orders/consumers").json()["consumers"]


def test_a_group_without_a_coordinator_is_an_error(outage: TestClient) -> None:
    answer = outage.get(f"{GROUP}/lag").json()
    status = answer["status"]
    assert (answer["error"], answer["request"]["url"]) == (False, f"{GROUP}/lag")
    assert status["status"] == "ERR"
    assert status["partition_count"] == len(status["partitions"]) == 6
    assert status["totallag"] == sum(each["current_lag"] for each in status["partitions"]) == 5780
    assert status["maxlag"]["current_lag"] == max(each["current_lag"] for each in status["partitions"])
    ill = outage.get(f"{GROUP}/status").json()["status"]["partitions"]
    assert {each["status"] for each in ill} == {"REWIND"}, "only those that are not well"
    topics = outage.get(GROUP).json()["topics"]
    assert len(topics["orders"]) == 6


@pytest.mark.parametrize("path", ["other/consumer", "main/consumer/nobody", "main/topic/nothing"])
def test_what_is_unknown_is_an_error_of_burrows_form(outage: TestClient, path: str) -> None:
    answer = outage.get(f"{ROOT}/{path}")
    assert answer.status_code == 404
    assert answer.json()["error"] is True
    assert "not found" in answer.json()["message"]


def test_nothing_can_be_deleted(outage: TestClient) -> None:
    assert outage.delete(GROUP).status_code == 405


def test_without_the_option_the_addresses_are_not_there() -> None:
    with pages(Examination(evidence=Observations())) as browser:
        assert browser.get(ROOT).status_code == 404
