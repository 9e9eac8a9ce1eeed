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
    # Several disks or outputs may have ends of the same time.
    return merged_ends(rows)


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


def held(timeline: DataFrame) -> DataFrame:
    """From when to when each committed offset counted; `is_last`: no later commit of the position was read.

    cluster, topic, partition, group, offsets_partition, log_offset, began, ended, is_last, offset.
    """
    by_position = Window.partitionBy(*_POSITION, "group").orderBy("offsets_partition", "log_offset")
    return timeline.select(
        *_POSITION,
        "group",
        "offsets_partition",
        "log_offset",
        F.col("committed").alias("began"),
        F.lead("committed").over(by_position).alias("ended"),
        F.lead("log_offset").over(by_position).isNull().alias("is_last"),
        "offset",
    )


def lags(
    held: DataFrame,
    ends: DataFrame,
    *,
    surveyed: DataFrame | None = None,
    kept: DataFrame | None = None,
) -> DataFrame:
    """Rows of lag. `ends`: cluster, topic, partition, at, end_offset, stable_offset.

    `held`: committed offsets, from when to when each counted; at least one row of each position that has
    commits. `surveyed`: positions that surveys saw; they count for groups and partitions of which no commit
    was read. `kept`: offsets that ZooKeeper keeps; they count where neither of these tells.
    """
    observed = _with_lives(ends)
    newest = ends.groupBy(*_POSITION).agg(F.max("at").alias("last"))
    # The last committed offset holds until the last observation of the log.
    known = held.where(F.col("began").isNotNull() & F.col("offset").isNotNull()).join(newest, _POSITION)
    columns = [*_POSITION, "group", "at", "offset", "end_offset", "stable_offset", "life"]
    # Most groups commit every few seconds; some do not commit for months.
    rows = during(observed, known, _POSITION, last=F.col("last"), short_s=_SHORT_S).select(*columns)
    told = held.select(*_POSITION, "group").distinct()
    if surveyed is not None:
        of_surveys = surveyed.join(told, [*_POSITION, "group"], "left_anti")
        lives = observed.select(*_POSITION, "at", "life")
        rows = rows.unionByName(of_surveys.join(lives, [*_POSITION, "at"], "left").select(*columns))
        told = told.union(surveyed.select(*_POSITION, "group").distinct())
    if kept is not None:
        of_zookeeper = kept.join(told, [*_POSITION, "group"], "left_anti")
        of_dumps = during(observed, of_zookeeper, _POSITION, last=F.col("ended"), width_s=_SHORT_S)
        rows = rows.unionByName(of_dumps.select(*columns))
    return _in_time(rows, observed).select(
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


def carried_ends(ends: DataFrame, offsets: DataFrame, since: Column) -> DataFrame:
    """Observations of logs that matter for rows of lag at `since` and later: with `is_trimmed`.

    Those at `since` and later; and of those before, where the log ended when a group's offset was at its end
    or behind it. Of several that saw the same end, the last one. `offsets`: cluster, topic, partition,
    offset of all groups since then. `is_trimmed`: earlier observations of the same log are left out, which a
    group that goes back may need.
    """
    observed = _with_lives(ends)
    whole = Window.partitionBy(*_POSITION)
    is_before = F.col("at") < since
    of_log = F.max(F.when(is_before, F.col("life"))).over(whole)
    lowest = offsets.groupBy(*_POSITION).agg(F.min("offset").alias("lowest"))
    read_by_all = is_before & (F.col("life") == F.col("of_log")) & (F.col("end_offset") <= F.col("lowest"))
    last_before = F.max(F.when(is_before, F.col("at"))).over(whole)
    needed = F.when(F.col("lowest").isNull(), last_before).otherwise(
        F.max(F.when(read_by_all, F.col("at"))).over(whole)
    )
    judged = (
        observed.join(lowest, _POSITION, "left")
        .withColumn("of_log", of_log)
        .withColumn("needed_from", needed)
    )
    same_end = Window.partitionBy(*_POSITION, "life", "end_offset")
    in_log = is_before & (F.col("life") == F.col("of_log"))
    is_out = F.coalesce(F.col("at") < F.col("needed_from"), F.lit(False))
    is_trimmed = F.bool_or(in_log & (is_out | F.col("is_trimmed"))).over(whole)
    return (
        judged.withColumn("newest_of_end", F.max("at").over(same_end))
        .withColumn("is_trimmed", F.coalesce(is_trimmed, F.lit(False)))
        .where(~is_before | (in_log & ~is_out & (F.col("at") == F.col("newest_of_end"))))
        .select(*ends.columns)
    )


def merged_ends(ends: DataFrame) -> DataFrame:
    """Several observations of a log at one time: the highest end is the log's."""
    trimmed = [F.bool_or("is_trimmed").alias("is_trimmed")] if "is_trimmed" in ends.columns else []
    return ends.groupBy(*_POSITION, "at").agg(
        F.min("start_offset").alias("start_offset"),
        F.max("end_offset").alias("end_offset"),
        F.max("stable_offset").alias("stable_offset"),
        *trimmed,
    )


def _with_lives(ends: DataFrame) -> DataFrame:
    """With the number of the log's `life`: one that becomes shorter was created again, or was cut."""
    by_time = Window.partitionBy(*_POSITION).orderBy("at")
    is_shorter = F.col("end_offset") < F.lag("end_offset").over(by_time)
    begins = F.coalesce(is_shorter, F.lit(False)).cast("int")
    return ends.withColumn("begins", begins).withColumn("life", F.sum("begins").over(by_time)).drop("begins")


def _in_time(rows: DataFrame, observed: DataFrame) -> DataFrame:
    """Adds `lag_ms`: for how long the log has been longer than what the group has read.

    That is the time since the last observation in which the log ended at the group's offset or before.
    Without such an observation it is null. Within a life of the log, all of these are before the row's time.
    """
    observations = observed.select(
        *_POSITION, "life", F.col("end_offset").alias("mark"), F.col("at").alias("observed")
    )
    marked = rows.withColumn("mark", F.col("offset")).unionByName(observations, allowMissingColumns=True)
    by_mark = (
        Window.partitionBy(*_POSITION, "life")
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
