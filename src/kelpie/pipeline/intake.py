"""One batch of files into the bronze tables.

First segments, then logs, scrapes and surveys, then outputs of tools: these do not say when they were made,
and the other files date them. `cluster_snapshot` is filled last, and completes the batch. Each write has the
number of the batch, so a batch that a killed run began is continued and no row comes twice.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypedDict

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everyone who knows Spark knows F.

from kelpie.evidence.logs.hints import Hints
from kelpie.evidence.recognition import Kind
from kelpie.evidence.unreadable import UNREADABLE
from kelpie.observations import OFFSETS_TOPIC, EventKind, Observations, Unasked
from kelpie.observations.encoding import KNOWN
from kelpie.observations.offsets_topic import add_row
from kelpie.observations.positions import Commit
from kelpie.pipeline.diagnosis import history
from kelpie.pipeline.diagnosis.plain_history import PlainHistory
from kelpie.pipeline.sources.file_states import forget_complaints
from kelpie.pipeline.sources.inventory import FileBatch, Inventory, Item
from kelpie.pipeline.sources.logs import intake as logs
from kelpie.pipeline.sources.logs.progress import Ledger
from kelpie.pipeline.sources.scrapes import intake as scrapes
from kelpie.pipeline.sources.segments import intake as segments
from kelpie.pipeline.sources.snapshots import outputs as snapshots
from kelpie.pipeline.sources.snapshots import surveys
from kelpie.pipeline.spark.arrow_frames import frame_of_arrow
from kelpie.pipeline.spark.cluster import is_local, is_readable, unseen
from kelpie.pipeline.spark.tasks import is_done_here
from kelpie.pipeline.storage.frames import ClusterTables, Rows, as_frame, staged, staging
from kelpie.pipeline.summary import Announce, Summary
from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.tables.moments import instant
from kelpie.pipeline.transforms.group_records import observed_groups
from kelpie.pipeline.transforms.offset_samples import offset_samples
from kelpie.places import Place

MOST_DATED_GROUPS = 2_000
"""Outputs are dated by the history of the groups that they show; the history of so many is enough."""
MOST_TORN = 1_000
"""So many incomplete files are named in the summary."""
_POSITION = pa.schema(
    {"group": pa.string(), "topic": pa.string(), "partition": pa.int32(), "offset": pa.int64()}
)
_QUOTED_BYTES = 4096
_NO_PARTITION = "It is a log segment, and neither its folder nor its name says of which partition."


class _BatchNumber(TypedDict):
    """What makes a write happen once."""

    application: str
    version: int


class Intake:
    """Fills bronze tables with one batch."""

    def __init__(
        self,
        tables: ClusterTables,
        batch: FileBatch,
        *,
        hints: Hints,
        announce: Announce,
        summary: Summary,
    ) -> None:
        self._tables, self._batch = tables, batch
        self._hints, self._announce, self._summary = hints, announce, summary
        self._unusable: list[Unasked] = []
        """Files that could not be used; what quarantine will say of them."""

    def run(self, configurations: snapshots.Configurations, inventory: Inventory) -> None:
        """`configurations`, `inventory`: of all files that there are, also those of other batches."""
        batch, summary = self._batch, self._summary
        summary.new_files += len(batch.items)
        summary.bytes += sum(item.file.size for item in batch.items)
        forget_complaints(self._tables.lake, batch, self._tables.cluster)
        of_disks = self._segments(configurations.disks, inventory)
        outputs = snapshots.Outputs(batch.of(Kind.OUTPUT))
        read_logs = self._logs(outputs)
        labelled = self._scrapes()
        self._surveys()
        self._announce("outputs of tools")
        everything = snapshots.together(
            batch,
            of_disks,
            read_logs,
            snapshots.Configurations(batch.of(Kind.CONFIGURATION)),
            outputs,
            history=self._history(outputs.without_time(read_logs, batch)),
        )
        everything.unasked += [*inventory.unopened, *self._unrecognised(), *self._unusable]
        self._quarantine(everything.unasked)
        everything.known_groups = self._new_groups(labelled | everything.known_groups)
        rows = snapshots.rows(
            everything, outputs.topic_ids, cluster=self._tables.cluster, snapshot=batch.snapshot
        )
        self._append("cluster_snapshot", rows)
        for item in batch.items:
            for kind in item.kinds:
                summary.by_kind[kind] = summary.by_kind.get(kind, 0) + 1

    def _segments(self, disks: Mapping[str, int], inventory: Inventory) -> Observations:
        """All records of the offsets topic; of all topics, where the logs end that have grown."""
        new = segments.described(self._batch.of(Kind.SEGMENT), disks)
        for _, segment in new:
            if not segment.topic or (segment.topic == OFFSETS_TOPIC and segment.partition < 0):
                self._note_unusable(segment.file.name, _NO_PARTITION)
        files = segments.of_offsets_topic(new, self._tables.cluster)
        self._announce(f"segments of the offsets topic: {len(files)} files")
        # Also without files: a run that was killed may have left a batch to complete.
        context = self._tables.spark.sparkContext
        runner, cores = segments.on_spark(context), context.defaultParallelism
        done = segments.take_in(self._tables.lake, files, runner, cores=cores, **self._number())
        for table, count in done.rows.items():
            self._count(table, count)
        grown = {(each.topic, each.partition, each.disk) for _, each in new if each.partition >= 0}
        of_grown_logs = [
            (item, each)
            for item, each in segments.described(inventory.of(Kind.SEGMENT), disks)
            if (each.topic, each.partition, each.disk) in grown
        ]
        progress = {
            item.file.name: done.progress[item.path]
            for item, _ in of_grown_logs
            if item.path in done.progress
        }
        return snapshots.ends_of(self._tables.spark, [each for _, each in of_grown_logs], progress)

    def _logs(self, outputs: snapshots.Outputs) -> list[logs.Log]:
        items = self._batch.of(Kind.LOG)
        self._announce(f"logs: {len(items)} files")
        if not items:
            return []
        tables, batch = self._tables, self._batch
        with staging(tables.lake, f"logs-{batch.number}") as folder:
            ledger = Ledger(tables.lake, tables.cluster, batch.application, self._summary.notes)
            read = logs.read_logs(tables.spark, items, folder, ledger, hints=self._hints)
            self._require_seen((log.reading.name, log.reason) for log in read)
            also_outputs = {item.file.name for item in batch.of(Kind.OUTPUT)}
            for log in read:
                if log.changed:
                    self._summary.unusable.append((log.reading.name, log.reason))
                elif log.reason and log.reading.name not in also_outputs:
                    self._note_unusable(log.reading.name, log.reason)
            usable = [log for log in read if not log.reason]
            snapshots.settle_logs(usable, batch, self._commit_times())
            logs.correct(usable, self._known_groups(usable, outputs))
            self._add_events(usable, ledger)
        return usable

    def _add_events(self, usable: Sequence[logs.Log], ledger: Ledger) -> None:
        table, tables, batch = TABLES["log_event"], self._tables, self._batch
        if tables.lake.version_of(table, batch.application) >= batch.number:
            return
        files = logs.write_logs(tables.spark, usable, tables.lake.path(table), tables.cluster)
        ledger.save([log.progress for log in usable if log.progress is not None], batch.number)
        logs.change_rows(tables.lake, tables.cluster, usable)
        if tables.lake.add(table, files, **self._number()):
            self._count(table.name, sum(file.rows for file in files))

    def _scrapes(self) -> dict[str, str]:
        """Returns the groups that labels name."""
        items = self._batch.of(Kind.SCRAPE)
        if not items:
            return {}
        self._announce(f"scrapes of metrics: {len(items)} files")
        with self._read(items, scrapes.read_here, scrapes.read_scrapes, "scrapes") as stage:
            damaged = scrapes.rows_for(scrapes.DAMAGE, stage)
            if not self._is_local:
                unread = damaged.where(F.col("reason").startswith(UNREADABLE)).select("source", "reason")
                self._require_seen(
                    (row["source"], row["reason"]) for row in unread.limit(MOST_TORN).collect()
                )
            self._append("metric_sample", scrapes.rows_for(scrapes.SAMPLE, stage))
            self._append("quarantine", damaged, part="scrapes")
            self._append("traffic_sample", scrapes.rows_for(scrapes.TRAFFIC, stage))
            malformed = scrapes.snapshot_rows(stage, f"{self._batch.snapshot}: scrapes")
            if malformed:
                of_cluster = [{"cluster": self._tables.cluster, **row} for row in malformed]
                self._append("cluster_snapshot", of_cluster, part="scrapes")
            return scrapes.groups_in(stage)

    def _surveys(self) -> None:
        items, left_out = surveys.sort_out(self._batch.of(Kind.SURVEY), self._tables.cluster)
        for name, reason in left_out.items():
            self._note_unusable(name, reason)
        if not items:
            return
        self._announce(f"snapshots: {len(items)} files")
        with self._read(items, surveys.read_here, surveys.read_surveys, "surveys") as stage:
            damaged, whole = surveys.damaged_rows(stage), surveys.whole_rows(stage)
            torn = surveys.torn_files(damaged, MOST_TORN)
            self._require_seen(torn)
            self._append("cluster_snapshot", whole, part="surveys")
            surveyed = as_frame(self._tables.spark, whole)
            self._append("offset_sample", offset_samples(surveyed), part="surveys")
            self._append("quarantine", damaged, part="surveys")
            self._summary.unusable += torn

    @contextmanager
    def _read(
        self,
        items: Sequence[Item],
        here: Callable[..., pa.Table],
        on_spark: Callable[..., DataFrame],
        name: str,
    ) -> Iterator[DataFrame | pa.Table]:
        """The rows of these files, for several tables: in memory if they are few, else in staged files."""
        tables = self._tables
        if is_done_here(tables.spark.sparkContext, sum(item.file.size for item in items)):
            yield here(items, cluster=tables.cluster)
            return
        rows = on_spark(tables.spark, items, cluster=tables.cluster)
        with staged(tables.lake, f"{name}-{self._batch.number}", rows) as stage:
            yield stage

    @property
    def _is_local(self) -> bool:
        return is_local(self._tables.spark.sparkContext.master)

    def _require_seen(self, unread: Iterable[tuple[str, str]]) -> None:
        """Names of files that tasks could not read. Raises ClusterFault if this machine can read one.

        Then an executor lacks the file system, and tables must not call the file unreadable.
        """
        if self._is_local:
            return
        paths = {item.file.name: item.file.path for item in self._batch.items}
        for name, reason in unread:
            if reason.startswith(UNREADABLE) and name in paths and is_readable(paths[name]):
                raise unseen(paths[name], reason.removeprefix(f"{UNREADABLE}: "))

    def _quarantine(self, unasked: Iterable[Unasked]) -> None:
        by_name = {item.file.name: item for item in self._batch.items}
        rows: list[dict[str, object]] = []
        for row in unasked:
            if row.kind != "file":
                continue
            item = by_name.get(row.name)
            self._summary.unusable.append((row.name, row.reason))
            rows.append(
                {
                    "cluster": self._tables.cluster,
                    "source": row.name,
                    "position": 0,
                    "size": item.file.size if item is not None else 0,
                    "reason": row.reason,
                    "bytes": _beginning(item.file.path) if item is not None else None,
                }
            )
        if rows:
            self._append("quarantine", rows, part="files")

    def _new_groups(self, known_groups: dict[str, str]) -> dict[str, str]:
        """Without groups that an earlier batch has named: logs name the same groups in every batch."""
        if not known_groups:
            return {}
        is_known = pc.field("kind") == KNOWN
        of_files = pc.starts_with(pc.field("snapshot"), "batch ")
        named = self._tables.lake.rows(TABLES["cluster_snapshot"], self._tables.cluster, is_known & of_files)
        groups = set(named["group"].to_pylist())
        return {group: source for group, source in known_groups.items() if group not in groups}

    def _unrecognised(self) -> list[Unasked]:
        return [
            Unasked("file", item.file.name, item.reason, source=item.file.name)
            for item in self._batch.items
            if item.reason
        ]

    def _commit_times(self) -> Observations:
        """The first and the last commit: a log without a date was written between them."""
        bounds = self._tables.lake.bounds(TABLES["offset_commit"], self._tables.cluster, "committed")
        ends = [at for at in map(instant, bounds) if at is not None]
        return Observations(commits=[Commit("", "", 0, 0, at) for at in ends])

    def _known_groups(self, usable: Sequence[logs.Log], outputs: snapshots.Outputs) -> dict[str, str]:
        """Groups by name; empty unless a log has events whose group only the name of the file can tell."""
        if not any(log.ungrouped and not log.reading.observations.known_groups for log in usable):
            return {}
        known = dict.fromkeys(self._groups_in("offset_commit") | self._groups_in("group_metadata"), "")
        for log in usable:
            known |= log.reading.observations.known_groups
        return known | outputs.known_groups

    def _groups_in(self, name: str) -> set[str]:
        """The groups that have rows in a table."""
        tables = self._tables
        if tables.is_small(name):
            return set(tables.lake.rows(TABLES[name], tables.cluster, columns=["group"])["group"].to_pylist())
        return {row["group"] for row in tables.frame(name).select("group").distinct().collect()}

    def _history(self, outputs: snapshots.Outputs) -> Observations:
        """What outputs are dated by: changes of leaders in logs, records of the groups that they show."""
        seen = Observations()
        if not outputs.dated:
            return seen
        is_of_leaders = pc.field("kind") == EventKind.LEADER_CHANGED.value
        events = self._tables.lake.rows(TABLES["log_event"], self._tables.cluster, is_of_leaders)
        seen.events = [logs.event_of(row) for row in events.to_pylist()]
        groups = outputs.groups[:MOST_DATED_GROUPS]
        if not groups:
            return seen
        if outputs.positions:
            for row in self._changes(outputs.positions):
                add_row(seen, history.commit_of(row))
        by_group: dict[str, list[dict[str, Any]]] = {}
        for row in self._records(groups):
            by_group.setdefault(row["group"], []).append(row)
        for rows in by_group.values():
            for observation in observed_groups(rows, {}):
                add_row(seen, observation)
        return seen

    @cached_property
    def _plain_history(self) -> PlainHistory:
        return PlainHistory(self._tables.lake, self._tables.cluster)

    def _changes(self, positions: Sequence[tuple[str, str, int, int]]) -> Iterable[dict[str, Any]]:
        """Commits that tell when the offsets of these positions were shown."""
        tables = self._tables
        if tables.is_small("offset_commit", "transaction_marker"):
            return self._plain_history.changes(positions)
        columns = map(list, zip(*positions, strict=True))
        shown = frame_of_arrow(tables.spark, pa.table(list(columns), schema=_POSITION))
        of_groups = F.broadcast(shown.select("group").distinct())
        of_shown = tables.frame("offset_commit").join(of_groups, "group", "left_semi")
        markers, files = tables.frame("transaction_marker"), tables.frame("evidence_file")
        commits = history.commits(of_shown, markers, files)
        return [row.asDict() for row in history.changes(commits, shown).collect()]

    def _records(self, groups: Sequence[str]) -> Iterable[dict[str, Any]]:
        """Records of these groups, with their times, in the order of the log."""
        tables, name = self._tables, "group_metadata"
        is_undated = tables.lake.has_rows(TABLES[name], tables.cluster, pc.field("written").is_null())
        if not is_undated and tables.is_small(name):
            return self._plain_history.records(groups)
        metadata, files = tables.frame(name), tables.frame("evidence_file")
        # Commits date records that have no time.
        commit = tables.frame("offset_commit") if is_undated else tables.frame_of("offset_commit", ())
        records = history.records(metadata.where(metadata["group"].isin(*groups)), commit, files)
        in_order = records.orderBy("offsets_partition", "log_offset").collect()
        return [row.asDict(recursive=True) for row in in_order]

    def _append(self, name: str, rows: Rows, part: str = "") -> None:
        """`part`: a part of the batch that writes to this table beside others."""
        self._count(name, self._tables.append(name, rows, **self._number(part)))

    def _number(self, part: str = "") -> _BatchNumber:
        application = self._batch.application
        return _BatchNumber(
            application=f"{application}: {part}" if part else application, version=self._batch.number
        )

    def _count(self, table: str, rows: int) -> None:
        self._summary.written[table] = self._summary.written.get(table, 0) + rows

    def _note_unusable(self, name: str, reason: str) -> None:
        self._unusable.append(Unasked("file", name, reason, source=name))


def _beginning(path: Place) -> bytes | None:
    try:
        with path.open("rb") as file:
            return file.read(_QUOTED_BYTES)
    except OSError:
        return None
