"""lag: how far behind a group was, each time the end of a log was observed."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kelpie.pipeline.transforms.intervals import during

_POSITION = ["cluster", "topic", "partition"]
_SHORT_S = 300
ENDS = "ends"
"""The kind of rows that tell where a log ended."""
SURVEYED = "survey "
"""How the names of snapshots that `kelpie collect` took begin."""


def ends(snapshot: DataFrame) -> DataFrame:
    """Ends of logs by surveys, outputs of tools and disks.

    cluster, topic, partition, at, start_offset, end_offset, stable_offset.
    """
    observed = snapshot.where((F.col("kind") == ENDS) & F.col("at").isNotNull())
    rows = observed.select(
        "cluster",
        "topic",
        "partition",
        "at",
        number("earliest").alias("start_offset"),
        number("latest").alias("end_offset"),
        number("stable").alias("stable_offset"),
    ).where(F.col("end_offset").isNotNull())
    # Several disks or outputs may have ends of the same time: the highest is the log's.
    return rows.groupBy("cluster", "topic", "partition", "at").agg(
        F.min("start_offset").alias("start_offset"),
        F.max("end_offset").alias("end_offset"),
        F.max("stable_offset").alias("stable_offset"),
    )


def number(name: str) -> Column:
    """A field of the body."""
    return F.get_json_object("body", f"$.{name}").cast("bigint")


def surveyed_positions(snapshot: DataFrame) -> DataFrame:
    """Committed offsets with the ends that the same survey saw a moment later.

    cluster, group, topic, partition, at, offset, end_offset, stable_offset.
    """
    surveyed = snapshot.where(F.col("snapshot").startswith(SURVEYED) & F.col("at").isNotNull())
    place = ["cluster", "snapshot", "topic", "partition"]
    # Ends of earlier times in a survey have no start offset.
    now = surveyed.where((F.col("kind") == ENDS) & number("earliest").isNotNull())
    ends = now.groupBy(*place).agg(
        F.max("at").alias("at"),
        F.max(number("latest")).alias("end_offset"),
        F.max(number("stable")).alias("stable_offset"),
    )
    positions = surveyed.where(F.col("kind") == "committed").select(
        *place, "group", number("offset").alias("offset")
    )
    with_ends = positions.where(F.col("offset") >= 0).join(ends, place)
    return with_ends.where(F.col("end_offset").isNotNull()).drop("snapshot")


def lags(
    timeline: DataFrame,
    ends: DataFrame,
    *,
    surveyed: DataFrame | None = None,
    kept: DataFrame | None = None,
) -> DataFrame:
    """Rows of lag. `ends`: cluster, topic, partition, at, end_offset, stable_offset.

    `surveyed`: positions that surveys saw; they count for groups and partitions of which no commit was read.
    `kept`: offsets that ZooKeeper keeps; they count where neither of these tells.
    """
    by_position = Window.partitionBy(*_POSITION, "group").orderBy("offsets_partition", "log_offset")
    held = timeline.withColumn("ended", F.lead("committed").over(by_position)).select(
        *_POSITION, "group", F.col("committed").alias("began"), "ended", "offset"
    )
    newest = ends.groupBy(*_POSITION).agg(F.max("at").alias("last"))
    # The last committed offset holds until the last observation of the log.
    known = held.where(F.col("began").isNotNull() & F.col("offset").isNotNull()).join(newest, _POSITION)
    # Most groups commit every few seconds; some do not commit for months.
    rows = during(ends, known, _POSITION, last=F.col("last"), short_s=_SHORT_S)
    told = timeline.select(*_POSITION, "group").distinct()
    if surveyed is not None:
        of_surveys = surveyed.join(told, [*_POSITION, "group"], "left_anti")
        rows = rows.unionByName(of_surveys, allowMissingColumns=True)
        told = told.union(surveyed.select(*_POSITION, "group").distinct())
    if kept is not None:
        of_zookeeper = kept.join(told, [*_POSITION, "group"], "left_anti")
        rows = rows.unionByName(
            during(ends, of_zookeeper, _POSITION, last=F.col("ended"), width_s=_SHORT_S),
            allowMissingColumns=True,
        )
    return _in_time(rows, ends).select(
        "cluster",
        "group",
        "topic",
        "partition",
        "at",
        "offset",
        "end_offset",
        "stable_offset",
        _at_least_0(F.col("end_offset") - F.col("offset")).alias("lag"),
        _at_least_0(F.col("stable_offset") - F.col("offset")).alias("stable_lag"),
        "lag_ms",
    )


def _in_time(rows: DataFrame, ends: DataFrame) -> DataFrame:
    """Adds `lag_ms`: for how long the log has been longer than what the group has read.

    That is the time since the last observation in which the log ended at the group's offset or before.
    Without such an observation it is null.
    """
    observations = ends.select(*_POSITION, F.col("end_offset").alias("mark"), F.col("at").alias("observed"))
    marked = rows.withColumn("mark", F.col("offset")).unionByName(observations, allowMissingColumns=True)
    by_mark = (
        Window.partitionBy(*_POSITION)
        .orderBy("mark")
        .rangeBetween(Window.unboundedPreceding, Window.currentRow)
    )
    reached = F.max("observed").over(by_mark)
    behind = F.unix_millis("at") - F.unix_millis("reached")
    caught_up = F.col("end_offset") <= F.col("offset")
    return (
        marked.withColumn("reached", reached)
        .where(F.col("group").isNotNull())
        .withColumn("lag_ms", F.when(caught_up, F.lit(0)).otherwise(_at_least_0(behind)))
    )


def _at_least_0(number: Column) -> Column:
    """Null stays null: `greatest` would take what is not known for 0."""
    return F.when(number.isNotNull(), F.greatest(F.lit(0), number))
