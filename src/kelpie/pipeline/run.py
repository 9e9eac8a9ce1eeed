"""A run over folders of evidence: files to bronze tables, each once; then all tables that follow.

summary = run(spark, Lake(tables), [folder], cluster="payments", announce=print)
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession

from kelpie.evidence.logs.hints import NO_HINTS, Hints
from kelpie.evidence.recognition import Kind
from kelpie.evidence.unpacking_room import unpacking_room
from kelpie.pipeline.derived import make_derived
from kelpie.pipeline.intake import Intake
from kelpie.pipeline.retention.aging import age, told
from kelpie.pipeline.retention.keep import FOR_EVER, Keep
from kelpie.pipeline.sources.file_states import forget_earlier_states
from kelpie.pipeline.sources.inventory import Item, known_files, look, plan
from kelpie.pipeline.sources.snapshots.outputs import Configurations
from kelpie.pipeline.sources.snapshots.surveys import clusters_of
from kelpie.pipeline.spark.cluster import is_local
from kelpie.pipeline.storage.frames import ClusterTables
from kelpie.pipeline.storage.lake import STAGING, Lake, plain
from kelpie.pipeline.summary import Announce, Summary
from kelpie.pipeline.tidying import merge_small_files
from kelpie.places import Place

_BATCHES_A_MERGE = 16
"""Each batch adds a few files to a table; to count them costs more than they do."""


def run(
    spark: SparkSession,
    lake: Lake,
    paths: Sequence[Place],
    *,
    cluster: str | None = None,
    hints: Hints = NO_HINTS,
    announce: Announce = lambda _: None,
    summary: Summary | None = None,
    only_bronze: bool = False,
    keep: Keep = FOR_EVER,
) -> Summary:
    """Takes in what is new below the paths and what a killed run began, and makes all tables that follow.

    Without a name, the cluster is called by its id, if disks or surveys have it, else after the first path.
    `summary`: an empty one, for callers that watch it grow. `only_bronze`: makes no derived tables.
    `keep`: for how long each layer keeps its rows; those that are older go at the end.
    """
    summary = Summary() if summary is None else summary
    with unpacking_room(_place_to_unpack(spark, lake)) as room:
        with summary.stage("files", announce):
            is_remote = any(not isinstance(path, Path) for path in paths)
            known = known_files(lake, plain(cluster)) if cluster and is_remote else {}
            inventory = look(paths, room, known)
            configurations = Configurations(inventory.of(Kind.CONFIGURATION))
            configurations.check()
            summary.cluster = plain(cluster or _name(configurations, inventory.items, paths))
            batches = plan(lake, summary.cluster, inventory)
            summary.files = len(inventory.items)
            if not batches:
                summary.unusable += [(row.name, row.reason) for row in inventory.unopened]
        with summary.stage("bronze", announce):
            tables = ClusterTables(spark, lake, summary.cluster)
            for batch in batches:
                Intake(tables, batch, hints=hints, announce=announce, summary=summary).run(
                    configurations, inventory
                )
                forget_earlier_states(lake, batch, summary.cluster)
    if only_bronze or not summary.files:
        return summary
    if batches and batches[-1].number % _BATCHES_A_MERGE == 0:
        merge_small_files(lake, summary.cluster)
    if make_derived(tables, summary, announce) | _age(tables, keep, summary, announce):
        lake.sweep()
    return summary


def _age(tables: ClusterTables, keep: Keep, summary: Summary, announce: Announce) -> bool:
    """Takes rows out that are older than they are kept. Returns whether there were any."""
    if not keep:
        return False
    with summary.stage("retention", announce):
        gone = age(tables, keep, datetime.now(UTC), summary.notes.append)
    for name, rows in gone.items():
        summary.tables[name] -= rows
    if gone:
        summary.notes.append(f"{told(gone)}.")
    return bool(gone)


def _place_to_unpack(spark: SparkSession, lake: Lake) -> Path | None:
    """Executors on other machines see the folder of the tables, and not this machine's temporary files."""
    if is_local(spark.sparkContext.master) or not isinstance(lake.root, Path):
        return None
    place = lake.root / STAGING
    place.mkdir(parents=True, exist_ok=True)
    return place


def _name(configurations: Configurations, items: Sequence[Item], paths: Sequence[Place]) -> str:
    surveys = [item for item in items if Kind.SURVEY in item.kinds]
    ids = set(configurations.clusters) | clusters_of(surveys)
    if len(ids) == 1:
        return next(iter(ids))
    return paths[0].absolute().name or "cluster"
