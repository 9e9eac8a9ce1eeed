"""A run over a folder of evidence, in batch: files to bronze, each once; silver and gold that follow.

summary = run(spark, Lake(tables), [folder], cluster="payments", announce=print)
"""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everyone who knows Spark knows F.

from kelpie.doctor.case import Case
from kelpie.doctor.diagnosis import diagnose_cluster
from kelpie.evidence.archives import Budget
from kelpie.evidence.files import Search
from kelpie.evidence.logs.hints import NO_HINTS, Hints
from kelpie.evidence.recognition import Kind
from kelpie.pipeline.diagnosis import coordinators, history
from kelpie.pipeline.diagnosis import groups as diagnosis
from kelpie.pipeline.diagnosis.cluster import Cluster
from kelpie.pipeline.diagnosis.findings import finding_row, open_row
from kelpie.pipeline.graph import Job, waves
from kelpie.pipeline.intake import Intake
from kelpie.pipeline.sources.file_states import forget_earlier_states
from kelpie.pipeline.sources.inventory import Item, moment, plan, take_inventory
from kelpie.pipeline.sources.snapshots.outputs import Configurations
from kelpie.pipeline.sources.snapshots.surveys import clusters_of
from kelpie.pipeline.spark.cluster import is_local
from kelpie.pipeline.storage import frames
from kelpie.pipeline.storage.inputs import number_of
from kelpie.pipeline.storage.lake import STAGING, Lake
from kelpie.pipeline.storage.names import plain
from kelpie.pipeline.storage.parquet import NewFile, write_rows
from kelpie.pipeline.storage.staging import staged
from kelpie.pipeline.tables import TABLES, Table
from kelpie.pipeline.transforms.health import health, shown

_JUDGED = (
    "evidence_file",
    "offset_commit",
    "transaction_marker",
    "group_metadata",
    "log_event",
    "cluster_snapshot",
    "quarantine",
    "group_generation",
    "rebalance",
    "commit_timeline",
    "lag",
)
"""What the doctor and those who come after him read."""
_LAST = TABLES["coordinator_outage"]
"""The last table that is made of it: if it is up to date, the others are."""
_AT_ONCE = 3
"""Jobs: while one is planned, another one has tasks to run."""

Announce = Callable[[str], None]


@dataclass(slots=True)
class Summary:
    """What a run did."""

    cluster: str = ""
    files: int = 0
    """How many were there."""
    new_files: int = 0
    bytes: int = 0
    """Of the new ones."""
    by_kind: dict[str, int] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)
    """Rows by bronze table that this run added."""
    tables: dict[str, int] = field(default_factory=dict)
    """Rows by table, now."""
    findings: dict[str, int] = field(default_factory=dict)
    """How many, by severity."""
    unusable: list[tuple[str, str]] = field(default_factory=list)
    """Files that were of no use, and why."""
    seconds: dict[str, float] = field(default_factory=dict)
    """By stage."""


def run(
    spark: SparkSession,
    lake: Lake,
    paths: Sequence[Path],
    *,
    cluster: str | None = None,
    hints: Hints = NO_HINTS,
    budget: Budget | None = None,
    announce: Announce = lambda _: None,
    summary: Summary | None = None,
) -> Summary:
    """Take in what is new below the paths, and make all tables that follow.

    Without a name, the cluster is called by its id, if disks or snapshots tell it, else after the first path.
    `summary`: an empty one, for those who want to see it grow.
    """
    summary = take_in(
        spark, lake, paths, cluster=cluster, hints=hints, budget=budget, announce=announce, summary=summary
    )
    if summary.files and Derived(spark, lake, summary, announce).make():
        lake.sweep()
    return summary


