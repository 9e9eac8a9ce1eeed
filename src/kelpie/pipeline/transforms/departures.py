"""How members left, as logs tell it: by themselves, because they were silent, or too long between polls.

Brokers say who left, and pass on the reason that a Java client of 3.x and later gives. Others give none; only
their own logs say that they were too long between polls, right before they left.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

LEFT = "left"
"""On its own account, as far as anybody knows."""
_GROUP = ["cluster", "group"]
_LEFT, _EXPIRED, _FENCED = "broker: member-left", "broker: member-expired", "broker: member-fenced"
_PAUSED = "poll-interval-exceeded"
_POLL_INTERVAL = r"(?i)poll timeout has expired"
_RIGHT_BEFORE_MS = 5_000


def departures(log_events: DataFrame) -> DataFrame:
    """cluster, group, member_id, how: one row per member. Ids of members are never given twice."""
    departed = log_events.where(
        F.col("kind").isin(_LEFT, _EXPIRED, _FENCED) & F.col("member").isNotNull()
    ).withColumn("slot", _slot())
    near_slots = F.array(_slot() - 1, _slot(), _slot() + 1)
    paused = log_events.where((F.col("kind") == _PAUSED) & F.col("client_id").isNotNull()).select(
        *_GROUP,
        F.col("client_id").alias("who"),
        F.col("at").alias("paused"),
        F.explode(near_slots).alias("slot"),
    )
    # Classic members are called by their client and a random id. By slot as well: a group may have left and
    # paused thousands of times, and not all of these are to be held against each other.
    same_one = [
        *(departed[name] == paused[name] for name in (*_GROUP, "slot")),
        F.col("member").startswith(F.concat("who", F.lit("-"))),
        F.abs(F.unix_millis("at") - F.unix_millis("paused")) <= _RIGHT_BEFORE_MS,
    ]
    with_pauses = departed.join(paused, same_one, "left")
    how = (
        F.when(F.col("kind") == _EXPIRED, "expired")
        .when(F.col("kind") == _FENCED, "fenced")
        .when(F.col("reason").rlike(_POLL_INTERVAL) | F.col("paused").isNotNull(), "poll-interval")
        .otherwise(LEFT)
    )
    # A member may be said to have gone several times; the first word is the cause of the others.
    return with_pauses.groupBy(*(departed[name] for name in _GROUP), F.col("member").alias("member_id")).agg(
        F.min_by(how, "at").alias("how")
    )


def _slot() -> Column:
    """What is near enough lies in the same slot of time, or in one beside it."""
    return F.call_function("div", F.unix_millis("at"), F.lit(_RIGHT_BEFORE_MS).cast("bigint"))
