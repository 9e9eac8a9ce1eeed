"""commit_timeline: which commits counted."""

from itertools import takewhile
from typing import Any

from pyspark.sql import SparkSession

from kelpie.pipeline.transforms.commits import timeline
from tests.pipeline.rows import commit, frame, marker


def counted(
    spark: SparkSession, commits: list[dict[str, Any]], markers: list[dict[str, Any]] | None = None
) -> list[tuple[int, int | None, int | None]]:
    rows = timeline(frame(spark, "offset_commit", commits), frame(spark, "transaction_marker", markers or []))
    return sorted((row["log_offset"], row["offset"], row["advance"]) for row in rows.collect())


def transactional(log_offset: int, offset: int, producer_id: int = 7, **more: Any) -> dict[str, Any]:
    return commit(
        log_offset, offset, is_transactional=True, producer_id=producer_id, producer_epoch=0, **more
    )


def test_each_commit_is_compared_with_the_one_before(spark: SparkSession) -> None:
    """Regressions and rates follow from it."""
    rows = [commit(1, 10), commit(2, 25), commit(3, 5), commit(4, 100, partition=1)]
    assert counted(spark, rows) == [(1, 10, None), (2, 25, 15), (3, 5, -20), (4, 100, None)]


def test_copies_of_a_record_count_once(spark: SparkSession) -> None:
    """Three replicas hold the same record, and so does the topic."""
    copies = [commit(1, 10, replica=replica, source=f"disk {replica}") for replica in (1, 2, 3)]
    assert counted(spark, copies) == [(1, 10, None)]


def test_newest_leader_is_right_where_replicas_differ(spark: SparkSession) -> None:
    """A dead leader's last records were never replicated; its successor wrote others at the same offsets."""
    dead = [commit(number, 10 * number, replica=1, log_epoch=4) for number in range(1, 6)]
    alive = [commit(number, 10 * number, replica=2, log_epoch=4) for number in range(1, 3)]
    alive += [commit(3, 21, replica=2, log_epoch=5), commit(4, 22, replica=2, log_epoch=5, topic="u")]
    assert counted(spark, dead + alive) == [(1, 10, None), (2, 20, 10), (3, 21, 1), (4, 22, None)]


def test_copies_cost_no_shuffle_of_their_own(spark: SparkSession) -> None:
    """Plain commits, nearly all there are, are shuffled once: by position."""
    small = frame(spark, "offset_commit", [commit(1, 10)]), frame(spark, "transaction_marker", [])
    # As rows of a table, of which the planner does not know how few they are.
    commits, markers = (spark.createDataFrame(few.rdd, few.schema) for few in small)
    lines = timeline(commits, markers)._jdf.queryExecution().executedPlan().toString().splitlines()
    union = next(number for number, line in enumerate(lines) if line.endswith("+- Union"))
    column = lines[union + 1].index(":-")
    plain = list(takewhile(lambda line: line[column] == ":", lines[union + 1 :]))
    assert any("Scan" in line for line in plain)
    assert not [line for line in plain if "Exchange hash" in line and "group#" in line]


def test_transactional_commit_counts_once_it_is_committed(spark: SparkSession) -> None:
    """An aborted commit never counts, an open one not yet; each producer has its own marker."""
    rows = [transactional(1, 10), transactional(2, 20, 8), transactional(5, 30), transactional(6, 40, 9)]
    markers = [marker(3, 7, is_commit=True), marker(4, 8, is_commit=False), marker(7, 7, is_commit=False)]
    assert counted(spark, rows, markers) == [(1, 10, None)]


def test_next_marker_decides_not_a_later_one(spark: SparkSession) -> None:
    """The same producer aborts one transaction and commits the next."""
    rows = [transactional(1, 10), transactional(3, 20)]
    markers = [marker(2, 7, is_commit=False), marker(4, 7, is_commit=True)]
    assert counted(spark, rows, markers) == [(3, 20, None)]


def test_order_of_the_log_decides_between_plain_and_transactional(spark: SparkSession) -> None:
    """A transaction replaces only what was written before its own record."""
    rows = [transactional(1, 10), commit(2, 50)]
    assert counted(spark, rows, [marker(3, 7, is_commit=True)]) == [(1, 10, None), (2, 50, 40)]


def test_removal_takes_along_what_was_pending(spark: SparkSession) -> None:
    """Kafka drops pending commits of a key with its plain tombstone."""
    rows = [transactional(1, 10), commit(2, None)]
    assert counted(spark, rows, [marker(3, 7, is_commit=True)]) == [(2, None, None)]