def take_in(
    spark: SparkSession,
    lake: Lake,
    paths: Sequence[Path],
    *,
    cluster: str | None = None,
    hints: Hints = NO_HINTS,
    budget: Budget | None = None,
    announce: Announce = lambda _: None,
    summary: Summary | None = None,
) -> Summary:
    """Bronze only: what is new below the paths, and what an earlier run began and did not end."""
    summary = Summary() if summary is None else summary
    room = Path(tempfile.mkdtemp(prefix="kelpie-evidence-", dir=_place_to_unpack(spark, lake)))
    try:
        with _stage(summary, "files", announce):
            search = Search(room, budget or Budget())
            inventory = take_inventory(paths, search, room)
            configurations = Configurations(inventory.of(Kind.CONFIGURATION))
            configurations.check()
            summary.cluster = plain(cluster or _name(configurations, inventory.items, paths))
            batches = plan(lake, summary.cluster, inventory)
            summary.files = len(inventory.items)
            if not batches:
                summary.unusable += [(it.name, it.reason) for it in inventory.unopened]
        with _stage(summary, "bronze", announce):
            for batch in batches:
                summary.new_files += len(batch.items)
                summary.bytes += sum(it.file.size for it in batch.items)
                intake = Intake(spark, lake, batch, cluster=summary.cluster, hints=hints, announce=announce)
                intake.rows = summary.written
                own = Configurations(batch.of(Kind.CONFIGURATION))
                own.disks = configurations.disks
                intake.run(own, inventory)
                forget_earlier_states(lake, batch, summary.cluster)
                summary.unusable += intake.unusable
                for item in batch.items:
                    for kind in item.kinds:
                        summary.by_kind[kind] = summary.by_kind.get(kind, 0) + 1
    finally:
        shutil.rmtree(room, ignore_errors=True)
    return summary


