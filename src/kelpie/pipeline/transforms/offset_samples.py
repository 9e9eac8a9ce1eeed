"""offset_sample: what each survey saw of logs, and of groups' positions in them."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kelpie.pipeline.transforms.lag import SURVEYED

_PLACE = ["cluster", "source", "topic", "partition"]
_ENDS = "earliest bigint, latest bigint"
_SIZE = "size bigint, cleanup_policy string, is_tiered boolean, error int"
_COMMITTED = "offset bigint, leader_epoch int, error int"


def offset_samples(snapshot: DataFrame) -> DataFrame:
    """`snapshot`: rows of cluster_snapshot. A position counts at the time at which its log was asked.

    Ends that a survey knows of earlier times have no start offset: they are no samples.
    """
    surveyed = snapshot.where(F.col("snapshot").startswith(SURVEYED) & F.col("at").isNotNull()).select(
        "cluster",
        F.col("snapshot").alias("source"),
        F.regexp_extract("source", r"^broker -?\d+", 0).alias("broker"),
        *("kind", "group", "topic", "partition", "at", "body"),
    )
    ends = _parsed(surveyed, "ends", _ENDS).where("earliest >= 0 and latest >= 0")
    at = ends.groupBy(*_PLACE).agg(
        F.max("at").alias("at"),
        F.max("latest").alias("offset"),
        F.max("earliest").alias("start_offset"),
        F.max("broker").alias("broker"),
    )
    sizes = _parsed(surveyed, "size", _SIZE).where("size >= 0 and coalesce(error, 0) = 0")
    of_logs = sizes.select(
        *_PLACE,
        "size",
        _is_whole().alias("is_whole"),
    ).dropDuplicates(_PLACE)
    logs = at.join(of_logs, _PLACE, "left")
    positions = (
        _parsed(surveyed, "committed", _COMMITTED)
        .where("offset >= 0 and coalesce(error, 0) = 0 and group is not null")
        .select(*_PLACE, "group", "offset", "leader_epoch")
        .join(at.select(*_PLACE, "at"), _PLACE)
    )
    rows = logs.unionByName(positions, allowMissingColumns=True).withColumn("day", F.to_date("at"))
    return rows.sortWithinPartitions("day", "at")


def _parsed(rows: DataFrame, kind: str, schema: str) -> DataFrame:
    """The rows of a kind, with these fields of their bodies."""
    body = F.from_json("body", schema)
    return rows.where(F.col("kind") == kind).withColumn("fields", body).select("*", "fields.*").drop("body")


def _is_whole() -> Column:
    """Only then does a size tell what was appended. Null: the setting is not known."""
    policy = F.col("cleanup_policy")
    return F.when(F.coalesce(F.col("is_tiered"), F.lit(False)), F.lit(False)).otherwise(policy == "delete")
