"""Commits and records of groups from bronze tables, for the doctor and for the dating of outputs.

Rows have the name of their file as `source`, and a time: Kafka before 0.10 wrote records without one, so they
get that of the newest commit before (`dated`).
"""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - everyone who knows Spark knows F.

from kelpie.observations import Commit
from kelpie.observations.positions import NO_OFFSET
from kelpie.pipeline.tables.moments import instant
from kelpie.pipeline.transforms.commits import counted, once
from kelpie.pipeline.transforms.generations import dated


def commits(commit: DataFrame, markers: DataFrame, files: DataFrame) -> DataFrame:
    """Commits that counted, with `at` and the name of their file."""
    return _named(counted(commit, markers), files).withColumn("at", F.coalesce("committed", "written"))


def changes(commits: DataFrame, shown: DataFrame) -> DataFrame:
    """The commits at which a position reached or left an offset that is shown, and its first commit.

    They are few, however many commits there are. `shown`: group, topic, partition, offset.
    """
    position = ["group", "topic", "partition"]
    offsets = shown.groupBy(*position).agg(F.collect_set("offset").alias("shown"))
    by_place = Window.partitionBy(*position).orderBy("offsets_partition", "log_offset")
    before = F.lag("offset").over(by_place)
    matters = (
        F.array_contains("shown", F.col("offset"))
        | F.array_contains("shown", F.col("before"))
        | (F.col("number") == 1)
    )
    return (
        commits.join(F.broadcast(offsets), position)
        .withColumn("before", before)
        .withColumn("number", F.row_number().over(by_place))
        .where(~F.col("before").eqNullSafe(F.col("offset")) | (F.col("number") == 1))
        .where(F.coalesce(matters, F.lit(False)))
        .drop("before", "number", "shown")
    )


def records(group_metadata: DataFrame, commit: DataFrame, files: DataFrame) -> DataFrame:
    """Records of groups, with `at` and the name of their file."""
    with_times = dated(once(group_metadata), commit).withColumnRenamed("began", "at")
    return _named(with_times, files)


def _named(rows: DataFrame, files: DataFrame) -> DataFrame:
    names = files.select("cluster", "path", F.col("source").alias("name")).dropDuplicates(["cluster", "path"])
    joined = rows.join(
        F.broadcast(names), (rows["cluster"] == names["cluster"]) & (rows["source"] == names["path"]), "left"
    )
    return joined.select(
        *[rows[name] for name in rows.columns if name != "source"],
        F.coalesce(names["name"], rows["source"]).alias("source"),
    )


def commit_of(row: Mapping[str, Any]) -> Commit:
    offset = row["offset"]
    return Commit(
        row["group"],
        row["topic"],
        row["partition"],
        NO_OFFSET if offset is None else offset,
        instant(row["at"]),
        -1 if row["leader_epoch"] is None else row["leader_epoch"],
        row["metadata"] or "",
        instant(row["expires"]),
        bool(row["is_transactional"]),
        f"{row['source']}@{row['log_offset']}",
    )