class Derived:
    """Silver and gold of one cluster, replaced where what they are made of has changed."""

    def __init__(self, spark: SparkSession, lake: Lake, summary: Summary, announce: Announce) -> None:
        self._spark, self._lake, self._summary, self._announce = spark, lake, summary, announce
        self._cluster = summary.cluster

    def make(self) -> bool:
        """Whether there was anything to do."""
        did = False
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for wave in waves():
                # Looked at before it is read: what comes meanwhile makes the table due again.
                due = [(job, made_of) for job in wave if (made_of := self._due(job.table, job.inputs))]
                if due:
                    did = True
                    names = ", ".join(job.name for job, _ in due)
                    with _stage(self._summary, "tables", self._announce, names):
                        list(pool.map(lambda it: self._job(*it), due))
        if made_of := self._due(_LAST, _JUDGED):
            did = True
            with _stage(self._summary, "diagnosis", self._announce, "findings"):
                self._diagnose(made_of)
        else:
            self._summary.findings = self._lake.tally(TABLES["findings"], self._cluster, "severity")
        self._summary.tables = {
            table.name: self._lake.count(table, self._cluster) for table in TABLES.values()
        }
        return did

    def _due(self, table: Table, inputs: Sequence[str]) -> int:
        """The number of its inputs if they have changed since it was made, else 0."""
        number = number_of(self._lake, self._cluster, inputs)
        return 0 if self._lake.made_of(table, self._cluster) == number else number

    def _job(self, job: Job, made_of: int) -> None:
        rows = job.function(*map(self._table, job.inputs))
        files = frames.write(self._lake, job.table, rows, self._cluster)
        self._put(job.table, files, made_of)

    def _diagnose(self, made_of: int) -> None:
        files = self._table("evidence_file")
        commit = self._table("offset_commit")
        # Kept, on disk if need be: they are looked at three times.
        commits = history.commits(commit, self._table("transaction_marker"), files).persist()
        records = history.records(self._table("group_metadata"), commit, files).persist()
        events, snapshot = self._table("log_event"), self._table("cluster_snapshot")
        timed = snapshot.where(~F.col("kind").isin("setting", "transaction", "epoch-end"))
        known = Cluster(self._lake, self._cluster)
        view = known.view(diagnosis.end_of(commits, records, events, timed) or 0)
        shared = diagnosis.Shared(
            self._cluster,
            view,
            tuple((it, frozenset(it.groups)) for it in known.listings),
            diagnosis.history_from(commits, records),
            known.topic_ids,
        )
        judged = diagnosis.judge(
            self._spark, shared, commits=commits, records=records, events=events, snapshot=snapshot
        )
        with staged(self._lake, "judged", judged) as stage:
            cases = stage.where(F.col("what") == diagnosis.CASE)
            groups = [(row["group"], row["offsets_partition"]) for row in cases.collect()]
            found, undecided = diagnose_cluster(view, [Case(group, view) for group, _ in sorted(groups)])
            self._replace(
                TABLES["findings"],
                self._with(
                    stage, diagnosis.FINDING, [finding_row(it, self._cluster) for it in found], "findings"
                ),
            )
            self._replace(
                TABLES["open_question"],
                self._with(
                    stage, diagnosis.OPEN, [open_row(it, self._cluster) for it in undecided], "open_question"
                ),
            )
            self._health(cases, view.now)
        commits.unpersist()
        records.unpersist()
        by_home: dict[int, list[str]] = {}
        for group, home in groups:
            if home is not None:
                by_home.setdefault(home, []).append(group)
        self._rows("coordinator_timeline", coordinators.timeline(view, self._cluster))
        self._rows(_LAST.name, coordinators.outages(view, self._cluster, by_home), made_of)
        self._summary.findings = self._lake.tally(TABLES["findings"], self._cluster, "severity")

    def _with(self, stage: DataFrame, what: str, rows: list[dict[str, Any]], name: str) -> DataFrame:
        """What tasks found, and what was found of the cluster as a whole."""
        schema = TABLES[name].spark_schema
        mine = stage.where(F.col("what") == what).select(*schema.fieldNames())
        return mine.unionByName(self._spark.createDataFrame(rows, schema))

    def _health(self, cases: DataFrame, now: int) -> None:
        rows = health(
            cases.select(
                "cluster", "group", "offsets_partition", "state", "member_count", "known_from", "is_listed"
            ),
            findings=self._table("findings"),
            generations=self._table("group_generation"),
            rebalances=self._table("rebalance"),
            timeline=self._table("commit_timeline"),
            lag=self._table("lag"),
            shown=shown(self._table("cluster_snapshot")),
            now=F.lit(moment(now)),
        )
        self._replace(TABLES["group_health"], rows)

    def _rows(self, name: str, rows: list[dict[str, Any]], made_of: int | None = None) -> None:
        """Few, and held by the driver: no job is needed to write them."""
        table = TABLES[name]
        self._lake.open(table)
        self._put(table, write_rows(table, self._lake.path(table), self._cluster, rows), made_of)

    def _table(self, name: str) -> DataFrame:
        return frames.frame(self._spark, self._lake, TABLES[name], self._cluster)

    def _replace(self, table: Table, rows: DataFrame) -> None:
        self._put(table, frames.write(self._lake, table, rows, self._cluster))

    def _put(self, table: Table, files: Sequence[NewFile], made_of: int | None = None) -> None:
        self._lake.replace(table, self._cluster, files, made_of=made_of)
        self._summary.tables[table.name] = sum(file.rows for file in files)


def _place_to_unpack(spark: SparkSession, lake: Lake) -> Path | None:
    """Executors elsewhere see the folder of the tables; nobody else sees this machine's temporary files."""
    if is_local(spark.sparkContext.master):
        return None
    place = lake.root / STAGING
    place.mkdir(parents=True, exist_ok=True)
    return place


def _name(configurations: Configurations, items: Sequence[Item], paths: Sequence[Path]) -> str:
    ids = set(configurations.clusters) | clusters_of([it for it in items if Kind.SURVEY in it.kinds])
    if len(ids) == 1:
        return next(iter(ids))
    return paths[0].absolute().name or "cluster"


@contextmanager
def _stage(summary: Summary, name: str, announce: Announce, what: str = "") -> Iterator[None]:
    announce(what or name)
    began = time.monotonic()
    try:
        yield
    finally:
        summary.seconds[name] = summary.seconds.get(name, 0.0) + time.monotonic() - began
