"""ownership_interval: which consumer of Kafka 0.8 owned which partition, from when to when.

By logs, a member owns what it claimed in a try that succeeded, until it releases everything for the next
rebalance or is closed. One that is killed, or stopped for too long, says nothing: then ZooKeeper expires its
session, which deletes its nodes; else its node was gone at the latest when another member claimed the
partition. Of members without a log, dumps tell.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kelpie.observations import EventKind as Kind
from kelpie.pipeline.transforms.windows import following
from kelpie.pipeline.transforms.zookeeper.attempts import number_of_attempt
from kelpie.pipeline.transforms.zookeeper.events import (
    CLOSED,
    EXPIRED,
    GROUP,
    MEMBER,
    RELEASED,
    backwards,
    consumer_of,
    is_a,
    of_members,
)
from kelpie.pipeline.transforms.zookeeper.sessions import expiries
from kelpie.pipeline.transforms.zookeeper.snapshots import owners

LOGS, DUMPS = "logs", "dumps"
TAKEN = "taken-over"
_ENDINGS = (Kind.ZK_RELEASED, Kind.ZK_CLOSING, Kind.ZK_CLOSED)
_POSITION = [*GROUP, "topic", "partition"]
_NAME = r"^(.+)-(\d{1,9})$"


def ownerships(log_events: DataFrame, snapshot: DataFrame) -> DataFrame:
    """Rows of ownership_interval."""
    by_logs = _until_expired(_by_logs(log_events), expiries(log_events, snapshot))
    by_dumps = owners(snapshot).withColumn("member", consumer_of(F.col("thread")))
    without_log = by_dumps.join(by_logs.select(*MEMBER).distinct(), MEMBER, "left_anti").select(
        *_POSITION, "member", "thread", "began", "ended", F.lit(DUMPS).alias("evidence")
    )
    rows = by_logs.withColumn("evidence", F.lit(LOGS)).unionByName(without_log, allowMissingColumns=True)
    # Two owners at a time cannot be: the second one's node would not have been made.
    claimed = F.lead("began").over(Window.partitionBy(*_POSITION).orderBy("began", "member"))
    is_taken = F.col("ended").isNull() & F.col("claimed").isNotNull()
    return (
        rows.withColumn("claimed", claimed)
        .withColumn("ended_because", F.when(is_taken, F.lit(TAKEN)).otherwise(F.col("ended_because")))
        .withColumn("ended", F.coalesce("ended", "claimed"))
        .withColumnRenamed("member", "member_id")
    )


def _by_logs(log_events: DataFrame) -> DataFrame:
    """Owned partitions, and how and when the member let them go by its own word."""
    told = of_members(log_events, Kind.ZK_ATTEMPT, Kind.ZK_CLAIMED, Kind.ZK_REBALANCED, *_ENDINGS)
    ending = F.when(is_a(*_ENDINGS), F.struct("at", is_a(Kind.ZK_RELEASED).alias("is_release")))
    of_attempt = Window.partitionBy(*MEMBER, "attempt")
    numbered = (
        told.withColumn("attempt", number_of_attempt())
        .withColumn("let_go", F.last(ending, ignorenulls=True).over(following(backwards())))
        .withColumn("succeeded", F.bool_or(is_a(Kind.ZK_REBALANCED)).over(of_attempt))
    )
    common = [*MEMBER, "attempt", "at", "let_go"]
    claimed = numbered.where(is_a(Kind.ZK_CLAIMED) & F.col("succeeded")).select(
        *common, "topic", "partition", F.col("details")["thread"].alias("thread")
    )
    # The lines of single claims may be missing; a very long list of all is not read.
    names = F.explode(F.split(F.col("details")["partitions"], ","))
    listed = numbered.where(is_a(Kind.ZK_REBALANCED)).select(*common, names.alias("name"))
    selected = listed.where(F.col("name").rlike(_NAME)).select(
        *common,
        F.regexp_extract("name", _NAME, 1).alias("topic"),
        F.regexp_extract("name", _NAME, 2).cast("int").alias("partition"),
    )
    both = claimed.unionByName(selected, allowMissingColumns=True)
    return both.groupBy(*MEMBER, "attempt", "topic", "partition").agg(
        F.min("at").alias("began"), F.max("thread").alias("thread"), F.max("let_go").alias("let_go")
    )


def _until_expired(owned: DataFrame, expiries: DataFrame) -> DataFrame:
    """With `ended` and `ended_because`. A member that was stopped may let go long after its session's end."""
    during = (F.col("expired") > F.col("began")) & (
        F.col("let_go").isNull() | (F.col("expired") < F.col("let_go.at"))
    )
    same = [owned[name] == expiries[name] for name in MEMBER]
    with_expiry = owned.join(expiries, [*same, during], "left").select(owned["*"], "expired")
    rows = with_expiry.groupBy(*MEMBER, "attempt", "topic", "partition", "began", "thread", "let_go").agg(
        F.min("expired").alias("expired")
    )
    because = (
        F.when(F.col("expired").isNotNull(), EXPIRED)
        .when(F.col("let_go.is_release"), RELEASED)
        .when(F.col("let_go").isNotNull(), CLOSED)
    )
    return rows.select(
        *_POSITION,
        "member",
        "thread",
        "began",
        F.coalesce("expired", "let_go.at").alias("ended"),
        because.alias("ended_because"),
    )
