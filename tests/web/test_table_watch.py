"""Pages from tables of the pipeline alone, without Spark."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from kelpie.model.time import iso_time
from kelpie.pipeline.results import NoTables, read_diagnosis
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import TABLES
from kelpie.places import place_of
from kelpie.web.table_watch import Tables, TableWatch, clusters_in
from tests.doctor.building import HOUR, MINUTE, NOW
from tests.pipeline.lakes import a_lake, at
from tests.web.looking import a_watch
from tests.web.test_measures import observed
from tests.web.watching import client, looked

EVIL = "<script>alert(1)</script>"
CLUSTER = "/clusters/main"


def health(group: str, **more: Any) -> dict[str, Any]:
    return {"group": group, "at": at(NOW), "offsets_partition": 3, "known_from": ["tables"], **more}


def finding(group: str | None, code: str, since: int, until: int | None = None) -> dict[str, Any]:
    words = {
        "name": "rewound",
        "severity": "warning",
        "summary": f"{group} went back.",
        "cause": group or "all",
    }
    times = {"since": at(since), "until": at(until) if until is not None else None}
    return {"group": group, "code": code, "evidence": [], "remedies": [], **words, **times}


def test_tables_without_a_cluster_are_named_as_that(tmp_path: Path) -> None:
    """`kelpie serve --tables DIR` asked for --tables, and the doctor spoke of several clusters."""
    a_lake(tmp_path, {"evidence_file": []})
    with pytest.raises(NoTables, match="tell of no cluster yet"):
        clusters_in(place_of(str(tmp_path)))
    with pytest.raises(NoTables, match="tell of no cluster yet"):
        read_diagnosis(place_of(str(tmp_path)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = {"topic": "orders", "partition": 0, "group": "billing"}
    generation = {"group": "billing", "incarnation": 0}
    lake = a_lake(
        tmp_path_factory.mktemp("tables"),
        {
            "evidence_file": [{"source": "a", "path": "/a", "size": 1, "kinds": ["log"], "batch": 1}],
            "group_health": [
                health(
                    "billing", lag=5, lag_ms=1000, members=1, state="Stable", last_commit=at(NOW - MINUTE)
                ),
                health(EVIL, lag=0),
            ],
            "findings": [
                finding("billing", "KLP308", NOW - 5 * HOUR),
                finding(EVIL, "KLP308", NOW - 9 * HOUR, NOW - 8 * HOUR),
            ],
            "lag": [
                {**place, "at": at(NOW - number * MINUTE), "lag": number, "lag_ms": number * 1000}
                for number in range(600)
            ],
            "commit_timeline": [
                {
                    **place,
                    "offsets_partition": 3,
                    "log_offset": 1,
                    "offset": 60,
                    "committed": at(NOW - MINUTE),
                    "is_transactional": False,
                }
            ],
            "cluster_snapshot": [
                {
                    "snapshot": "output of a tool",
                    "source": "broker 1",
                    "ordinal": 1,
                    "kind": "ends",
                    "at": at(NOW),
                    "topic": "orders",
                    "partition": 0,
                    "body": json.dumps(
                        {"topic": "orders", "partition": 0, "at": NOW, "earliest": 0, "latest": 62}
                    ),
                }
            ],
            "traffic": [
                {"group": EVIL, "topic": "orders", "hour": at(NOW - HOUR), "records": 1, "commits": 1}
            ],
            "group_generation": [
                {
                    **generation,
                    "generation": 1,
                    "began": at(NOW - 9 * HOUR),
                    "ended": at(NOW - HOUR),
                    "members": 4,
                },
                {**generation, "generation": 2, "began": at(NOW - HOUR), "members": 1},
            ],
            "coordinator_outage": [
                {
                    "offsets_partition": 7,
                    "began": at(NOW - 4 * HOUR),
                    "ended": at(NOW - 3 * HOUR),
                    "groups": ["billing"],
                }
            ],
        },
    )
    return Path(str(lake.root))


@pytest.fixture(scope="module")
def browser(folder: Path) -> Iterator[TestClient]:
    with TableWatch("main", Tables(folder, "main"), 3600, clock=lambda: NOW + HOUR) as watch:
        looked(watch)
        assert watch.failures == 0
        yield client([watch])


def test_overview_and_groups_come_from_tables(browser: TestClient) -> None:
    assert browser.get(f"{CLUSTER}/overview").status_code == 200
    rows = {row["group"]: row for row in browser.get(f"{CLUSTER}/groups.json").json()["groups"]}
    assert rows["billing"]["lag"] == 5
    assert rows["billing"]["state"] == "Stable"
    page = browser.get(f"{CLUSTER}/groups").text
    assert EVIL not in page
    assert "KLP308" in page


def test_a_group_has_the_history_of_its_tables(browser: TestClient) -> None:
    data = browser.get(f"{CLUSTER}/group.json?name=billing").json()
    lags = [value for _, value in data["history"]["lag"]]
    assert max(lags) == 599
    assert lags[-1] == 0
    assert [value for _, value in data["history"]["members"]] == [4, 1]
    assert browser.get(f"{CLUSTER}/group", params={"name": EVIL}).status_code == 200
    assert browser.get(f"{CLUSTER}/group?name=nobody").status_code == 404


def test_all_of_a_groups_page_says_the_same_lag(browser: TestClient) -> None:
    """The lag of `group_health` is the one that was last seen; the group has committed since."""
    data = browser.get(f"{CLUSTER}/group.json?name=billing").json()
    assert data["lag"] == 2
    assert [row["lag"] for row in data["partitions"]] == [2]
    assert "2 records left to read." in [step["text"] for step in data["journey"]]
    assert browser.get(f"{CLUSTER}/group.json", params={"name": EVIL}).json()["lag"] == 0


def test_a_time_shows_what_was_known_of_groups_then(browser: TestClient) -> None:
    """The finding of the other group was there at that time, and is over now."""
    then = iso_time(NOW - 8 * HOUR - 30 * MINUTE)
    data = browser.get(f"{CLUSTER}/groups.json", params={"at": then}).json()
    rows = {row["group"]: row for row in data["groups"]}
    assert rows["billing"]["lag"] == 510
    assert rows["billing"]["members"] == 4
    assert rows[EVIL]["worst"]["code"] == "KLP308"
    assert rows["billing"]["worst"] is None
    assert "This is how it was" in browser.get(f"{CLUSTER}/overview", params={"at": then}).text
    assert browser.get(f"{CLUSTER}/brokers", params={"at": then}).status_code == 200


def test_incidents_have_their_times(browser: TestClient) -> None:
    rows = browser.get(f"{CLUSTER}/incidents.json").json()["incidents"]
    outage = next(row for row in rows if row["name"] == "coordinator-outage")
    assert (outage["began"], outage["ended"]) == (iso_time(NOW - 4 * HOUR), iso_time(NOW - 3 * HOUR))
    assert outage["groups"] == ["billing"]
    assert "__consumer_offsets-7 without a leader" in browser.get(f"{CLUSTER}/incidents").text


@pytest.mark.parametrize("page", ["topics", "topic?name=orders", "brokers", "offsets-topic"])
def test_other_pages_show_what_tables_know(browser: TestClient, page: str) -> None:
    assert browser.get(f"{CLUSTER}/{page}").status_code == 200


def test_the_list_of_clusters_says_where_tables_end(browser: TestClient) -> None:
    """Else the end of last month would look like now."""
    assert "From tables that end at" in browser.get("/").text
    assert browser.get("/index.json").json()["clusters"][0]["tables_end"] == iso_time(NOW)


def test_tables_are_no_metrics(browser: TestClient) -> None:
    """They tell of the past: an alert on them would be late."""
    assert 'cluster="main"' not in browser.get("/metrics").text


def test_new_rows_are_shown_without_a_restart(
    folder: Path, tmp_path: Path, wait_until: Callable[..., None]
) -> None:
    lake = a_lake(
        tmp_path, {"evidence_file": [{"source": "a", "path": "/a", "size": 1, "kinds": [], "batch": 1}]}
    )
    with TableWatch("main", Tables(tmp_path, "main"), 0.05) as watch:
        looked(watch)
        rows = [{"cluster": "main", **health("new")}]
        Lake(lake.root).append_rows(TABLES["group_health"], "main", rows, application="later", version=9)
        wait_until(lambda: watch.latest is not None and [row.group for row in watch.latest.groups] == ["new"])
    assert folder != tmp_path


def test_a_live_cluster_goes_on_where_its_tables_end(folder: Path) -> None:
    live = a_watch(
        (NOW + MINUTE, observed(NOW + MINUTE, 5, 12)), (NOW + 2 * MINUTE, observed(NOW + 2 * MINUTE, 5, 20))
    )
    live.tables = Tables(folder, "main")
    data = client([live]).get(f"{CLUSTER}/group.json?name=billing").json()["history"]
    assert [value for _, value in data["lag"]][-3:] == [0, 7, 15]
    assert max(value for _, value in data["lag"]) == 599


def test_traffic_is_told_with_how_it_is_known(tmp_path: Path) -> None:
    fetched = {"day": at(NOW).date(), "broker": "1", "topic": "orders", "partition": 0, "group": "billing"}
    a_lake(
        tmp_path,
        {
            "evidence_file": [{"source": "a", "path": "/a", "size": 1, "kinds": [], "batch": 1}],
            "group_health": [health("billing"), health("quiet")],
            "group_generation": [
                {"group": "billing", "incarnation": 0, "generation": 1, "began": at(NOW - HOUR), "members": 1}
            ],
            "lag": [
                {"group": "billing", "topic": "orders", "partition": 0, "at": at(NOW - n * MINUTE), "lag": 1}
                for n in range(3)
            ],
            "attributed_traffic": [
                {**fetched, "how": "counted", "ended": at(NOW - n * MINUTE), "messages": 40, "bytes": 400}
                for n in range(2)
            ]
            + [{**fetched, "how": "apportioned", "ended": at(NOW - MINUTE), "messages": 2, "bytes": 20}],
        },
    )
    with TableWatch("main", Tables(tmp_path, "main"), 3600) as watch:
        looked(watch)
        browser = client([watch])
        rows = browser.get(f"{CLUSTER}/group.json?name=billing").json()["traffic"]
        page = browser.get(f"{CLUSTER}/group?name=billing").text
        quiet = browser.get(f"{CLUSTER}/group?name=quiet").text
    assert {(row["how"], row["messages"], row["bytes"]) for row in rows} == {
        ("counted", 80, 800),
        ("apportioned", 2, 20),
    }
    assert "An estimate, by committed offsets" in page
    chart, _, legend = page.partition('<svg class="line-key"')
    assert chart.count('class="line line-1"') == 1, "each way to know has its own line"
    assert re.findall(r"line line-([0-9]).*?</svg>(\w+)", legend) == [("0", "apportioned"), ("1", "counted")]
    assert "Nobody counted what this group fetched" in quiet
