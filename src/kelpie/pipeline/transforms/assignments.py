"""Which group had a partition, as intervals: evidence of whose a fetch was.

From the offsets topic: generations with their rosters. The last one of a group holds until the last record
that was read of the group's partition of the offsets topic, for a later one would have been read as well.
From surveys: a partition that a group had in two surveys in a row was its own in between. From logs of
clients: a member has a partition from when it was assigned until its next assignment or revocation.

Which member of a group had it does not matter here, so intervals of one group are put together.
"""

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kelpie.pipeline.traffic.evidence_rows import ASSIGNED, DEFAULT_NAMESPACE, EVIDENCE
from kelpie.pipeline.transforms.lag import SURVEYED

_OWN = ["group", "topic", "partition"]
_COLUMNS = EVIDENCE.names
_STATE = "epoch int, members array<struct<assigned:array<struct<topic:string,partition:int>>>>"
_LONGEST_PAUSE = "INTERVAL 10 MINUTES"
"""Between two surveys that tell what was so in between."""
_ONE_PARTITION = r"([^\[\]{}(),\s]+)-(\d+)"
"""As clients write them: [orders-0, orders-1]."""


def assigned(
    generations: DataFrame,
    timeline: DataFrame,
    *,
    snapshot: DataFrame | None = None,
    log_events: DataFrame | None = None,
) -> DataFrame:
    """Rows of evidence of kind `assigned`. Spark plans less where there are no surveys or logs."""
    rows = [_of_generations(generations, timeline)]
    rows += [_of_surveys(snapshot)] if snapshot is not None else []
    rows += [_of_logs(log_events)] if log_events is not None else []
    return _together(reduce(DataFrame.unionByName, rows)).select(*_COLUMNS)


def known_as(topic: str) -> Column:
    """`evidence_rows.known_as` as a column."""
    name = F.col(topic)
    short = F.substring(name, len(DEFAULT_NAMESPACE) + 1, 1 << 20)
    return F.when(name.startswith(DEFAULT_NAMESPACE), short).otherwise(name)


def _of_generations(generations: DataFrame, timeline: DataFrame) -> DataFrame:
    newest = timeline.groupBy("group", "offsets_partition").agg(F.max("committed").alias("newest"))
    read = F.max("newest").over(Window.partitionBy("offsets_partition"))
    until = newest.withColumn("read", read).groupBy("group").agg(F.max("read").alias("read_until"))
    positions = F.explode(F.array_distinct(F.flatten(F.transform("roster", _positions))))
    held = generations.select("group", "began", "ended", positions.alias("position")).join(
        until, "group", "left"
    )
    ended = F.coalesce("ended", F.greatest("read_until", "began"))
    return _rows(held, F.col("began"), ended, F.lit(True))


def _positions(member: Column) -> Column:
    nothing = F.array().cast("array<struct<topic:string,partition:int>>")
    return F.concat(F.coalesce(member["assigned"], nothing), F.coalesce(member["owned"], nothing))


def _of_surveys(snapshot: DataFrame) -> DataFrame:
    """A partition that was assigned in two surveys in a row is certain; in one only, it is not."""
    described = snapshot.where(
        (F.col("kind") == "state") & F.col("snapshot").startswith(SURVEYED) & F.col("at").isNotNull()
    ).select("group", "at", F.from_json("body", _STATE)["members"].alias("members"))
    by_group = Window.partitionBy("group").orderBy("at")
    had = F.array_distinct(F.flatten(F.transform("members", lambda member: member["assigned"])))
    seen = described.select("group", "at", had.alias("had")).select(
        "group",
        "at",
        "had",
        F.lead("at").over(by_group).alias("next"),
        F.lead("had").over(by_group).alias("had_next"),
    )
    rows = seen.select("group", "at", "next", "had_next", F.explode("had").alias("position"))
    near = F.col("next") <= F.col("at") + F.expr(_LONGEST_PAUSE)
    both = near & F.coalesce(F.array_contains("had_next", F.col("position")), F.lit(False))
    ended = F.least(F.coalesce("next", "at"), F.col("at") + F.expr(_LONGEST_PAUSE))
    return _rows(rows, F.col("at"), ended, F.coalesce(both, F.lit(False)))


def _of_logs(log_events: DataFrame) -> DataFrame:
    """Java clients say which partitions they got, and which they gave back."""
    told = log_events.where(
        F.col("kind").isin("assigned", "revoked")
        & F.col("group").isNotNull()
        & F.col("at").isNotNull()
        & F.try_element_at("details", F.lit("partitions")).isNotNull()
    )
    names = F.expr(f"regexp_extract_all(details['partitions'], r'{_ONE_PARTITION}', 0)")
    one = told.select("group", "client_id", "source", "at", "kind", F.explode(names).alias("name"))
    by_place = Window.partitionBy("group", "client_id", "source", "name").orderBy("at")
    until = F.coalesce(F.lead("at").over(by_place), F.col("at"))
    held = one.withColumn("until", until).where(F.col("kind") == "assigned")
    position = F.struct(
        F.regexp_extract("name", _ONE_PARTITION, 1).alias("topic"),
        F.regexp_extract("name", _ONE_PARTITION, 2).cast("int").alias("partition"),
    )
    return _rows(held.withColumn("position", position), F.col("at"), F.col("until"), F.lit(False))


def _rows(held: DataFrame, began: Column, ended: Column, is_certain: Column) -> DataFrame:
    return held.select(
        F.lit(ASSIGNED).alias("kind"),
        is_certain.alias("is_certain"),
        known_as("position.topic").alias("topic"),
        F.col("position.partition").alias("partition"),
        "group",
        began.alias("began"),
        ended.alias("ended"),
        F.lit(0).cast("bigint").alias("advance"),
    )


def _together(rows: DataFrame) -> DataFrame:
    """Intervals of one group that touch each other become one."""
    own = Window.partitionBy("is_certain", *_OWN).orderBy("began", "ended")
    so_far = F.max("ended").over(own.rowsBetween(Window.unboundedPreceding, -1))
    begins = (F.col("began") > F.coalesce(so_far, F.lit("1900-01-01").cast("timestamp"))).cast("int")
    numbered = rows.withColumn("begins", begins).withColumn("number", F.sum("begins").over(own))
    return numbered.groupBy("kind", "is_certain", *_OWN, "number").agg(
        F.min("began").alias("began"),
        F.max("ended").alias("ended"),
        F.first("advance").alias("advance"),
    )
