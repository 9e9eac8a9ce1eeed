"""offset_regression, offset_loss, traffic, lag and the interval join that lag rests on."""

from datetime import datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kelpie.pipeline.transforms.commits import timeline
from kelpie.pipeline.transforms.intervals import during
from kelpie.pipeline.transforms.lag import held, lags
from kelpie.pipeline.transforms.losses import losses
from kelpie.pipeline.transforms.positions import regressions, traffic
from tests.pipeline.rows import at, commit, frame
from tests.pipeline.scenes import Scenes, by_group

ENDS = "cluster string, topic string, partition int, at timestamp, end_offset bigint, stable_offset bigint"


def told(spark: SparkSession, commits: list[dict[str, Any]]) -> DataFrame:
    return timeline(frame(spark, "offset_commit", commits), frame(spark, "transaction_marker", []))


def plain(moment: datetime) -> datetime:
    return moment.replace(tzinfo=None)


def test_rewind_tells_how_many_are_read_again_and_until_when(spark: SparkSession) -> None:
    """An administrator's reset carries no leader epoch, a consumer's commit does."""
    rows = [
        commit(1, 100, leader_epoch=3),
        commit(2, 40),
        commit(3, 90, leader_epoch=3),
        commit(4, 120, leader_epoch=3),
    ]
    (row,) = regressions(told(spark, rows)).collect()
    assert (row["from_offset"], row["to_offset"], row["replayed"], row["by"]) == (100, 40, 60, "reset")
    assert row["regained"] == plain(at(4))


def test_steady_consumer_has_no_regression(spark: SparkSession) -> None:
    """Commits of the same offset again and again are no rewind."""
    assert regressions(told(spark, [commit(1, 5), commit(2, 5), commit(3, 9)])).collect() == []


GONE = {"offset": None, "committed": None}
DAY = 24 * 3600
RETENTION = {
    "kind": "setting",
    "body": '{"of":"broker 1","name":"offsets.retention.minutes","value":"2880"}',
    "snapshot": "s",
    "ordinal": 0,
}
ENDS_OF_T = {
    "kind": "ends",
    "topic": "t",
    "partition": 0,
    "at": at(9 * DAY),
    "body": '{"earliest":100,"latest":9999}',
    "snapshot": "s",
    "ordinal": 1,
}
NOBODY = {"incarnation": 0, "generation": 2, "began": at(2.5), "ended": at(3.5), "members": 0}
LOST = Scenes()
LOST.add("old", offset_commit=[commit(1, 150), commit(2, None, written=at(2 * DAY + 1), committed=None)])
LOST.add("young", offset_commit=[commit(1, 150), commit(2, None, written=at(2 * DAY), committed=None)])
LOST.add(
    "asked",
    offset_commit=[commit(1, 150, expires=at(60)), commit(2, None, written=at(61), committed=None)],
)
LOST.add(
    "deleted",
    offset_commit=[commit(1, 150), commit(2, None, written=at(3 * DAY), committed=None)],
    log_event=[
        {"kind": "broker: group-removed", "reason": "deleted", "at": at(3 * DAY), "line": 1, "text": ""}
    ],
)
LOST.add(
    "latest",
    offset_commit=[
        commit(1, 200),
        {**commit(2, None, written=at(3 * DAY)), **GONE},
        commit(3, 900, committed=at(4 * DAY)),
    ],
)
LOST.add(
    "earliest",
    offset_commit=[
        commit(1, 200),
        {**commit(2, None, written=at(3 * DAY)), **GONE},
        {**commit(3, None, written=at(3 * DAY)), **GONE},
        commit(4, 120, committed=at(4 * DAY)),
    ],
)
LOST.add(
    "forward",
    offset_commit=[commit(1, 110), commit(2, 140), commit(3, 500), commit(4, 900)],
    group_generation=[NOBODY],
)
LOST.add("simple", offset_commit=[commit(1, 110), commit(3, 500), commit(4, 900)])
LOST.add("slow", offset_commit=[commit(1, 40)])
LOST.add("ahead", offset_commit=[commit(1, 10_059)])
LOST.add("quick", offset_commit=[commit(1, 10_005, committed=at(9 * DAY - 10))])


@pytest.fixture(scope="module")
def lost(spark: SparkSession) -> dict[str, list[tuple[Any, ...]]]:
    """By group: kind, offset, records, effect, where it went on."""
    rows = losses(
        told(spark, LOST.rows("offset_commit")),
        frame(spark, "group_generation", LOST.rows("group_generation")),
        frame(spark, "cluster_snapshot", [RETENTION, ENDS_OF_T]),
        frame(spark, "log_event", LOST.rows("log_event")),
    )
    names = ("kind", "offset", "records", "effect", "next_offset")
    found = by_group(rows.collect(), lambda row: (row["group"], row["at"]))
    return {group: [tuple(row[name] for name in names) for row in own] for group, own in found.items()}


