"""What a look adds to the history of a group, and pages of the past."""

from math import isnan

import pytest
from starlette.testclient import TestClient

from kelpie.model.time import Instant, iso_time
from kelpie.observations import Commit, Committed, Generation, Listing, LogEnds, Observations
from kelpie.web.measures import measured
from tests.doctor.building import MINUTE, NOW, a_broker, a_member, a_state, an_offsets_topic
from tests.web.looking import a_snapshot, a_watch
from tests.web.watching import client


def observed(
    at: Instant,
    offset: int,
    end: int,
    *,
    commits: tuple[Commit, ...] = (),
    generations: tuple[Generation, ...] = (),
    dead: int | None = None,
) -> Observations:
    return Observations(
        brokers=[a_broker(node, alive=node != dead) for node in (1, 2, 3)],
        partitions=an_offsets_topic(),
        listings=[Listing(node, ("billing",), at=at, source=f"broker {node}") for node in (1, 2, 3)],
        states=[a_state("Stable", a_member("app-1", 0), at=at)],
        committed=[Committed("billing", "orders", 0, offset, at=at, source="broker 1")],
        ends=[LogEnds("orders", 0, 0, end, end, at=at, source="broker 1")],
        commits=list(commits),
        generations=list(generations),
    )


def test_rates_come_from_two_looks() -> None:
    """600 records in a minute; the first look has no rate, since nothing was before."""
    first = a_snapshot(observed(NOW - MINUTE, 1_000, 1_000), NOW - MINUTE)
    second = a_snapshot(observed(NOW, 1_600, 2_000), NOW)
    [(_, at_first)] = measured(first, None)
    [(group, numbers)] = measured(second, first)
    assert group == "billing"
    assert isnan(at_first.records)
    assert numbers.records == 10.0
    assert numbers.lag == 400
    assert numbers.members == 1
    assert isnan(numbers.commits), "the offsets topic was not read"


def test_commits_and_rebalances_since_the_look_before_are_counted() -> None:
    before = NOW - MINUTE
    commits = tuple(
        Commit("billing", topic, 0, 5, at, source="__consumer_offsets-1@1")
        for at in (NOW - 10 * MINUTE, NOW - 30_000, NOW - 20_000, NOW - 10_000)
        for topic in ("orders", "payments")
    )
    generations = (
        Generation("billing", 1, (a_member("a"),), at=NOW - 5 * MINUTE),
        Generation("billing", 2, (a_member("b"),), at=NOW - 30_000),
        Generation("billing", 3, (a_member("c"),), at=NOW - 5_000),
    )
    first = a_snapshot(observed(before, 5, 5, commits=commits[:2], generations=generations[:1]), before)
    second = a_snapshot(observed(NOW, 5, 5, commits=commits, generations=generations), NOW)
    [(_, numbers)] = measured(second, first)
    assert numbers.commits == 3.0, "one request commits both topics"
    assert numbers.rebalances == 2


def test_a_reset_is_no_progress() -> None:
    first = a_snapshot(observed(NOW - MINUTE, 1_000, 2_000), NOW - MINUTE)
    [(_, numbers)] = measured(a_snapshot(observed(NOW, 0, 2_000), NOW), first)
    assert numbers.records == 0


@pytest.fixture
def browser() -> TestClient:
    """Ten looks, one a minute; in the fifth, broker 2 was dead."""
    times = [(number, NOW - (9 - number) * MINUTE) for number in range(10)]
    looks = [(at, observed(at, 100 * number, 1000, dead=2 if number == 5 else None)) for number, at in times]
    return client([a_watch(*looks)])


def test_a_time_in_the_address_picks_the_nearest_look(browser: TestClient) -> None:
    dead_at = iso_time(NOW - 4 * MINUTE + 10_000)
    then = browser.get("/clusters/main/overview.json", params={"at": dead_at}).json()
    assert then["looked_at"] == iso_time(NOW - 4 * MINUTE)
    assert then["summary"].startswith("CRITICAL: 17 of 50 partitions of __consumer_offsets have no leader")
    page = browser.get("/clusters/main/overview", params={"at": dead_at}).text
    assert "This is how it was at" in page
    assert 'href="?">To now' in page
    assert "data-renew-s" not in page, "the past stays as it is"
    assert f'/clusters/main/brokers?at={iso_time(NOW - 4 * MINUTE).replace(":", "%3A")}"' in page
    now = browser.get("/clusters/main/overview.json").json()
    assert "no leader" not in now["summary"]


def test_a_time_that_is_none_shows_the_last_look(browser: TestClient) -> None:
    page = browser.get("/clusters/main/groups", params={"at": "<b>"})
    assert page.status_code == 200
    assert "This is how it was" not in page.text


def test_the_history_of_a_group_goes_back_to_the_first_look(browser: TestClient) -> None:
    data = browser.get("/clusters/main/group.json?name=billing").json()["history"]
    assert [value for _, value in data["lag"]] == [1000 - 100 * number for number in range(10)]
    assert [value for _, value in data["records_per_second"]] == pytest.approx([100 / 60] * 9)
    page = browser.get("/clusters/main/group?name=billing").text
    assert page.count('<svg viewBox="0 0 560 180" class="chart"') >= 3


def test_a_part_of_the_history_is_chosen_by_the_address(browser: TestClient) -> None:
    part = {"from": iso_time(NOW - 6 * MINUTE), "to": iso_time(NOW - 3 * MINUTE)}
    data = browser.get("/clusters/main/group.json", params={"name": "billing", **part}).json()["history"]
    assert [value for _, value in data["lag"]] == [700, 600, 500, 400]
    page = browser.get("/clusters/main/group", params={"name": "billing", **part}).text
    for word in ("Earlier", "Later", "Closer", "Wider", "Everything"):
        assert f">{word}</a>" in page
