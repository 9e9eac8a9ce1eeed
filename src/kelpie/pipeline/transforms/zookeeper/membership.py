"""membership_interval of groups that ZooKeeper keeps: from the registration to its end.

Logs of consumers tell when each registered itself, and closed. The registration of one that is killed stays
until ZooKeeper expires its session. Without ZooKeeper's log, the member was gone when another one first
computed an assignment without it. Of members without a log, dumps tell.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kelpie.observations import EventKind as Kind
from kelpie.pipeline.transforms.departures import LEFT
from kelpie.pipeline.transforms.zookeeper.events import (
    EXPIRED,
    GROUP,
    MEMBER,
    consumer_of,
    in_order,
    is_a,
    of_members,
)
from kelpie.pipeline.transforms.zookeeper.sessions import expiries
from kelpie.pipeline.transforms.zookeeper.snapshots import registrations

_CLOSING = (Kind.ZK_CLOSING, Kind.ZK_CLOSED)
_OF_MEMBERS = (Kind.ZK_ATTEMPT, Kind.ZK_RELEASED, Kind.ZK_COMPUTED, Kind.ZK_REBALANCED)
_UNKNOWN = "unknown"


def zookeeper_memberships(
    log_events: DataFrame, snapshot: DataFrame, ownership_interval: DataFrame
) -> DataFrame:
    """Rows of membership_interval. They have no generations."""
    lives = _until_expired(_lives(log_events), expiries(log_events, snapshot))
    by_logs = _until_left_out(lives, log_events)
    by_dumps = registrations(snapshot).join(by_logs.select(*MEMBER).distinct(), MEMBER, "left_anti")
    rows = by_logs.unionByName(by_dumps.select(*MEMBER, "began", "ended"), allowMissingColumns=True)
    rows = rows.withColumn(
        "left_because", F.when(F.col("ended").isNotNull(), F.coalesce("left_because", F.lit(_UNKNOWN)))
    ).withColumnRenamed("member", "member_id")
    return _with_last_partitions(rows, ownership_interval)


def _lives(log_events: DataFrame) -> DataFrame:
    """A row from each registration to the next. A log may begin after the first one."""
    told = of_members(log_events, Kind.ZK_REGISTERED, Kind.ZK_SESSION_EXPIRED, *_CLOSING, *_OF_MEMBERS)
    life = F.count(F.when(is_a(Kind.ZK_REGISTERED), 1)).over(in_order())
    lives = (
        told.withColumn("life", life)
        .groupBy(*MEMBER, "life")
        .agg(
            F.min("at").alias("began"),
            F.min(F.when(is_a(*_CLOSING), F.col("at"))).alias("closed"),
            F.max(F.when(is_a(Kind.ZK_SESSION_EXPIRED), F.col("at"))).alias("said_expired"),
            F.max("at").alias("last_word"),
            F.collect_set(F.when(is_a(Kind.ZK_COMPUTED), F.col("topic"))).alias("topics"),
        )
    )
    by_time = Window.partitionBy(*MEMBER).orderBy("life")
    return lives.withColumn("again", F.lead("began").over(by_time))


def _until_expired(lives: DataFrame, expiries: DataFrame) -> DataFrame:
    own_end = F.least(F.coalesce("said_expired", "again"), F.col("closed"))
    lives = lives.withColumn("own_end", own_end)
    during = (F.col("expired") > F.col("began")) & (
        F.col("own_end").isNull() | (F.col("expired") <= F.col("own_end"))
    )
    same = [lives[name] == expiries[name] for name in MEMBER]
    joined = lives.join(expiries, [*same, during], "left").select(lives["*"], "expired")
    rows = joined.groupBy(*lives.columns).agg(F.min("expired").alias("expired"))
    is_expired = F.col("expired").isNotNull() | (F.col("own_end") == F.col("said_expired"))
    because = F.when(is_expired, EXPIRED).when(F.col("own_end") == F.col("closed"), LEFT)
    return rows.select(
        *MEMBER,
        "began",
        F.coalesce("expired", "own_end").alias("ended"),
        because.alias("left_because"),
        "last_word",
        "topics",
    )


def _until_left_out(lives: DataFrame, log_events: DataFrame) -> DataFrame:
    """Those without an end: another member counts all members of a topic that both read, without this one."""
    threads = F.split(F.col("details")["threads"], ",")
    counts = of_members(log_events, Kind.ZK_COMPUTED).select(
        *GROUP, "topic", F.col("at").alias("counted"), F.transform(threads, consumer_of).alias("members")
    )
    silent = lives.where(F.col("ended").isNull())
    left_out = (
        silent.join(counts, GROUP)
        .where(F.col("counted") > F.col("last_word"))
        .where(F.array_contains("topics", F.col("topic")) & ~F.array_contains("members", F.col("member")))
        .groupBy(*MEMBER, "began")
        .agg(F.min("counted").alias("counted"))
    )
    joined = lives.join(left_out, [*MEMBER, "began"], "left")
    return joined.select(*MEMBER, "began", F.coalesce("ended", "counted").alias("ended"), "left_because")


def _with_last_partitions(rows: DataFrame, owned: DataFrame) -> DataFrame:
    """With what each had until its end, or has now."""
    position = F.struct("topic", "partition")
    until = owned.groupBy(*GROUP, "member_id", F.col("ended").alias("until")).agg(
        F.array_sort(F.collect_list(position)).alias("assigned")
    )
    same = [rows[name] == until[name] for name in (*GROUP, "member_id")]
    at_end = rows["ended"].eqNullSafe(until["until"])
    return rows.join(until, [*same, at_end], "left").select(rows["*"], "assigned")
