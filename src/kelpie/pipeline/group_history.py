"""Members, partitions and rebalances, of groups that Kafka keeps and that ZooKeeper keeps.

Most clusters have no group in ZooKeeper. There, Spark plans nothing for them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everyone who knows Spark knows F.

from kelpie.pipeline.spark.arrow_frames import frame_of_arrow
from kelpie.pipeline.spark.cluster import is_local
from kelpie.pipeline.storage.frames import ClusterTables, Rows, as_frame
from kelpie.pipeline.storage.parquet import NewFile
from kelpie.pipeline.tables import STORED, TABLES
from kelpie.pipeline.transforms.commits import once
from kelpie.pipeline.transforms.epochs import epochs_here
from kelpie.pipeline.transforms.generations import generations, generations_of, memberships
from kelpie.pipeline.transforms.rebalances import rebalances
from kelpie.pipeline.transforms.zookeeper.attempts import attempts
from kelpie.pipeline.transforms.zookeeper.events import OF_ZOOKEEPER, configured
from kelpie.pipeline.transforms.zookeeper.membership import zookeeper_memberships
from kelpie.pipeline.transforms.zookeeper.ownership import ownerships
from kelpie.pipeline.transforms.zookeeper.rebalances import zookeeper_rebalances
from kelpie.places import Place


@dataclass(frozen=True, slots=True)
class GroupHistory:
    """What the tables of `group_history` are made of."""

    tables: ClusterTables
    files: Mapping[str, Sequence[Place]]
    """By input."""
    in_zookeeper: bool

    def frame(self, name: str) -> DataFrame:
        return self.tables.frame_of(name, self.files[name])

    def write(self, name: str, rows: Rows) -> tuple[Sequence[NewFile], DataFrame]:
        """New files of a table, which no commit names yet, and their rows."""
        written = self.tables.write(STORED[name], rows)
        return written, self.tables.new_rows(name, written)


def group_history(history: GroupHistory) -> Iterator[tuple[str, Sequence[NewFile]]]:
    """New files of the five tables, by name."""
    in_zookeeper, files = history.in_zookeeper, history.files
    events, snapshot = history.frame("log_event"), history.frame("cluster_snapshot")
    of_records: Rows = ()
    if files["group_metadata"]:
        of_records = _generations(history, snapshot)
    written, known = history.write("group_generation", of_records)
    yield "group_generation", written
    of_zookeeper = configured(events, snapshot) if in_zookeeper else events
    written, owned = history.write(
        "ownership_interval", ownerships(of_zookeeper, snapshot) if in_zookeeper else ()
    )
    yield "ownership_interval", written
    written, tries = history.write("rebalance_attempt", attempts(of_zookeeper) if in_zookeeper else ())
    yield "rebalance_attempt", written
    has_tries = bool(written)
    members: Rows = ()
    if files["group_metadata"] or in_zookeeper:
        members = memberships(known, events)
        if in_zookeeper:
            more = zookeeper_memberships(of_zookeeper, snapshot, owned)
            members = members.unionByName(more, allowMissingColumns=True)
    written, were_members = history.write("membership_interval", members)
    yield "membership_interval", written
    changes: Rows = ()
    if files["group_metadata"] or files["log_event"]:
        changes = rebalances(known, events).withColumn("gave_up", F.lit(None).cast("array<string>"))
        if has_tries:
            more = zookeeper_rebalances(were_members, tries)
            changes = changes.unionByName(more, allowMissingColumns=True)
    yield "rebalance", history.write("rebalance", changes)[0]


def _generations(history: GroupHistory, snapshot: DataFrame) -> DataFrame:
    """The driver folds the records of few groups itself (`spark.tasks` says why)."""
    tables = history.tables
    metadata = history.frame("group_metadata")
    if not (is_local(tables.spark.sparkContext.master) and tables.is_small("group_metadata")):
        return generations(metadata, history.frame("offset_commit"), snapshot)
    return few_generations(tables, once(metadata), history.files["offset_commit"], snapshot)


def few_generations(
    tables: ClusterTables, records: DataFrame, commits: Sequence[Place], snapshot: DataFrame
) -> DataFrame:
    """Of few records, each once. `commits`: the files of offset_commit."""
    rows = records.toArrow()
    # Commits date records that have no time. Spark plans less where there are none.
    is_dated = not rows["written"].null_count
    of_epochs = frame_of_arrow(tables.spark, epochs_here(rows))
    return generations_of(
        as_frame(tables.spark, rows),
        of_epochs,
        tables.frame_of("offset_commit", () if is_dated else commits),
        snapshot,
    )


def has_zookeeper_groups(tables: ClusterTables, *names: str) -> bool:
    """Whether these tables, or both that may, have rows of them."""
    # No other kind comes after these, so parts of files are skipped by the bounds of what is in them.
    is_of_zookeeper = pc.field("kind") >= OF_ZOOKEEPER
    return any(
        tables.lake.has_rows(TABLES[name], tables.cluster, is_of_zookeeper)
        for name in names or ("cluster_snapshot", "log_event")
    )
