"""offset_regression and traffic, which follow from commit_timeline alone."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kelpie.pipeline.transforms.windows import following

_POSITION = ["cluster", "group", "topic", "partition"]


def regressions(timeline: DataFrame) -> DataFrame:
    """Rows of offset_regression: commits to a lower offset, and when the group was back at the old one."""
    by_position = Window.partitionBy(*_POSITION).orderBy("offsets_partition", "log_offset")
    behind = following(
        Window.partitionBy(*_POSITION).orderBy(F.desc("offsets_partition"), F.desc("log_offset"))
    )
    # Commits at or above all earlier ones: the first of these after a rewind ends the regression.
    high = F.max("offset").over(by_position.rowsBetween(Window.unboundedPreceding, -1))
    marked = timeline.withColumn("high", high).withColumn(
        "beyond", F.when(F.col("offset") >= F.col("high"), F.col("committed"))
    )
    regained = F.last("beyond", ignorenulls=True).over(behind)
    # Offsets that were reset from outside have no leader epoch. Commits of old clients never have one.
    by_member = F.col("leader_epoch").isNotNull() | F.col("is_transactional")
    by = F.when(by_member, F.lit("member")).when(F.col("previous_leader_epoch").isNotNull(), F.lit("reset"))
    return (
        marked.withColumn("regained", regained)
        .where(F.col("advance") < 0)
        .select(
            *_POSITION,
            F.col("committed").alias("at"),
            F.col("previous_offset").alias("from_offset"),
            F.col("offset").alias("to_offset"),
            (-F.col("advance")).alias("replayed"),
            "regained",
            by.alias("by"),
        )
    )


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
