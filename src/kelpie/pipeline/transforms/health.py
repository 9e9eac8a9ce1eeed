"""group_health: one row per group with its state at the end of what is known."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kelpie.pipeline.transforms.lag import number

_GROUP = ["cluster", "group"]
_RANK = ("notice", "warning", "critical")


def shown(snapshot: DataFrame) -> DataFrame:
    """cluster, group, topic, partition, offset: committed offsets in the newest snapshot of each group."""
    position = [*_GROUP, "topic", "partition"]
    committed = snapshot.where((F.col("kind") == "committed") & F.col("group").isNotNull())
    rows = committed.select(*position, "snapshot", "at", number("offset").alias("offset"))
    newest = rows.groupBy(*_GROUP).agg(F.max(F.struct("at", "snapshot")).alias("newest"))
    newest_rows = rows.join(newest, _GROUP).where(F.col("snapshot") == F.col("newest.snapshot"))
    return newest_rows.where(F.col("offset") >= 0).groupBy(*position).agg(F.max("offset").alias("offset"))


def health(
    cases: DataFrame,
    *,
    findings: DataFrame,
    generations: DataFrame,
    rebalances: DataFrame,
    timeline: DataFrame,
    lag: DataFrame,
    shown: DataFrame,
    now: Column,
) -> DataFrame:
    """Rows of group_health. `cases`: what the doctor knows of each group beside its findings.

    `shown`: committed offsets by snapshots, see the function of that name.
    """
    position = [*_GROUP, "topic", "partition"]
    last = timeline.groupBy(*position).agg(
        F.max_by("offset", F.struct("offsets_partition", "log_offset")).alias("offset"),
        F.max("committed").alias("committed"),
    )
    newest = lag.groupBy(*position).agg(
        F.max_by("lag", "at").alias("lag"), F.max_by("lag_ms", "at").alias("lag_ms")
    )
    behind = newest.groupBy(*_GROUP).agg(F.sum("lag").alias("lag"), F.max("lag_ms").alias("lag_ms"))
    # Positions come from commits that were read; where there are none, from snapshots.
    others = shown.join(last.select(*position), position, "left_anti")
    positions = last.unionByName(others, allowMissingColumns=True)
    committed = positions.groupBy(*_GROUP).agg(
        F.max("committed").alias("last_commit"), F.count("offset").cast("int").alias("partitions")
    )
    epochs = generations.groupBy(*_GROUP).agg(
        F.max_by("generation", F.struct("incarnation", "generation")).alias("generation"),
        F.max_by("members", F.struct("incarnation", "generation")).alias("written_members"),
    )
    counts = rebalances.groupBy(*_GROUP).agg(F.count(F.lit(1)).alias("rebalances"))
    worst = F.max(F.array_position(F.array(*map(F.lit, _RANK)), F.col("severity")).cast("int"))
    worst_findings = (
        findings.where(F.col("group").isNotNull())
        .groupBy(*_GROUP)
        .agg(F.array_sort(F.collect_set("code")).alias("findings"), worst.alias("rank"))
    )
    joined = cases
    for other in (committed, behind, epochs, counts, worst_findings):
        joined = joined.join(other, _GROUP, "left")
    return joined.select(
        *_GROUP,
        now.alias("at"),
        "offsets_partition",
        "state",
        F.coalesce("member_count", "written_members").alias("members"),
        "generation",
        F.coalesce("rebalances", F.lit(0)).alias("rebalances"),
        "last_commit",
        F.coalesce("partitions", F.lit(0)).alias("partitions"),
        "lag",
        "lag_ms",
        # Spark takes element_at of an array without nulls for never null, although the rank may be null: then
        # a healthy group would have any of the words.
        F.try_element_at(F.array(*map(F.lit, _RANK)), F.col("rank")).alias("worst"),
        F.coalesce("findings", F.array().cast("array<string>")).alias("findings"),
        "known_from",
        "is_listed",
    )
