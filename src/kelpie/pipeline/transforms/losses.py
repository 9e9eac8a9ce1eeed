"""offset_loss: committed offsets that were removed, moved over records, or point outside of the log.

- expired, deleted: a removal. It is an expiry if the offset was as old as the cluster's retention of offsets,
  or as its commit asked for, and no log says that the group was deleted. The next commit of the group bounds
  how many records were skipped or replayed: it comes after some reading.
- skipped: an administrator moved the group forward. That is possible only while the group has no members, and
  such a commit has no leader epoch.
- below-log-start, beyond-log-end: the group's offset, compared with the last observation of the log.

Offsets that were set back are in offset_regression.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kelpie.pipeline.transforms.lag import ends
from kelpie.pipeline.transforms.windows import following

_GROUP = ["cluster", "group"]
_POSITION = [*_GROUP, "topic", "partition"]
_PARTITION = ["cluster", "topic", "partition"]
RETENTION = "offsets.retention.minutes"
_DEFAULT_MINUTES = 7 * 24 * 60
_SAME_MOMENT_MS = 60_000
_LOOKED_LATER_MS = 30_000
"""An end of a log that was observed at about the time of a commit may be older than the commit."""
REMOVED, DELETED = "broker: group-removed", "delete"
SKIPPED = "skipped"


def losses(
    timeline: DataFrame, generations: DataFrame, snapshot: DataFrame, log_events: DataFrame
) -> DataFrame:
    """Rows of offset_loss."""
    minutes = F.max(F.get_json_object("body", "$.value").try_cast("bigint"))
    is_retention = (F.col("kind") == "setting") & (F.get_json_object("body", "$.name") == RETENTION)
    retention = snapshot.where(is_retention).groupBy("cluster").agg(minutes.alias("minutes"))
    deleted = log_events.where(is_deletion()).select(*_GROUP, "at")
    return (
        removed(turns(timeline), retention, deleted)
        .unionByName(skipped(timeline, without_members(generations)), allowMissingColumns=True)
        .unionByName(stranded(lasts(timeline), newest_ends(ends(snapshot))), allowMissingColumns=True)
    )


def turns(timeline: DataFrame) -> DataFrame:
    """Removals, and the first commit after each: few, however many commits there are."""
    return timeline.where(F.col("offset").isNull() | F.col("previous_offset").isNull())


def lasts(timeline: DataFrame) -> DataFrame:
    """The last row of each position."""
    whole = F.struct(*(name for name in timeline.columns if name not in _POSITION))
    newest = F.max_by(whole, F.struct("offsets_partition", "log_offset"))
    rows = timeline.groupBy(*_POSITION).agg(newest.alias("newest")).select(*_POSITION, "newest.*")
    return rows.select(*timeline.columns)


def newest_ends(ends: DataFrame) -> DataFrame:
    """The last observation of each log: cluster, topic, partition, at, start_offset, end_offset."""
    return ends.groupBy(*_PARTITION).agg(
        F.max("at").alias("at"),
        F.max_by("start_offset", "at").alias("start_offset"),
        F.max_by("end_offset", "at").alias("end_offset"),
    )


def without_members(generations: DataFrame) -> DataFrame:
    """Times in which groups had no members: cluster, group, began, ended."""
    return generations.where((F.col("members") == 0) & (F.col("generation") > 0)).select(
        *_GROUP, "began", "ended"
    )


def is_deletion() -> Column:
    """Lines of logs that say that a group was deleted."""
    return (F.col("kind") == REMOVED) & F.col("reason").contains(DELETED)


def removed(turns: DataFrame, retention: DataFrame, deleted: DataFrame) -> DataFrame:
    """`retention`: cluster, minutes. `deleted`: cluster, group, at."""
    behind = following(
        Window.partitionBy(*_POSITION).orderBy(F.desc("offsets_partition"), F.desc("log_offset"))
    )
    next_one = F.last(
        F.when(F.col("offset").isNotNull(), F.struct("offset", "committed")), ignorenulls=True
    ).over(behind)
    gone = (
        turns.withColumn("next", next_one)
        .where(F.col("offset").isNull() & F.col("previous_offset").isNotNull())
        .withColumn("at", F.coalesce("committed", "previous_committed"))
        .where(F.col("at").isNotNull())
    )
    deletions = deleted.groupBy(*_GROUP).agg(F.collect_set("at").alias("deletions"))
    with_settings = gone.join(F.broadcast(retention), "cluster", "left").join(deletions, _GROUP, "left")
    allowed_ms = F.coalesce("minutes", F.lit(_DEFAULT_MINUTES)) * 60_000
    is_old = F.when(
        F.col("previous_expires").isNotNull(), F.col("at") >= F.col("previous_expires")
    ).otherwise(F.unix_millis("at") - F.unix_millis("previous_committed") >= allowed_ms)
    by_hand = F.exists(
        "deletions", lambda deleted: F.abs(F.unix_millis(deleted) - F.unix_millis("at")) <= _SAME_MOMENT_MS
    )
    expired = F.coalesce(is_old, F.lit(False)) & ~F.coalesce(by_hand, F.lit(False))
    moved = F.col("next.offset") - F.col("previous_offset")
    return with_settings.select(
        *_POSITION,
        "at",
        F.when(expired, F.lit("expired")).otherwise(F.lit("deleted")).alias("kind"),
        F.col("previous_offset").alias("offset"),
        F.abs(moved).alias("records"),
        F.col("next.offset").alias("next_offset"),
        F.col("next.committed").alias("resumed"),
        _effect(moved).alias("effect"),
    )


def skipped(timeline: DataFrame, empty: DataFrame) -> DataFrame:
    """`empty`: as `without_members` makes it."""
    jumps = timeline.where(
        (F.col("advance") > 0) & F.col("leader_epoch").isNull() & ~F.col("is_transactional")
    ).where(F.col("committed").isNotNull())
    meanwhile = [
        *(jumps[name] == empty[name] for name in _GROUP),
        jumps["committed"] >= empty["began"],
        empty["ended"].isNull() | (jumps["committed"] < empty["ended"]),
    ]
    return jumps.join(empty, meanwhile, "left_semi").select(
        *_POSITION,
        F.col("committed").alias("at"),
        F.lit(SKIPPED).alias("kind"),
        F.col("previous_offset").alias("offset"),
        F.col("advance").alias("records"),
        F.col("offset").alias("next_offset"),
        F.col("committed").alias("resumed"),
        F.lit(SKIPPED).alias("effect"),
    )


def stranded(lasts: DataFrame, newest: DataFrame) -> DataFrame:
    """`newest`: the last observation of each log."""
    now = lasts.select(*_POSITION, "offset", "committed")
    seen = now.join(newest, _PARTITION).where(
        F.unix_millis("at") - F.unix_millis("committed") >= _LOOKED_LATER_MS
    )
    below = F.col("start_offset") - F.col("offset")
    beyond = F.col("offset") - F.col("end_offset")
    return (
        seen.withColumn(
            "kind", F.when(below > 0, F.lit("below-log-start")).when(beyond > 0, F.lit("beyond-log-end"))
        )
        .where(F.col("kind").isNotNull())
        .select(*_POSITION, "at", "kind", "offset", F.greatest(below, beyond).alias("records"))
    )


def _effect(moved: Column) -> Column:
    return (
        F.when(moved > 0, F.lit(SKIPPED)).when(moved < 0, F.lit("replayed")).when(moved == 0, F.lit("none"))
    )
