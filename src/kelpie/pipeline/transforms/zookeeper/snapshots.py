"""Registrations and owner nodes in dumps of ZooKeeper's tree.

A node says when it was made, and by which session. It went between the last dump that has it and the
next one.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kelpie.pipeline.transforms.zookeeper.events import GROUP

ZOOKEEPER_GROUP = "zookeeper-group"
"""The kind of their rows."""
_REGISTRATIONS = "registrations array<struct<member:string,session:string,created:bigint>>"
_OWNERS = "owners array<struct<topic:string,partition:int,thread:string,session:string,created:bigint>>"


def registrations(snapshot: DataFrame) -> DataFrame:
    """cluster, group, member, session, began, ended: one row for each node."""
    return _nodes(snapshot, F.from_json("body", _REGISTRATIONS)["registrations"], "member")


def owners(snapshot: DataFrame) -> DataFrame:
    """cluster, group, topic, partition, thread, session, began, ended: one row for each node."""
    return _nodes(snapshot, F.from_json("body", _OWNERS)["owners"], "topic", "partition", "thread")


def _nodes(snapshot: DataFrame, listed: Column, *name: str) -> DataFrame:
    looks = (
        snapshot.where(
            (F.col("kind") == ZOOKEEPER_GROUP) & F.col("group").isNotNull() & F.col("at").isNotNull()
        )
        .select(*GROUP, "at", listed.alias("nodes"))
        .where(F.col("nodes").isNotNull())
        .dropDuplicates([*GROUP, "at"])
        .withColumn("next", F.lead("at").over(Window.partitionBy(*GROUP).orderBy("at")))
    )
    nodes = looks.select(*GROUP, "at", "next", F.explode("nodes").alias("node")).select(
        *GROUP,
        "at",
        "next",
        *(F.col(f"node.{part}").alias(part) for part in name),
        _session(F.col("node.session")).alias("session"),
        F.timestamp_millis("node.created").alias("created"),
    )
    return nodes.groupBy(*GROUP, *name, "session", "created").agg(
        F.coalesce("created", F.min("at")).alias("began"), F.max_by("next", "at").alias("ended")
    )


def _session(number: Column) -> Column:
    """As logs write it. It is an unsigned number of 64 bits."""
    return F.concat(F.lit("0x"), F.lower(F.conv(number, 10, 16)))
