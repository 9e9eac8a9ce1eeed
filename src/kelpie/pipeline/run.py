"""A run over folders of evidence: files to bronze tables, each once; then all tables that follow.

summary = run(spark, Lake(tables), [folder], cluster="payments", announce=print)
"""

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from kelpie.evidence.archives import Budget
from kelpie.evidence.files import Search
from kelpie.evidence.logs.hints import NO_HINTS, Hints
from kelpie.evidence.recognition import Kind
from kelpie.evidence.unpacking_room import unpacking_room
from kelpie.pipeline.derived import make_derived
from kelpie.pipeline.intake import Intake
from kelpie.pipeline.sources.file_states import forget_earlier_states
from kelpie.pipeline.sources.inventory import Item, plan, take_inventory
from kelpie.pipeline.sources.snapshots.outputs import Configurations
from kelpie.pipeline.sources.snapshots.surveys import clusters_of
from kelpie.pipeline.spark.cluster import is_local
from kelpie.pipeline.storage.frames import ClusterTables
from kelpie.pipeline.storage.lake import STAGING, Lake, plain
from kelpie.pipeline.summary import Announce, Summary


def run(
    spark: SparkSession,
    lake: Lake,
    paths: Sequence[Path],
    *,
    cluster: str | None = None,
    hints: Hints = NO_HINTS,
    announce: Announce = lambda _: None,
    summary: Summary | None = None,
    only_bronze: bool = False,
) -> Summary:
    """Takes in what is new below the paths and what a killed run began, and makes all tables that follow.

    Without a name, the cluster is called by its id, if disks or surveys have it, else after the first path.
    `summary`: an empty one, for callers that watch it grow. `only_bronze`: makes no derived tables.
    """
    summary = Summary() if summary is None else summary
    with unpacking_room(_place_to_unpack(spark, lake)) as room:
        with summary.stage("files", announce):
            inventory = take_inventory(paths, Search(room, Budget()), room)
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
    if make_derived(ClusterTables(spark, lake, summary.cluster), summary, announce):
        lake.sweep()
    return summary


def _place_to_unpack(spark: SparkSession, lake: Lake) -> Path | None:
    """Executors on other machines see the folder of the tables, and not this machine's temporary files."""
    if is_local(spark.sparkContext.master) or not isinstance(lake.root, Path):
        return None
    place = lake.root / STAGING
    place.mkdir(parents=True, exist_ok=True)
    return place


def _name(configurations: Configurations, items: Sequence[Item], paths: Sequence[Path]) -> str:
    surveys = [item for item in items if Kind.SURVEY in item.kinds]
    ids = set(configurations.clusters) | clusters_of(surveys)
    if len(ids) == 1:
        return next(iter(ids))
    return paths[0].absolute().name or "cluster"
