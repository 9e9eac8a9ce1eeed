"""Ends of logs by surveys, outputs of tools and disks, from cluster_snapshot."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


def ends(snapshot: DataFrame) -> DataFrame:
    """cluster, topic, partition, at, start_offset, end_offset, stable_offset: lag is measured by these."""
    observed = snapshot.where((F.col("kind") == "ends") & F.col("at").isNotNull())
    rows = observed.select(
        "cluster",
        "topic",
        "partition",
        "at",
        number("earliest").alias("start_offset"),
        number("latest").alias("end_offset"),
        number("stable").alias("stable_offset"),
    ).where(F.col("end_offset").isNotNull())
    # Several disks or outputs may have ends of the same time: the highest is the log's.
    return rows.groupBy("cluster", "topic", "partition", "at").agg(
        F.min("start_offset").alias("start_offset"),
        F.max("end_offset").alias("end_offset"),
        F.max("stable_offset").alias("stable_offset"),
    )


def number(name: str) -> Column:
    """A field of the body."""
    return F.get_json_object("body", f"$.{name}").cast("bigint")
