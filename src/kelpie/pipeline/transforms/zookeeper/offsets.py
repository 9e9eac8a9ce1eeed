"""Committed offsets that ZooKeeper keeps, and from when to when each is known to have counted.

A node of a dump says when it was written. So its offset counted from then on, until the last dump that has
it. ConsumerOffsetChecker says the offset alone. Consumers commit every minute, or more often: what was
committed between two dumps is not known. So an offset counts a moment longer, for ends of logs that were
asked right before or after the dump, and no further.
"""

from datetime import timedelta

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kelpie.pipeline.transforms.zookeeper.events import GROUP
from kelpie.pipeline.transforms.zookeeper.snapshots import ZOOKEEPER_GROUP

_OFFSETS = "offsets array<struct<topic:string,partition:int,offset:bigint,modified:bigint>>"
_PLACE = [*GROUP, "topic", "partition"]
_MOMENT = timedelta(seconds=10)


def kept_offsets(snapshot: DataFrame) -> DataFrame:
    """cluster, group, topic, partition, offset, began, ended; without overlaps."""
    moment = F.lit(_MOMENT)
    looks = snapshot.where((F.col("kind") == ZOOKEEPER_GROUP) & F.col("group").isNotNull())
    stored = (
        looks.where(F.col("at").isNotNull())
        .select(*GROUP, "at", F.explode(F.from_json("body", _OFFSETS)["offsets"]).alias("node"))
        .select(*GROUP, "at", "node.*")
        .where(F.col("offset") >= 0)
    )
    by_time = Window.partitionBy(*_PLACE).orderBy("written")
    known = _without_covered(stored)
    began = F.greatest(F.col("written") - moment, F.lag("until").over(by_time))
    return known.withColumn("until", F.col("seen") + moment).select(
        *_PLACE,
        "offset",
        F.least(began, F.col("written")).alias("began"),
        F.least(F.col("until"), F.lead("written").over(by_time)).alias("ended"),
    )


def _without_covered(stored: DataFrame) -> DataFrame:
    """Each offset with when it was written, as far as known, and when it was seen last.

    What a tool says is left out where a dump has shown that nothing was written in between.
    """
    # A clock of ZooKeeper's that is ahead must not put the beginning behind the dump.
    written = F.least(F.coalesce(F.timestamp_millis("modified"), "at"), F.col("at"))
    known = (
        stored.withColumn("written", written)
        .groupBy(*_PLACE, "written")
        .agg(
            F.max_by("offset", "at").alias("offset"),
            F.max("at").alias("seen"),
            F.max(F.when(F.col("modified").isNotNull(), F.col("at"))).alias("seen_in_dumps"),
        )
    )
    before = Window.partitionBy(*_PLACE).orderBy("written").rowsBetween(Window.unboundedPreceding, -1)
    covered = F.max("seen_in_dumps").over(before) >= F.col("seen")
    return (
        known.withColumn("is_covered", F.col("seen_in_dumps").isNull() & F.coalesce(covered, F.lit(False)))
        .where(~F.col("is_covered"))
        .drop("is_covered")
    )
