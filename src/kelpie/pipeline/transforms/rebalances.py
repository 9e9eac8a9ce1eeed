"""rebalance: from its trigger until the new assignment was complete.

Records of groups say when the assignment of each generation was written, and which members joined and left.
Logs of brokers say when the rebalance began, and why. Either may be missing: without logs, a rebalance has an
end and members but no beginning; without records, a beginning and an end but no members. Not every generation
has a record. Then only logs show it; it ends with the next assignment, and the next record has the members
that joined and left since the last one.

Records of a KIP-848 group say all of it: a rebalance begins with a new epoch and ends when every member has
reached this epoch or a later one.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kelpie.pipeline.transforms.departures import LEFT, departures
from kelpie.pipeline.transforms.generations import CONSUMER
from kelpie.pipeline.transforms.windows import following

_GROUP = ["cluster", "group"]
ASSIGNOR = "assignor"
STARTED = "broker: rebalance-started"
_JOINED = "broker: generation-joined"
_ASSIGNED = "broker: assignment-received"
_EMPTY = "broker: group-empty"
ENDS = (_ASSIGNED, _EMPTY)
REBALANCE_KINDS = (STARTED, _JOINED, *ENDS)
"""The kinds of lines that are read here, beside those of departures."""

CAUSES = (
    # The reasons that brokers of 2.1 to 4.x write, and the word for each; the first that fits counts.
    ("poll-interval", r"(?i)consumer poll timeout has expired"),
    ("expired", r"(?i)heartbeat expiration|session (timeout|expir)|pending sync"),
    (LEFT, r"(?i)LeaveGroup|explicit.*leave|consumer is being closed|unsubscribe"),
    ("static", r"(?i)static member"),
    ("rejoined", r"(?i)need to revoke"),
    ("subscription", r"(?i)metadata|subscri|leader .* re-?joining|changed"),
    ("joined", r"(?i)adding new member|joins? |new member|added"),
)


def rebalances(generations: DataFrame, log_events: DataFrame) -> DataFrame:
    """Rows of rebalance."""
    recorded = _from_records(generations)
    logged = _from_logs(log_events, _lives(generations))
    why = _from_departures(recorded, log_events)
    sources = recorded.unionByName(logged, allowMissingColumns=True).unionByName(
        why, allowMissingColumns=True
    )
    # One row per generation, of records and logs.
    by_generation = sources.groupBy(*_GROUP, "incarnation", "to_generation").agg(
        F.coalesce(F.min("bumped"), F.min("log_started")).alias("began"),
        F.max("log_ended").alias("log_ended"),
        F.max("recorded").alias("recorded"),
        F.max("is_newer").alias("is_newer"),
        F.max_by("reason", "log_started").alias("reason"),
        F.max("joined").alias("joined"),
        F.max("left").alias("left"),
        F.coalesce(F.max(F.when(F.col("how") != LEFT, F.col("how"))), F.max("how")).alias("how"),
        F.max("protocol").alias("protocol"),
        F.max("from_generation").alias("from_recorded"),
    )
    own_end = F.when(F.col("is_newer"), F.col("recorded")).otherwise(F.coalesce("recorded", "log_ended"))
    by_group = Window.partitionBy(*_GROUP, "incarnation").orderBy("to_generation")
    before = F.coalesce(F.lag("to_generation").over(by_group), "from_recorded", F.col("to_generation") - 1)
    behind = following(Window.partitionBy(*_GROUP, "incarnation").orderBy(F.desc("to_generation")))
    return (
        by_generation.withColumn("ended", own_end)
        .withColumn("ended", F.coalesce("ended", F.last("ended", ignorenulls=True).over(behind)))
        .withColumn("started", F.coalesce("began", "ended"))
        .where(F.col("started").isNotNull())
        .select(
            *_GROUP,
            "started",
            "ended",
            F.when(
                F.col("began").isNotNull() & F.col("ended").isNotNull(),
                F.greatest(F.lit(0), F.unix_millis("ended") - F.unix_millis("began")),
            ).alias("duration_ms"),
            before.alias("from_generation"),
            "to_generation",
            _word().alias("cause"),
            "reason",
            "joined",
            "left",
        )
    )


def _from_records(generations: DataFrame) -> DataFrame:
    by_group = Window.partitionBy(*_GROUP).orderBy("incarnation", "generation")
    previous = F.lag(F.struct("generation", "member_ids", "incarnation")).over(by_group)
    empty = F.array().cast("array<string>")
    same_life = F.col("previous.incarnation") == F.col("incarnation")
    rows = generations.withColumn("previous", previous).withColumn(
        "before", F.coalesce(F.when(same_life, F.col("previous.member_ids")), empty)
    )
    after = F.coalesce("member_ids", empty)
    is_newer = F.coalesce(F.col("kind") == CONSUMER, F.lit(False))
    return rows.where(F.col("generation") > 0).select(
        *_GROUP,
        "incarnation",
        F.col("generation").alias("to_generation"),
        F.when(same_life, F.col("previous.generation")).alias("from_generation"),
        "protocol",
        is_newer.alias("is_newer"),
        F.when(is_newer, F.col("began")).alias("bumped"),
        F.when(is_newer, F.col("settled")).otherwise(F.col("began")).alias("recorded"),
        F.array_except(after, F.col("before")).alias("joined"),
        F.array_except(F.col("before"), after).alias("left"),
    )


def _lives(generations: DataFrame) -> DataFrame:
    """The end of each incarnation, by group; null for one that goes on."""
    ends = generations.groupBy(*_GROUP, "incarnation").agg(F.max_by("ended", "generation").alias("until"))
    return ends.groupBy(*_GROUP).agg(F.collect_list(F.struct("incarnation", "until")).alias("lives"))


def _from_logs(log_events: DataFrame, lives: DataFrame) -> DataFrame:
    """Beginnings and ends in logs of brokers. A line about a beginning names the generation before."""
    events = log_events.where(
        F.col("group").isNotNull() & F.col("generation").isNotNull() & F.col("kind").isin(*REBALANCE_KINDS)
    )
    starts = F.col("kind") == STARTED
    # For KIP-848 groups there is only the line that the coordinator computed an assignment.
    computed = F.col("details")[ASSIGNOR].isNotNull()
    ends = F.col("kind").isin(*ENDS) & ~computed
    return events.join(lives, _GROUP, "left").select(
        *_GROUP,
        _incarnation().alias("incarnation"),
        (F.col("generation") + F.when(starts, 1).otherwise(0)).alias("to_generation"),
        F.when(starts | computed, F.col("at")).alias("log_started"),
        F.when(ends, F.col("at")).alias("log_ended"),
        F.when(starts, F.col("reason")).alias("reason"),
        computed.alias("is_newer"),
    )


def _incarnation() -> Column:
    """The incarnation of a line of a log: the first that had not ended then."""
    numbers = F.transform(
        F.filter("lives", lambda life: life["until"].isNull() | (life["until"] > F.col("at"))),
        lambda life: life["incarnation"],
    )
    after_all = F.array_max(F.transform("lives", lambda life: life["incarnation"])) + 1
    return F.coalesce(F.array_min(numbers), after_all, F.lit(0))


def _from_departures(recorded: DataFrame, log_events: DataFrame) -> DataFrame:
    gone = recorded.select(*_GROUP, "incarnation", "to_generation", F.explode("left").alias("member_id"))
    known = gone.join(departures(log_events), [*_GROUP, "member_id"])
    return known.select(*_GROUP, "incarnation", "to_generation", "how")


def _word() -> Column:
    """The cause in one word: by logs of the rebalance, else of a member that left, else by members."""
    by_members = F.when(F.size("left") > 0, F.lit(LEFT)).when(F.size("joined") > 0, F.lit("joined"))
    # A new epoch with the same members: topics or subscriptions have changed.
    otherwise = F.when(F.col("is_newer") & F.col("joined").isNotNull(), F.lit("subscription"))
    of_log = _cause(F.col("reason"))
    # The line about the rebalance may only say that a member left; other lines may say why.
    of_log = F.when(of_log == LEFT, F.coalesce("how", of_log)).otherwise(of_log)
    word = F.coalesce(of_log, "how", by_members, otherwise, F.lit("unknown"))
    # A cooperative assignor revokes partitions in one rebalance and assigns them in a second one.
    same = (F.size("joined") == 0) & (F.size("left") == 0)
    second = F.col("protocol").contains("cooperative") & same & word.isin("subscription", "unknown")
    return F.when(second, F.lit("rejoined")).otherwise(word)


def _cause(reason: Column) -> Column:
    word = F.lit(None).cast("string")
    for cause, pattern in reversed(CAUSES):
        word = F.when(reason.rlike(pattern), F.lit(cause)).otherwise(word)
    return F.when(reason.isNotNull(), word)
