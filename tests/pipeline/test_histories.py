"""A group's history from tables, without Spark."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kelpie.pipeline.histories import GroupTables, Traffic
from kelpie.pipeline.storage.lake import Lake
from tests.pipeline.lakes import a_lake, at

NOW = 1_800_000_000_000
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


def lag_rows() -> Iterator[dict[str, Any]]:
    """A look a minute for two days; once, a look did not see partition 1; once, there is a peak."""
    for number in range(2 * DAY // MINUTE):
        time = NOW - 2 * DAY + number * MINUTE
        for partition in (0, 1):
            if number == 100 and partition == 1:
                continue
            lag = 50_000 if number == 777 else 10
            for group in ("billing", "other"):
                where = {
                    "group": group,
                    "topic": "orders",
                    "partition": partition,
                    "at": at(time + partition),
                }
                yield {**where, "lag": lag if group == "billing" else 1, "lag_ms": lag}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    place = {"topic": "orders", "partition": 0, "offsets_partition": 3, "is_transactional": False}
    commits = [
        {
            **place,
            "group": "billing",
            "log_offset": n,
            "committed": at(NOW - HOUR + n * 10_000),
            "offset": 100 * n,
        }
        | {"advance": 100 if n else None}
        for n in range(360)
    ]
    generation = {"group": "billing", "incarnation": 0}
    member = {"group": "billing", "client_id": "app", "began": at(NOW - DAY)}
    fetched = {"day": at(NOW).date(), "broker": "1", "topic": "orders", "partition": 0, "group": "billing"}
    return a_lake(
        tmp_path_factory.mktemp("lake"),
        {
            "lag": list(lag_rows()),
            "commit_timeline": commits,
            "traffic": [
                {
                    "group": "billing",
                    "topic": "orders",
                    "hour": at(NOW - n * HOUR),
                    "records": 7200,
                    "commits": 5,
                }
                for n in range(24 * 60)
            ],
            "group_generation": [
                {
                    **generation,
                    "generation": 1,
                    "began": at(NOW - 2 * DAY),
                    "ended": at(NOW - HOUR),
                    "members": 2,
                },
                {**generation, "generation": 2, "began": at(NOW - HOUR), "members": 1},
            ],
            "rebalance": [
                {"group": "billing", "started": at(NOW - HOUR), "to_generation": 2, "cause": "expired"}
                | {"duration_ms": 45_000, "reason": "heartbeat expiration", "left": ["app-2"], "joined": []},
                {"group": "other", "started": at(NOW - HOUR), "cause": "joined"},
            ],
            "membership_interval": [
                {**member, "member_id": "app-1"},
                {**member, "member_id": "app-2", "ended": at(NOW - HOUR), "left_because": "expired"},
            ],
            "attributed_traffic": [
                {**fetched, "how": "counted", "ended": at(NOW - 1000), "messages": 40, "bytes": 400},
                {**fetched, "how": "apportioned", "ended": at(NOW - 1000), "messages": 2, "bytes": 20},
                {**fetched, "group": "other", "how": "counted", "ended": at(NOW - 1000), "messages": 9},
            ],
        },
    )


@pytest.fixture
def tables(lake: Lake) -> GroupTables:
    return GroupTables(Lake(lake.root, read_only=True), "main")


def test_lag_is_that_of_one_group_over_all_its_partitions(tables: GroupTables) -> None:
    """A look that lacks a partition does not look like progress."""
    history = tables.history("billing", (NOW - 2 * DAY, NOW - 2 * DAY + 3 * HOUR))
    assert {value.value for value in history.lag} == {20}
    assert len(history.lag) == 180


def test_a_peak_is_seen_from_afar(tables: GroupTables) -> None:
    history = tables.history("billing", (NOW - 30 * DAY, NOW))
    assert max(value.value for value in history.lag) == 100_000
    assert max(value.value for value in history.lag_ms) == 50_000
    assert len(history.lag) < 250


def test_a_short_time_counts_single_commits_and_a_long_one_hours(tables: GroupTables) -> None:
    short = tables.history("billing", (NOW - HOUR, NOW))
    assert {value.value for value in short.records[1:-1]} == {10.0}
    assert {value.value for value in short.commits[1:-1]} == {6.0}
    long = tables.history("billing", (NOW - 30 * DAY, NOW))
    assert {round(value.value, 6) for value in long.records[1:-1]} == {2.0}
    assert not long.commits


def test_members_rebalances_and_who_left(tables: GroupTables) -> None:
    history = tables.history("billing", (NOW - DAY, NOW))
    assert [value.value for value in history.members] == [2, 1], "the generation before counts, too"
    [rebalance] = history.rebalances
    assert (rebalance.generation, rebalance.cause, rebalance.left) == (2, "expired", ("app-2",))
    [gone] = history.departures
    assert (gone.member, gone.why) == ("app", "expired")


def test_traffic_says_how_it_is_known(tables: GroupTables) -> None:
    found = tables.traffic("billing", (NOW - HOUR, NOW))
    assert {(each.how, each.messages, each.bytes) for each in found} == {
        ("counted", 40, 400),
        ("apportioned", 2, 20),
    }
    assert isinstance(found[0], Traffic)


def test_groups_of_a_past_time(tables: GroupTables) -> None:
    assert tables.lags_at(NOW - DAY)["billing"] == (20, 10)
    assert tables.members_at(NOW - DAY) == {"billing": 2}
    assert tables.lags_at(NOW - 30 * DAY) == {}


def test_what_is_known_has_a_beginning_and_an_end(tables: GroupTables) -> None:
    begin, end = tables.bounds() or (0, 0)
    assert begin == NOW - 59 * DAY - 23 * HOUR
    assert end == NOW
    assert tables.readers() == {"orders": ["billing", "other"]}


def test_a_group_that_nobody_knows_has_no_history(tables: GroupTables) -> None:
    assert tables.history("no'body", (NOW - DAY, NOW)).begin is None


def test_reading_creates_nothing(tmp_path: Path) -> None:
    """Tables of others may be on a disk that nobody may write to."""
    empty = GroupTables(Lake(tmp_path / "nothing", read_only=True), "main")
    assert empty.history("billing", (0, NOW)).begin is None
    assert empty.bounds() is None
    assert empty.readers() == {}
    assert empty.lags_at(NOW) == {}
    assert not (tmp_path / "nothing").exists()
