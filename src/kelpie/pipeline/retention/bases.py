"""Old rows that stay, because rows still to come depend on them: how things stood when the kept time began.

Kafka's own compaction does the same: of each key, the last record stays. So an idle group keeps its committed
offset, and a table that is made again of what is left gives the rows of the kept time as they were.

- offset_commit: of each position the last commit that counted (as a plain one: the marker of its transaction
  goes), and those whose transaction has not ended, with the commits after them;
- transaction_marker: behind the first commit that stays because of a transaction;
- commit_timeline: of each position the last row, the highest offset, and regressions that are not regained;
- group_metadata: of each group everything since the oldest membership or generation that goes on or is kept;
  before that, of each key the last record, and removals of the group, which count its incarnations;
- log_event: lines that say that a group was deleted;
- cluster_snapshot: of each thing that was asked the last answer; all settings and ids of topics that differ;
  of each log the looks that tell since when the slowest group is behind.

Lines of logs and dumps about groups that ZooKeeper keeps stay, all of them: their tables are always made as a
whole, and of lines that name no group nothing tells which ones still matter.
"""

from collections.abc import Callable, Sequence
from datetime import date

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - everyone who knows Spark knows F.

from kelpie.pipeline.storage.frames import ClusterTables
from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.tables.lifetimes import ends as ends_of
from kelpie.pipeline.tables.lifetimes import midnight
from kelpie.pipeline.transforms.commits import Epochs, carried_commits
from kelpie.pipeline.transforms.generations import TOPIC_ID
from kelpie.pipeline.transforms.lag import ENDS, carried_ends, ends, merged_ends, surveyed_positions
from kelpie.pipeline.transforms.losses import is_deletion, lasts
from kelpie.pipeline.transforms.positions import carried_positions
from kelpie.pipeline.transforms.zookeeper.events import OF_ZOOKEEPER
from kelpie.places import Place

Base = Callable[[ClusterTables, DataFrame, date], DataFrame]
_WHY = "carried"
_GROUPS_THEMSELVES = (2, 3)
"""Types of records of a group as such: classic, KIP-848."""


def is_old(name: str, since: date) -> Column:
    """Whether a row ended before a day. A row without a time did not."""
    time = F.coalesce(*(F.col(column) for column in ends_of(TABLES[name])))
    return F.coalesce(time < F.lit(midnight(since)), F.lit(False))


def kept_rows(tables: ClusterTables, name: str, files: Sequence[Place], since: date) -> DataFrame:
    """The rows of these files that stay."""
    rows = tables.frame_of(name, files)
    old = BASES[name](tables, rows.where(is_old(name, since)), since)
    return rows.where(~is_old(name, since)).unionByName(old.select(*rows.columns))


def _commits(tables: ClusterTables, old: DataFrame, since: date) -> DataFrame:
    markers = tables.frame("transaction_marker").where(is_old("transaction_marker", since))
    return carried_commits(old, markers, Epochs(), _WHY).drop(_WHY).distinct()


def _markers(tables: ClusterTables, old: DataFrame, since: date) -> DataFrame:
    commits = tables.frame("offset_commit").where(is_old("offset_commit", since))
    waits = (
        commits.where("is_transactional").groupBy("offsets_partition").agg(F.min("log_offset").alias("from"))
    )
    return old.join(F.broadcast(waits), "offsets_partition").where(F.col("log_offset") > F.col("from"))


def _positions(tables: ClusterTables, old: DataFrame, since: date) -> DataFrame:
    del tables, since
    return carried_positions(old, _WHY).drop(_WHY).unionByName(lasts(old)).distinct()


def _records(tables: ClusterTables, old: DataFrame, since: date) -> DataFrame:
    begun = [
        tables.frame(name).where(~is_old(name, since)).select("group", "began")
        for name in ("group_generation", "membership_interval")
    ]
    goes_on = begun[0].unionByName(begun[1]).groupBy("group").agg(F.min("began").alias("goes_on"))
    judged = old.join(goes_on, "group", "left")
    is_needed = F.coalesce(F.col("written") >= F.col("goes_on"), F.lit(False))
    newest = F.max(F.when(~is_needed, F.col("log_offset"))).over(
        Window.partitionBy("group", "offsets_partition", "key_type", "key")
    )
    is_count = F.col("is_removal") & F.col("key_type").isin(*_GROUPS_THEMSELVES)
    with_needed = judged.withColumn("needed", is_needed).withColumn("newest", newest)
    return with_needed.where(F.col("needed") | is_count | (F.col("log_offset") == F.col("newest")))


def _lines(tables: ClusterTables, old: DataFrame, since: date) -> DataFrame:
    del tables, since
    return old.where(is_deletion() | (F.col("kind") >= OF_ZOOKEEPER))


def _answers(tables: ClusterTables, old: DataFrame, since: date) -> DataFrame:
    said = F.when(F.col("kind").isin("setting", TOPIC_ID), F.col("body"))
    of_thing = Window.partitionBy("kind", "node", "group", "topic", "partition", "said").orderBy(
        F.desc("at"), F.desc("snapshot"), F.desc("ordinal")
    )
    ranked = old.withColumn("said", said).withColumn("rank", F.row_number().over(of_thing))
    looks = _looks(tables, old, since).withColumn("is_look", F.lit(True))
    place = ["kind", "topic", "partition", "at"]
    judged = ranked.join(looks, place, "left")
    return judged.where((F.col("rank") == 1) | F.col("is_look") | (F.col("kind") >= OF_ZOOKEEPER))


def _looks(tables: ClusterTables, old: DataFrame, since: date) -> DataFrame:
    """Looks at logs that rows of lag in the kept time need: kind, topic, partition, at."""
    timeline = tables.frame("commit_timeline")
    is_before = is_old("commit_timeline", since)
    log = ["cluster", "topic", "partition"]
    held = lasts(timeline.where(is_before)).unionByName(timeline.where(~is_before)).select(*log, "offset")
    recent = tables.frame("cluster_snapshot").where(~is_old("cluster_snapshot", since))
    offsets = held.unionByName(surveyed_positions(recent).select(*log, "offset"))
    seen = merged_ends(ends(old)).withColumn("is_trimmed", F.lit(False))
    kept = carried_ends(seen, offsets.where(F.col("offset").isNotNull()), F.lit(midnight(since)))
    return kept.select(F.lit(ENDS).alias("kind"), "topic", "partition", "at").distinct()


BASES: dict[str, Base] = {
    "commit_timeline": _positions,
    "offset_commit": _commits,
    "transaction_marker": _markers,
    "group_metadata": _records,
    "log_event": _lines,
    "cluster_snapshot": _answers,
}
"""In the order in which tables are done: a base may read another table, which then has its own."""
