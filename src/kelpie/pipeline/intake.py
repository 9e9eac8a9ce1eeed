"""One batch of files into the bronze tables.

First segments, then logs, then what tells nothing of its own time: outputs of tools are dated by the others.
`cluster_snapshot` comes last, and with it the batch is done.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypedDict

import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everyone who knows Spark knows F.

from kelpie.evidence.logs.hints import Hints
from kelpie.evidence.recognition import Kind
from kelpie.evidence.unreadable import UNREADABLE
from kelpie.observations import OFFSETS_TOPIC, EventKind, Observations, Unasked
from kelpie.observations.encoding import KNOWN
from kelpie.observations.offsets_topic import add_row
from kelpie.observations.positions import Commit
from kelpie.pipeline.diagnosis import history
from kelpie.pipeline.sources.file_states import forget_complaints
from kelpie.pipeline.sources.inventory import Batch, Inventory, append, instant
from kelpie.pipeline.sources.logs import intake as logs
from kelpie.pipeline.sources.logs.progress import Ledger
from kelpie.pipeline.sources.scrapes import intake as scrapes
from kelpie.pipeline.sources.segments import intake as segments
from kelpie.pipeline.sources.segments.discovery import described, of_offsets_topic
from kelpie.pipeline.sources.snapshots import outputs as snapshots
from kelpie.pipeline.sources.snapshots import surveys as collected
from kelpie.pipeline.spark.cluster import is_local, is_readable, unseen
from kelpie.pipeline.storage import frames
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.storage.staging import staged, staging
from kelpie.pipeline.tables import TABLES

MOST_DATED_GROUPS = 2_000
"""Outputs are dated by the history of the groups that they show; that of so many is enough."""
MOST_TORN = 1_000
"""So many snapshots that are not whole are named in the summary."""
_POSITION = "group string, topic string, partition int, offset bigint"
_BYTES_TOLD = 4096
_NO_PARTITION = "It is a log segment, and neither its folder nor its name says of which partition."

Announce = Callable[[str], None]


class _Turn(TypedDict):
    """What makes a write happen once."""

    application: str
    version: int


class Intake:
    """Fills bronze tables with one batch."""

    def __init__(
        self,
        spark: SparkSession,
        lake: Lake,
        batch: Batch,
        *,
        cluster: str,
        hints: Hints,
        announce: Announce,
    ) -> None:
        self._spark, self._lake, self._batch, self._cluster = spark, lake, batch, cluster
        self._hints, self._announce = hints, announce
        self._as = _Turn(application=batch.application, version=batch.number)
        self.rows: dict[str, int] = {}
        """By table: how many were written."""
        self.unusable: list[tuple[str, str]] = []
        """Files that could not be used, or not wholly, and why."""
        self._unasked: list[Unasked] = []

    def run(self, configurations: snapshots.Configurations, inventory: Inventory) -> None:
        """`inventory`: all files that there are, also those of other batches."""
        forget_complaints(self._lake, self._batch, self._cluster)
        of_disks = self._segments(configurations.disks, inventory)
        outputs = snapshots.Outputs(self._batch.of(Kind.OUTPUT))
        told = self._logs(outputs)
        self._scrapes()
        self._surveys()
        self._announce("outputs of tools")
        dating = self._history(outputs.without_time(told, self._batch))
        everything = snapshots.together(self._batch, of_disks, told, configurations, outputs, history=dating)
        everything.unasked += [*inventory.unopened, *self._useless(), *self._unasked]
        self._quarantine(everything.unasked)
        everything.known_groups = self._not_told_yet(everything.known_groups)
        rows = snapshots.rows(
            everything,
            outputs.topic_ids,
            cluster=self._cluster,
            snapshot=self._batch.snapshot,
        )
        self._count(
            "cluster_snapshot",
            append(self._lake, TABLES["cluster_snapshot"], rows, self._cluster, **self._as),
        )

    def _segments(self, disks: Mapping[str, int], inventory: Inventory) -> Observations:
        """Of the offsets topic every record; of all topics where the logs end that have grown."""
        found = described(self._batch.of(Kind.SEGMENT), disks)
        for _, segment in found:
            if not segment.topic or (segment.topic == OFFSETS_TOPIC and segment.partition < 0):
                self._tell(segment.file.name, _NO_PARTITION)
        files = of_offsets_topic(found, self._cluster)
        self._announce(f"segments of the offsets topic: {len(files)} files")
        # Also when there are none: a run that was killed may have left something to finish.
        on_spark = segments.OnSpark(self._spark.sparkContext)
        done = segments.take_in(self._lake, files, on_spark, **self._as)
        for table, count in done.rows.items():
            self._count(table, count)
        grown = {(it.topic, it.partition, it.disk) for _, it in found if it.partition >= 0}
        everything = described(inventory.of(Kind.SEGMENT), disks)
        whole = [each for each in everything if (each[1].topic, each[1].partition, each[1].disk) in grown]
        known = {item.file.name: done.progress[item.path] for item, _ in whole if item.path in done.progress}
        return snapshots.ends_of(self._spark, [segment for _, segment in whole], known)

    def _logs(self, outputs: snapshots.Outputs) -> list[logs.Log]:
        items = self._batch.of(Kind.LOG)
        self._announce(f"logs: {len(items)} files")
        if not items:
            return []
        with staging(self._lake, f"logs-{self._batch.number}") as folder:
            ledger = Ledger(self._lake, self._cluster, self._batch.application)
            told = logs.read_logs(self._spark, items, folder, ledger, hints=self._hints)
            self._require_seen((log.reading.name, log.reason) for log in told)
            also_outputs = {it.file.name for it in self._batch.of(Kind.OUTPUT)}
            for log in told:
                if log.changed:
                    self.unusable.append((log.reading.name, log.reason))
                elif log.reason and log.reading.name not in also_outputs:
                    self._tell(log.reading.name, log.reason)
            told = [log for log in told if not log.reason]
            snapshots.settle_logs(told, self._batch, self._span())
            logs.correct(told, self._known_groups(told, outputs))
            self._add_events(told, ledger)
        return told

    def _add_events(self, told: Sequence[logs.Log], ledger: Ledger) -> None:
        table = TABLES["log_event"]
        if self._lake.version_of(table, self._batch.application) >= self._batch.number:
            return
        files = logs.write_logs(self._spark, told, self._lake.path(table), self._cluster)
        ledger.save([log.progress for log in told if log.progress is not None], self._batch.number)
        logs.change_rows(self._lake, self._cluster, told)
        if self._lake.add(table, files, **self._as):
            self._count(table.name, sum(file.rows for file in files))

    def _scrapes(self) -> None:
        items = self._batch.of(Kind.SCRAPE)
        if not items:
            return
        self._announce(f"scrapes of metrics: {len(items)} files")
        rows = scrapes.read_scrapes(self._spark, items, cluster=self._cluster)
        with staged(self._lake, f"scrapes-{self._batch.number}", rows) as stage:
            samples, damaged = stage.where("reason is null"), stage.where("reason is not null")
            if not self._is_local:
                unread = damaged.where(F.col("reason").startswith(UNREADABLE)).select("source", "reason")
                self._require_seen(map(tuple, unread.limit(MOST_TORN).collect()))
            self._add("metric_sample", samples, **self._as)
            as_scrapes = _Turn(application=f"{self._batch.application}: scrapes", version=self._batch.number)
            self._add("quarantine", damaged, **as_scrapes)

    def _surveys(self) -> None:
        items, left_out = collected.sort_out(self._batch.of(Kind.SURVEY), self._cluster)
        for name, reason in left_out.items():
            self._tell(name, reason)
        if not items:
            return
        self._announce(f"snapshots: {len(items)} files")
        rows = collected.read_surveys(self._spark, items, cluster=self._cluster)
        as_surveys = _Turn(application=f"{self._batch.application}: surveys", version=self._batch.number)
        with staged(self._lake, f"surveys-{self._batch.number}", rows) as stage:
            whole, damaged = stage.where("reason is null"), stage.where("reason is not null")
            torn = [tuple(row) for row in damaged.select("source", "reason").limit(MOST_TORN).collect()]
            self._require_seen(torn)
            self._add("cluster_snapshot", whole, **as_surveys)
            self._add("quarantine", damaged, **as_surveys)
            self.unusable += torn

    @property
    def _is_local(self) -> bool:
        return is_local(self._spark.sparkContext.master)

    def _require_seen(self, told: Iterable[tuple[str, str]]) -> None:
        """Files that tasks could not read, and why: if this machine can, that is an executor's fault, and
        nothing that tables should tell. Raises ClusterFault.
        """
        if self._is_local:
            return
        paths = {item.file.name: item.file.path for item in self._batch.items}
        for name, reason in told:
            if reason.startswith(UNREADABLE) and name in paths and is_readable(paths[name]):
                raise unseen(paths[name], reason.removeprefix(f"{UNREADABLE}: "))

    def _quarantine(self, unasked: Iterable[Unasked]) -> None:
        by_name = {item.file.name: item for item in self._batch.items}
        rows: list[dict[str, object]] = []
        for row in unasked:
            if row.kind != "file":
                continue
            item = by_name.get(row.name)
            self.unusable.append((row.name, row.reason))
            rows.append(
                {
                    "cluster": self._cluster,
                    "source": row.name,
                    "position": 0,
                    "size": item.file.size if item is not None else 0,
                    "reason": row.reason,
                    "bytes": _beginning(item.file.path) if item is not None else None,
                }
            )
        as_files = _Turn(application=f"{self._batch.application}: files", version=self._batch.number)
        if rows:
            self._count(
                "quarantine", append(self._lake, TABLES["quarantine"], rows, self._cluster, **as_files)
            )

    def _not_told_yet(self, known_groups: dict[str, str]) -> dict[str, str]:
        """Logs name the same groups in every batch."""
        if not known_groups:
            return {}
        is_known = pc.field("kind") == KNOWN
        of_files = pc.starts_with(pc.field("snapshot"), "batch ")
        told = self._lake.rows(TABLES["cluster_snapshot"], self._cluster, is_known & of_files)
        groups = set(told["group"].to_pylist())
        return {group: source for group, source in known_groups.items() if group not in groups}

    def _useless(self) -> list[Unasked]:
        return [
            Unasked("file", it.file.name, it.reason, source=it.file.name)
            for it in self._batch.items
            if it.reason
        ]

    def _span(self) -> Observations:
        """The first and the last commit there is: between them lies what a log without a date tells."""
        first, last = self._table("offset_commit").agg(F.min("committed"), F.max("committed")).collect()[0]
        ends = [at for at in (instant(first), instant(last)) if at is not None]
        return Observations(commits=[Commit("", "", 0, 0, at) for at in ends])

    def _known_groups(self, told: Sequence[logs.Log], outputs: snapshots.Outputs) -> dict[str, str]:
        """Groups by name: asked for only when a log gives its own away by nothing else."""
        if not any(log.ungrouped and not log.reading.found.known_groups for log in told):
            return {}
        names = (
            self._table("offset_commit").select("group").union(self._table("group_metadata").select("group"))
        )
        known = {row[0]: "" for row in names.distinct().collect()}
        for log in told:
            known |= log.reading.found.known_groups
        return known | outputs.known_groups

    def _history(self, outputs: snapshots.Outputs) -> Observations:
        """What logs say of leaders, and records of what outputs show: that is what outputs are dated by."""
        found = Observations()
        if not outputs.dated:
            return found
        events = self._table("log_event").where(f"kind = '{EventKind.LEADER_CHANGED.value}'")
        found.events = [logs.event_of(row.asDict()) for row in events.collect()]
        mine = outputs.groups[:MOST_DATED_GROUPS]
        if not mine:
            return found
        commit, files = self._table("offset_commit"), self._table("evidence_file")
        if outputs.positions:
            shown = self._spark.createDataFrame(outputs.positions, _POSITION)
            own = commit.join(F.broadcast(shown.select("group").distinct()), "group", "left_semi")
            commits = history.commits(own, self._table("transaction_marker"), files)
            for row in history.changes(commits, shown).collect():
                add_row(found, history.commit_of(row.asDict()))
        metadata = self._table("group_metadata")
        records = history.records(metadata.where(metadata["group"].isin(mine)), commit, files)
        by_group: dict[str, list[dict[str, object]]] = {}
        for row in records.orderBy("offsets_partition", "log_offset").collect():
            by_group.setdefault(row["group"], []).append(row.asDict())
        for rows in by_group.values():
            for each in history.generations_of(rows, {}):
                add_row(found, each)
        return found

    def _table(self, name: str) -> DataFrame:
        return frames.frame(self._spark, self._lake, TABLES[name], self._cluster)

    def _append(
        self, name: str, rows: Sequence[dict[str, object]], *, application: str, version: int
    ) -> None:
        added = append(
            self._lake, TABLES[name], rows, self._cluster, application=application, version=version
        )
        self._count(name, added)

    def _add(self, name: str, rows: DataFrame, *, application: str, version: int) -> None:
        added = frames.append(
            self._lake, TABLES[name], rows, self._cluster, application=application, version=version
        )
        self._count(name, added)

    def _count(self, table: str, rows: int) -> None:
        self.rows[table] = self.rows.get(table, 0) + rows

    def _tell(self, name: str, reason: str) -> None:
        self._unasked.append(Unasked("file", name, reason, source=name))


def _beginning(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            return file.read(_BYTES_TOLD)
    except OSError:
        return None
