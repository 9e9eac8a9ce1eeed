"""offset_regression and traffic, which follow from commit_timeline alone."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kelpie.pipeline.transforms.windows import following

_POSITION = ["cluster", "group", "topic", "partition"]
_IN_LOG = [*_POSITION, "offsets_partition"]
HIGH, BACK, LAST = "high", "back", "last"


def regressions(timeline: DataFrame) -> DataFrame:
    """Rows of offset_regression: commits to a lower offset, and when the group was back at the old one."""
    # Offsets that were reset from outside have no leader epoch. Commits of old clients never have one.
    by_member = F.col("leader_epoch").isNotNull() | F.col("is_transactional")
    by = F.when(by_member, F.lit("member")).when(F.col("previous_leader_epoch").isNotNull(), F.lit("reset"))
    return _regained(timeline).select(
        *_POSITION,
        F.col("committed").alias("at"),
        F.col("previous_offset").alias("from_offset"),
        F.col("offset").alias("to_offset"),
        (-F.col("advance")).alias("replayed"),
        "regained",
        by.alias("by"),
    )


def carried_positions(timeline: DataFrame, why: str) -> DataFrame:
    """Rows that matter for later ones, and why (a column of this name).

    Of each position the first one with the highest offset; commits that went back and were not regained; and
    the last one, which only says how far the position has been read.
    """
    whole = F.struct(*(name for name in timeline.columns if name not in _IN_LOG))
    both = timeline.groupBy(*_IN_LOG).agg(
        F.min_by(whole, F.when(F.col("offset").isNotNull(), F.struct(-F.col("offset"), "log_offset"))).alias(
            HIGH
        ),
        F.max_by(whole, "log_offset").alias(LAST),
    )
    of_high = both.where(F.col(f"{HIGH}.offset").isNotNull()).select(
        *_IN_LOG, f"{HIGH}.*", F.lit(HIGH).alias(why)
    )
    of_last = both.select(*_IN_LOG, f"{LAST}.*", F.lit(LAST).alias(why))
    open_ones = _regained(timeline).where(F.col("regained").isNull())
    columns = [*timeline.columns, why]
    return (
        of_high.select(*columns)
        .unionByName(of_last.select(*columns))
        .unionByName(open_ones.withColumn(why, F.lit(BACK)).select(*columns))
    )


def _regained(timeline: DataFrame) -> DataFrame:
    """Commits that went back, with `regained`."""
    by_position = Window.partitionBy(*_IN_LOG).orderBy("log_offset")
    behind = following(Window.partitionBy(*_IN_LOG).orderBy(F.desc("log_offset")))
    # Commits at or above all earlier ones: the first of these after a rewind ends the regression.
    high = F.max("offset").over(by_position.rowsBetween(Window.unboundedPreceding, -1))
    marked = timeline.withColumn("high", high).withColumn(
        "beyond", F.when(F.col("offset") >= F.col("high"), F.col("committed"))
    )
    regained = F.last("beyond", ignorenulls=True).over(behind)
    return marked.withColumn("regained", regained).where(F.col("advance") < 0)


def traffic(timeline: DataFrame) -> DataFrame:
    """Rows of traffic: records consumed by group, topic and hour."""
    return (
        timeline.where(F.col("offset").isNotNull() & F.col("committed").isNotNull())
        .groupBy("cluster", "group", "topic", F.date_trunc("hour", "committed").alias("hour"))
        .agg(
            F.sum(F.greatest(F.coalesce("advance", F.lit(0)), F.lit(0))).alias("records"),
            F.count(F.lit(1)).alias("commits"),
        )
    )
