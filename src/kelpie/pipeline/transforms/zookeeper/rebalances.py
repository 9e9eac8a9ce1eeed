"""rebalance of groups that ZooKeeper keeps: a member comes or goes, and all members try to rebalance.

There is no coordinator, and there are no generations. Each change of the registrations makes each member
rebalance, so the tries that follow a change belong to it, up to the next change. Changes without a try
between them are one. Tries after a long silence have another cause, like a new broker or partition. It has
ended when the last try of each member has succeeded; a member that gives up leaves it without an end.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kelpie.pipeline.transforms.zookeeper.attempts import SUCCEEDED
from kelpie.pipeline.transforms.zookeeper.events import GROUP

QUIET_MS = 5_000
_CAME = "joined"
_WORDS = (
    (_CAME, "{} registered itself"),
    ("left", "{} was closed"),
    ("expired", "ZooKeeper expired the session of {}"),
)


def zookeeper_rebalances(membership_interval: DataFrame, attempts: DataFrame) -> DataFrame:
    """Rows of rebalance. Of groups without logs there are none: dumps do not show tries."""
    steps = _changes(membership_interval, attempts).unionByName(
        attempts.select(
            *GROUP,
            F.col("began").alias("at"),
            "member_id",
            "number",
            "outcome",
            "exception",
            F.greatest("began", "ended", "gave_up").alias("last"),
            F.col("ended").alias("attempt_ended"),
        ),
        allowMissingColumns=True,
    )
    rows = (
        _numbered(steps)
        .groupBy(*GROUP, "rebalance", "member_id")
        .agg(
            F.min("at").alias("at"),
            F.min_by("cause", F.when(F.col("cause").isNotNull(), F.col("at"))).alias("cause"),
            F.bool_or(F.col("cause") == _CAME).alias("came"),
            F.bool_or(F.col("cause") != _CAME).alias("went"),
            F.bool_or(F.col("cause").isNull()).alias("tried"),
            F.max_by("outcome", F.when(F.col("cause").isNull(), F.col("at"))).alias("outcome"),
            F.max_by("exception", F.when(F.col("cause").isNull(), F.col("at"))).alias("exception"),
            F.max("attempt_ended").alias("attempt_ended"),
        )
    )
    return _together(rows)


def _changes(memberships: DataFrame, attempts: DataFrame) -> DataFrame:
    """Members that came and went, of groups whose tries are known."""
    known = memberships.where(F.col("first_generation").isNull()).join(
        attempts.select(*GROUP).distinct(), GROUP, "left_semi"
    )
    came = known.select(*GROUP, F.col("began").alias("at"), "member_id", F.lit(_CAME).alias("cause"))
    went = known.where(F.col("ended").isNotNull()).select(
        *GROUP, F.col("ended").alias("at"), "member_id", F.col("left_because").alias("cause")
    )
    return came.union(went)


def _numbered(steps: DataFrame) -> DataFrame:
    """With the number of the rebalance that each step belongs to."""
    by_time = Window.partitionBy(*GROUP).orderBy("at", F.col("cause").isNull(), "member_id")
    before = by_time.rowsBetween(Window.unboundedPreceding, -1)
    is_change = F.col("cause").isNotNull()
    follows_try = F.coalesce(F.lag(~is_change).over(by_time), F.lit(True))
    quiet_since = F.max(F.coalesce("last", "at")).over(before)
    quiet_ms = F.unix_millis("at") - F.unix_millis(F.coalesce(quiet_since, F.col("at")))
    begins = F.when(is_change, follows_try).otherwise(
        quiet_since.isNull() | ((F.col("number") == 0) & (quiet_ms > QUIET_MS))
    )
    return (
        steps.withColumn("begins", F.coalesce(begins, F.lit(False)).cast("int"))
        .withColumn("rebalance", F.sum("begins").over(by_time))
        .drop("begins")
    )


def _together(members: DataFrame) -> DataFrame:
    """One row for each rebalance that somebody tried."""
    is_done = F.bool_and(F.when(F.col("tried"), F.coalesce(F.col("outcome") == SUCCEEDED, F.lit(False))))
    first = F.when(F.col("cause").isNotNull(), F.col("at"))
    rows = members.groupBy(*GROUP, "rebalance").agg(
        F.min("at").alias("started"),
        F.max("attempt_ended").alias("last_end"),
        is_done.alias("is_done"),
        F.bool_or("tried").alias("tried"),
        F.min_by(F.struct("cause", "member_id"), first).alias("first"),
        F.array_sort(F.collect_list(F.when(F.col("came"), F.col("member_id")))).alias("joined"),
        F.array_sort(F.collect_list(F.when(F.col("went"), F.col("member_id")))).alias("left"),
        F.array_sort(F.collect_list(F.when(F.col("exception").isNotNull(), F.col("member_id")))).alias(
            "gave_up"
        ),
    )
    reason = F.lit(None).cast("string")
    for cause, words in _WORDS:
        text = F.replace(F.lit(words), F.lit("{}"), F.col("first.member_id"))
        reason = F.when(F.col("first.cause") == cause, text).otherwise(reason)
    ended = F.when(F.col("is_done"), F.col("last_end"))
    return rows.where(F.col("tried")).select(
        *GROUP,
        "started",
        ended.alias("ended"),
        (F.unix_millis(ended) - F.unix_millis("started")).alias("duration_ms"),
        F.coalesce("first.cause", F.lit("unknown")).alias("cause"),
        reason.alias("reason"),
        "joined",
        "left",
        "gave_up",
    )
