"""How members left, by logs: on their own, by session timeout, or by exceeding max.poll.interval.ms.

Logs of brokers name the member that left, and the reason that Java clients since 3.x give. Other clients give
no reason; only their own logs say, right before they leave, that the poll interval was exceeded.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

LEFT = "left"
"""The member left on its own, or the reason is not known."""
_GROUP = ["cluster", "group"]
_GONE, EXPIRED, FENCED = "broker: member-left", "broker: member-expired", "broker: member-fenced"
PAUSED = "poll-interval-exceeded"
POLL_INTERVAL = r"(?i)poll timeout has expired"
RIGHT_BEFORE_MS = 5_000
GONE_KINDS = (_GONE, EXPIRED, FENCED)
DEPARTURE_KINDS = (*GONE_KINDS, PAUSED)
"""The kinds of lines that are read here."""


def departures(log_events: DataFrame) -> DataFrame:
    """cluster, group, member_id, how: one row per member. Ids of members are never given twice."""
    departed = log_events.where(F.col("kind").isin(*GONE_KINDS) & F.col("member").isNotNull()).withColumn(
        "slot", _slot()
    )
    near_slots = F.array(_slot() - 1, _slot(), _slot() + 1)
    paused = log_events.where((F.col("kind") == PAUSED) & F.col("client_id").isNotNull()).select(
        *_GROUP,
        F.col("client_id").alias("who"),
        F.col("at").alias("paused"),
        F.explode(near_slots).alias("slot"),
    )
    # The id of a classic member is its client id and a random id. The join is by slot of time as well: a
    # group may have thousands of both events, and comparing all with all would be slow.
    same_one = [
        *(departed[name] == paused[name] for name in (*_GROUP, "slot")),
        F.col("member").startswith(F.concat("who", F.lit("-"))),
        F.abs(F.unix_millis("at") - F.unix_millis("paused")) <= RIGHT_BEFORE_MS,
    ]
    with_pauses = departed.join(paused, same_one, "left")
    how = (
        F.when(F.col("kind") == EXPIRED, "expired")
        .when(F.col("kind") == FENCED, "fenced")
        .when(F.col("reason").rlike(POLL_INTERVAL) | F.col("paused").isNotNull(), "poll-interval")
        .otherwise(LEFT)
    )
    # Several events may say that a member left; the first is the cause of the others.
    return with_pauses.groupBy(*(departed[name] for name in _GROUP), F.col("member").alias("member_id")).agg(
        F.min_by(how, "at").alias("how")
    )


def _slot() -> Column:
    """The number of a slot of time. Events that are near enough are in the same slot or in neighbours."""
    return F.call_function("div", F.unix_millis("at"), F.lit(RIGHT_BEFORE_MS).cast("bigint"))