Lost = dict[str, list[tuple[Any, ...]]]


def test_removal_after_the_retention_is_an_expiry(lost: Lost) -> None:
    """What the cluster says, or the commit itself; sooner, somebody did it."""
    assert lost["old"] == [("expired", 150, None, None, None)]
    assert lost["young"] == [("deleted", 150, None, None, None)]
    assert lost["asked"] == [("expired", 150, None, None, None)]


def test_old_offsets_of_a_group_that_was_deleted_did_not_expire(lost: Lost) -> None:
    """Both look the same in the offsets topic; a log of a broker tells."""
    assert lost["deleted"] == [("deleted", 150, None, None, None)]


def test_where_a_group_goes_on_tells_what_the_loss_cost(lost: Lost) -> None:
    """auto.offset.reset: latest skips, earliest replays."""
    assert lost["latest"] == [("expired", 200, 700, "skipped", 900)]
    assert lost["earliest"] == [("expired", 200, 80, "replayed", 120)]


def test_offsets_set_forward_while_nobody_is_there_skip_records(lost: Lost) -> None:
    """As kafka-consumer-groups --reset-offsets --to-latest does; who has no members only reads."""
    assert lost["forward"] == [("skipped", 140, 360, "skipped", 500)]
    assert "simple" not in lost


def test_positions_outside_of_the_log_are_losses(lost: Lost) -> None:
    """Retention of the log overtook the group, or an unclean election cut the log off."""
    assert lost["slow"] == [("below-log-start", 40, 60, None, None)]
    assert lost["ahead"] == [("beyond-log-end", 10_059, 60, None, None)]
    assert "quick" not in lost


def test_traffic_counts_what_was_read_not_what_was_read_again(spark: SparkSession) -> None:
    """A rewind is no negative traffic."""
    rows = [commit(1, 10), commit(2, 30), commit(3, 0), commit(4, 5)]
    (row,) = traffic(told(spark, rows)).collect()
    assert (row["records"], row["commits"]) == (25, 4)


def test_lag_is_that_of_the_commit_that_held_at_the_time(spark: SparkSession) -> None:
    """In offsets, in what readers of committed records may read, and in time."""
    ends = spark.createDataFrame(
        [("c", "t", 0, at(0), 50, 50), ("c", "t", 0, at(15), 100, 90), ("c", "t", 0, at(25), 120, 120)], ENDS
    )
    rows = sorted(
        lags(held(told(spark, [commit(10, 60), commit(20, 120)])), ends).collect(), key=lambda row: row["at"]
    )
    assert [(row["offset"], row["lag"], row["stable_lag"], row["lag_ms"]) for row in rows] == [
        (60, 40, 30, 15_000),
        (120, 0, 0, 0),
    ]


def test_what_nobody_knows_of_a_lag_is_null_and_not_0(spark: SparkSession) -> None:
    """No last stable offset was told, and nobody looked when the log ended where the group stands."""
    ends = spark.createDataFrame([("c", "t", 0, at(15), 100, None)], ENDS)
    (row,) = lags(held(told(spark, [commit(10, 60)])), ends).collect()
    assert (row["lag"], row["stable_lag"], row["lag_ms"]) == (40, None, None)


def test_topic_that_is_created_again_does_not_change_what_was_said_of_the_old_one(
    spark: SparkSession,
) -> None:
    """Its log is short again: that says nothing of how far groups were behind before."""
    ends = spark.createDataFrame(
        [("c", "t", 0, at(0), 50, 50), ("c", "t", 0, at(15), 100, 100), ("c", "t", 0, at(25), 10, 10)], ENDS
    )
    rows = lags(held(told(spark, [commit(10, 60)])), ends).collect()
    assert sorted((row["lag"], row["lag_ms"]) for row in rows) == [(0, 0), (40, 15_000)]


def test_every_sample_meets_its_interval_once_whatever_the_width(spark: SparkSession) -> None:
    """Buckets are for speed; they must not show."""
    intervals = spark.createDataFrame(
        [("a", at(0), at(7200), 1), ("a", at(7200), at(7201), 2), ("a", at(7201), None, 3)],
        "key string, began timestamp, ended timestamp, value int",
    )
    samples = spark.createDataFrame(
        [("a", at(seconds)) for seconds in (-1, 0, 3599, 7199, 7200, 7201, 99_999)],
        "key string, at timestamp",
    )
    for width_s, short_s in ((60, None), (3600, None), (100_000, None), (3600, 60), (7200, 3600)):
        found = during(samples, intervals, ["key"], last=F.lit(at(200_000)), width_s=width_s, short_s=short_s)
        values = [row["value"] for row in found.orderBy("at").collect()]
        assert values == [1, 1, 1, 2, 3, 3]
