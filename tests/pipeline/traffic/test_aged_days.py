"""Traffic by group of a lake that keeps its rows for some days: what is kept is what it would be anyway."""

from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kelpie.pipeline.graph import JOBS
from kelpie.pipeline.retention.aging import age
from kelpie.pipeline.retention.keep import Keep
from kelpie.pipeline.storage.frames import ClusterTables
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import TABLES
from tests.pipeline.rows import at
from tests.pipeline.traffic.scrapes import Place
from tests.pipeline.traffic.test_days import DAY_S, LOST, MADE, OWN, Scraped, days, make, rows

KEEP = Keep({"bronze": timedelta(days=1), "silver": timedelta(days=2), "gold": timedelta(days=3)})
TRAFFIC = [job for job in JOBS if set(MADE) <= set(job.outputs)]
LAST = 5


def scrapes_of(day: int) -> list[tuple[float, dict[Place, int]]]:
    """Both series grow at noon and a minute later: over midnight, too."""
    first = 100 * day
    return [
        (day * DAY_S, {OWN: first + 10, LOST: day + 1}),
        (day * DAY_S + 60, {OWN: first + 15, LOST: day + 4}),
    ]


@pytest.mark.wide
def test_days_that_are_kept_have_the_traffic_that_they_would_have_otherwise(
    spark: SparkSession, tmp_path: Path
) -> None:
    aged, whole = Scraped(Lake(tmp_path / "aged")), Scraped(Lake(tmp_path / "whole"))
    gone: Counter[str] = Counter()
    for day in range(LAST + 1):
        for scraped in (aged, whole):
            scraped.take_in(*scrapes_of(day))
        make(spark, aged.lake, "c")
        gone.update(age(ClusterTables(spark, aged.lake, "c"), KEEP, at(day * DAY_S), jobs=TRAFFIC))
    make(spark, whole.lake, "c")
    assert gone.keys() >= {"traffic_sample", "attributed_traffic", "traffic_closing"}
    for name in MADE:
        since = KEEP.since(TABLES[name].layer, at(LAST * DAY_S))
        kept = {day for day in days(*range(LAST + 1)) if day >= str(since)}
        expected = [row for row in rows(whole.lake, name, "c") if str(row["day"]) in kept]
        assert expected, name
        assert [row for row in rows(aged.lake, name, "c") if str(row["day"]) in kept] == expected, name
    assert {str(row["day"]) for row in rows(aged.lake, "traffic_sample", "c")} == days(4, 5)
    assert {str(row["day"]) for row in rows(aged.lake, "attributed_traffic", "c")} == days(2, 3, 4, 5)
