"""Days of scrapes to attributed traffic on Spark: right, to the byte, without reading old scrapes again."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bench.traffic_truth import compare
from bench.traffic_week import CLUSTER, Size, Week, write
from pyspark.sql import SparkSession

from kelpie.cluster.mappings import MappingHistory
from kelpie.pipeline.storage.frames import ClusterTables
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.storage.parquet import write_rows
from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.traffic import tasks
from kelpie.pipeline.traffic.day import Day
from kelpie.pipeline.traffic.days import TrafficDays
from kelpie.places.place import move
from tests.pipeline.rows import NOON, at
from tests.pipeline.traffic.scrapes import Place, sample_rows

MADE = (
    "attributed_traffic",
    "attribution_gap",
    "traffic_closing",
    "traffic_opening",
    "unattributed_traffic",
)
OWN, LOST = ("t", 0, "own"), ("t", 0, "")
DAY_S = 86_400


class _Killed(BaseException):
    """No code of ours catches it."""


def make(spark: SparkSession, lake: Lake, cluster: str = CLUSTER) -> None:
    TrafficDays(ClusterTables(spark, lake, cluster), lambda: MappingHistory(())).make()


def versions(lake: Lake) -> dict[str, int]:
    return {name: lake.open(TABLES[name]).version() for name in MADE}


def rows(lake: Lake, table: str, cluster: str = CLUSTER) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = lake.rows(TABLES[table], cluster).to_pylist()
    return sorted(found, key=lambda row: str([row[name] for name in TABLES[table].key]))


@pytest.mark.parametrize(
    "seed", [9, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2, 3, 4, 5, 6, 7, 8, 10))]
)
def test_synthetic_days_are_attributed_right_and_conserved(
    seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    """Known truth: moves, restarts, lost labels, groups that go and come, consumers without a group.

    Seed 9 has most spans that only the next day can decide.
    """
    week, lake = Week(Size(partitions=60, days=2, scrape_s=120, seed=seed)), Lake(tmp_path)
    write(week, lake)
    make(spark, lake)
    score = compare(week, lake)
    assert (score.wrong, score.unbalanced) == (0, 0)
    assert score.decidable > 10_000
    assert score.share >= 0.999, score
    before = versions(lake)
    make(spark, lake)
    assert versions(lake) == before


class Scraped:
    """Scrapes that come in batches, into a lake of their own."""

    def __init__(self, lake: Lake) -> None:
        self.lake, self._batches = lake, 0

    def take_in(self, *scrapes: tuple[float, dict[Place, int]]) -> None:
        self._batches += 1
        table = TABLES["traffic_sample"]
        samples = [
            {"cluster": "c", "day": row["at"].date(), "is_stamped": True, **row}
            for second, values in scrapes
            for row in sample_rows(values, second)
        ]
        self.lake.open(table)
        files = write_rows(table, self.lake.path(table), "c", samples)
        self.lake.add(table, files, application="test", version=self._batches)


@pytest.fixture
def scraped(tmp_path: Path) -> Scraped:
    return Scraped(Lake(tmp_path / "tables"))


@pytest.fixture
def read_files(monkeypatch: pytest.MonkeyPatch) -> Callable[[], set[str]]:
    """The days of samples that tasks were told to read since the last call."""
    told: list[str] = []
    run = TrafficDays._run

    def watched(self: TrafficDays, what: str, inputs: list[Any], *more: object) -> list[Any]:
        told.extend(day.day for day in inputs if what in ("tasks.close", "tasks.grow"))
        return run(self, what, inputs, *more)

    monkeypatch.setattr(TrafficDays, "_run", watched)

    def since() -> set[str]:
        days = set(told)
        told.clear()
        return days

    return since


def days(*numbers: int) -> set[str]:
    return {str(at(number * DAY_S).date()) for number in numbers}


def test_new_day_goes_on_from_the_last_scrapes_without_reading_old_ones(
    spark: SparkSession, scraped: Scraped, read_files: Callable[[], set[str]]
) -> None:
    """The files of older days are even gone; a task that read them would fail. Growth goes over midnight."""
    lake = scraped.lake
    scraped.take_in((0, {OWN: 10, LOST: 1}), (60, {OWN: 15, LOST: 4}))
    make(spark, lake, "c")
    assert read_files() == days(0)
    for file in lake.files(TABLES["traffic_sample"], "c"):
        move(file, file.with_suffix(".away"))
    scraped.take_in((DAY_S, {OWN: 20, LOST: 6}))
    make(spark, lake, "c")
    assert read_files() == days(1)
    told = [(row["label"], row["began"], row["messages"]) for row in rows(lake, "attributed_traffic", "c")]
    assert sorted(told, key=str) == sorted(
        [
            (None, None, 10),
            (None, at(0), 5),
            (None, at(60), 5),
            ("", None, 1),
            ("", at(0), 3),
            ("", at(60), 2),
        ],
        key=str,
    )


def test_next_day_shows_that_a_group_has_kept_its_label(
    spark: SparkSession, scraped: Scraped, read_files: Callable[[], set[str]]
) -> None:
    """So what another consumer read up to midnight is not given to it. No sample of the old day is read."""
    lake = scraped.lake
    scraped.take_in((0, {OWN: 5, LOST: 1}), (60, {OWN: 6, LOST: 2}), (120, {OWN: 7, LOST: 3}))
    make(spark, lake, "c")
    last = [row for row in rows(lake, "unattributed_traffic", "c") if row["ended"] == at(120)]
    assert [row["beside"] for row in last] == [[{"group": "own", "messages": 1, "is_steady": None}]]
    read_files()
    versions_before = versions(lake)
    scraped.take_in((DAY_S, {OWN: 9, LOST: 4}))
    make(spark, lake, "c")
    assert read_files() == days(1)
    assert versions(lake)["attribution_gap"] > versions_before["attribution_gap"]


def test_late_scrape_splits_its_span_and_what_goes_on_from_it(
    spark: SparkSession, scraped: Scraped, read_files: Callable[[], set[str]], tmp_path: Path
) -> None:
    """The tables are those of scrapes that came in order, and days that do not depend on it stay."""
    in_order = Scraped(Lake(tmp_path / "in order"))
    scrapes: list[tuple[float, dict[Place, int]]] = [
        (0.0, {OWN: 1}),
        (60.0, {OWN: 5, LOST: 2}),
        (DAY_S + 0.0, {OWN: 9, LOST: 3}),
    ]
    scrapes += [(2 * DAY_S + 0.0, {OWN: 11, LOST: 3}), (3 * DAY_S + 0.0, {OWN: 12, LOST: 4})]
    in_order.take_in(*scrapes)
    make(spark, in_order.lake, "c")
    late = scrapes.pop(2)
    scraped.take_in(*scrapes)
    make(spark, scraped.lake, "c")
    read_files()
    scraped.take_in(late)
    make(spark, scraped.lake, "c")
    # Day 3 keeps two scrapes of day 2 at most, so it does not depend on day 1.
    assert read_files() == days(1, 2)
    for table in ("attributed_traffic", "attribution_gap", "unattributed_traffic"):
        assert rows(scraped.lake, table, "c") == rows(in_order.lake, table, "c")


def test_run_that_was_killed_between_two_tables_goes_on(
    spark: SparkSession, scraped: Scraped, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each day has its number in the commit of its rows."""
    lake = scraped.lake
    scraped.take_in((0, {OWN: 10, LOST: 1}), (60, {OWN: 15, LOST: 4}))
    replace = Lake.replace_parts

    def killed(self: Lake, table: Any, *arguments: Any, **named: Any) -> None:
        if table.name == "unattributed_traffic":
            raise _Killed
        replace(self, table, *arguments, **named)

    with monkeypatch.context() as patched:
        patched.setattr(Lake, "replace_parts", killed)
        with pytest.raises(_Killed):
            make(spark, lake, "c")
    make(spark, lake, "c")
    assert sum(row["messages"] for row in rows(lake, "attributed_traffic", "c")) == 19
    (first, second) = rows(lake, "attribution_gap", "c")
    assert (first["began"], second["began"], second["ended"]) == (None, NOON, at(60))


def test_day_is_read_in_slices(spark: SparkSession, tmp_path: Path) -> None:
    """A day may be larger than memory."""
    week = Week(Size(partitions=20, days=1, scrape_s=300))
    lake = Lake(tmp_path)
    write(week, lake)
    make(spark, lake)
    whole = rows(lake, "attributed_traffic")
    day = next(iter(lake.files_by(TABLES["traffic_sample"], CLUSTER, "day")))
    files = [str(file) for file in lake.files(TABLES["traffic_sample"], CLUSTER)]
    folders = {name: str(tmp_path / "slices" / name) for name in MADE}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tasks, "ROWS_AT_ONCE", 1_000)
        written = tasks.grow(Day(CLUSTER, day, folders, files))
    counted = sum(file.rows for file in written["attributed_traffic"])
    assert counted == sum(row["how"] == "counted" for row in whole)
