"""rebalance_attempt: each try of a consumer of Kafka 0.8 to rebalance, as its log tells it.

A try begins with "begin rebalancing consumer … try #0". Only "selected partitions" is a success: nodes that
were claimed before a conflict are given back. An exception follows the last of the tries.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kelpie.observations import EventKind as Kind
from kelpie.pipeline.transforms.zookeeper.events import MEMBER, consumer_of, in_order, is_a, of_members

SUCCEEDED, FAILED, NO_BROKERS = "succeeded", "failed", "no-brokers"
_OUTCOMES = (Kind.ZK_REBALANCED, Kind.ZK_ATTEMPT_FAILED, Kind.ZK_NO_BROKERS)


def attempts(log_events: DataFrame) -> DataFrame:
    """Rows of rebalance_attempt."""
    told = of_members(log_events, Kind.ZK_ATTEMPT, Kind.ZK_CONFLICT, Kind.REBALANCE_FAILED, *_OUTCOMES)
    numbered = told.withColumn("ordinal", number_of_attempt())
    conflict = F.struct("at", "topic", "partition", consumer_of(F.col("details")["holder"]).alias("owner"))
    rows = numbered.groupBy(*MEMBER, "ordinal").agg(
        F.min("at").alias("began"),
        F.max(F.when(is_a(Kind.ZK_ATTEMPT), F.col("details")["attempt"].try_cast("int"))).alias("number"),
        F.max(F.when(is_a(*_OUTCOMES), F.col("at"))).alias("ended"),
        F.bool_or(is_a(Kind.ZK_REBALANCED)).alias("succeeded"),
        F.bool_or(is_a(Kind.ZK_NO_BROKERS)).alias("without_brokers"),
        F.bool_or(~is_a(Kind.ZK_ATTEMPT)).alias("has_more"),
        F.array_sort(F.collect_list(F.when(is_a(Kind.ZK_CONFLICT), conflict))).alias("conflicts"),
        F.max(F.when(is_a(Kind.REBALANCE_FAILED), F.col("details")["form"])).alias("exception"),
        F.max(F.when(is_a(Kind.REBALANCE_FAILED), F.col("at"))).alias("gave_up"),
        F.min_by("source", "at").alias("source"),
    )
    outcome = (
        F.when(F.col("succeeded"), SUCCEEDED)
        .when(F.col("without_brokers"), NO_BROKERS)
        .when(F.col("has_more"), FAILED)
    )
    return rows.withColumn("outcome", outcome).withColumnRenamed("member", "member_id")


def number_of_attempt() -> Column:
    """Which try of the member it is, counted from 1; 0: the log begins after it had begun."""
    return F.count(F.when(is_a(Kind.ZK_ATTEMPT), 1)).over(in_order()).cast("int")
