"""What tools, configurations and disks say of a cluster, into `cluster_snapshot`: small, read on the driver.

An output of a tool seldom says when it was made; logs and the offsets topic date it, so they are read first.
The body of a row is the observation as JSON; the other columns are for searching.
"""

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kelpie.evidence.assembly import BrokerProperties, add_outputs
from kelpie.evidence.dating import Dated, settle_dates, without_time
from kelpie.evidence.describes import read_output
from kelpie.evidence.logs.lines import read_lines
from kelpie.evidence.mapping_dumps import read_mappings, settle_mappings
from kelpie.evidence.recognition import Kind
from kelpie.evidence.segments import Segment, add_broker, log_ends
from kelpie.evidence.snapshot_choice import failed_row
from kelpie.evidence.unreadable import unreadable
from kelpie.evidence.zookeeper_dumps import NoDump, observe, read_dump
from kelpie.observations import OFFSETS_TOPIC, LogEnds, MappingNode, Observations, Unasked
from kelpie.observations.earlier import earlier_rows
from kelpie.observations.encoding import KNOWN, add, dumps, loads, rows_of
from kelpie.observations.positions import NO_OFFSET
from kelpie.pipeline.sources.inventory import FileBatch, Item
from kelpie.pipeline.sources.logs.intake import Log
from kelpie.pipeline.sources.segments.files import SegmentProgress
from kelpie.pipeline.spark.spark_errors import SeveralClusters
from kelpie.pipeline.spark.tasks import run_tasks
from kelpie.pipeline.tables.moments import moment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC_ID, SURVEY = "topic-id", "survey"
"""Rows that are no observations: the id of a topic, the header of a snapshot that `kelpie collect` took."""
EARLIER, FAILED = "earlier ", "failed "
"""Before the kind of a row: it is of an earlier survey, or of one that no broker answered."""
_BROKER = "broker"


class Configurations(BrokerProperties):
    """Properties files of brokers: settings, and which broker a disk belongs to."""

    def __init__(self, items: Iterable[Item]) -> None:
        super().__init__()
        for item in items:
            self.add(item.file, read_lines(item.file.path, item.encoding))

    def check(self) -> None:
        """Raises SeveralClusters."""
        if len(self.clusters) > 1:
            places = ", ".join(f"{file} is of {name}" for name, file in sorted(self.clusters.items()))
            raise SeveralClusters(
                f"There are disks of {len(self.clusters)} clusters here: {places}. Their records have the "
                "same places, and would be taken for copies of each other. Read one cluster at a time."
            )


class Outputs:
    """Outputs of Kafka's tools."""

    def __init__(self, items: Iterable[Item]) -> None:
        self.dated = [
            Dated(read_output(read_lines(item.file.path, item.encoding), item.file.name), item.file.modified)
            for item in items
        ]

    def without_time(self, logs: Sequence[Log], batch: FileBatch) -> "Outputs":
        """The outputs that only history can date."""
        undated = Outputs(())
        undated.dated = without_time(self.dated, [log.reading for log in logs], _modified(batch))
        return undated

    @property
    def groups(self) -> list[str]:
        """Groups whose state or offsets they show: the history of these dates them."""
        observations = [dated.output.observations for dated in self.dated]
        shown = {row.group for one in observations for row in one.states}
        shown |= {row.group for one in observations for row in one.committed}
        return sorted(shown | {row.group for one in observations for row in one.removals})

    @property
    def positions(self) -> list[tuple[str, str, int, int]]:
        """Group, topic, partition and offset of all committed offsets that they show."""
        rows = (row for dated in self.dated for row in dated.output.observations.committed)
        return sorted(
            {(row.group, row.topic, row.partition, row.offset) for row in rows if row.offset != NO_OFFSET}
        )

    @property
    def known_groups(self) -> dict[str, str]:
        return Observations().add(*(dated.output.observations for dated in self.dated)).known_groups

    @property
    def topic_ids(self) -> dict[bytes, str]:
        return {topic_id: name for dated in self.dated for topic_id, name in dated.output.topic_ids.items()}


def ends_of(
    spark: "SparkSession", segments: Sequence[Segment], progress: Mapping[str, SegmentProgress]
) -> Observations:
    """The ends of logs, by disk, and the brokers of these disks.

    For the offsets topic, `progress` has them, by the name of the file. For other topics, tasks read the
    first and the newest segment of each log.
    """
    replicas: dict[tuple[str, int, str], list[Segment]] = {}
    for segment in segments:
        replicas.setdefault((segment.topic, segment.partition, segment.disk), []).append(segment)
    todo = []
    seen = Observations()
    for of_log in replicas.values():
        of_log.sort(key=lambda segment: (segment.base_offset, segment.file.name))
        add_broker(seen, of_log[0])
        known = progress.get(of_log[-1].file.name)
        if of_log[0].topic != OFFSETS_TOPIC:
            todo.append(
                [_light(segment) for segment in ([of_log[0], of_log[-1]] if len(of_log) > 1 else of_log)]
            )
        elif known is not None:
            seen.ends.append(_end_of(of_log, known))

    def task(of_log: Sequence[Segment]) -> list[tuple[str, str]]:
        return [(kind, dumps(row)) for kind, row in rows_of(log_ends(of_log))]

    context = spark.sparkContext
    size = sum(segment.file.size for of_log in todo for segment in of_log)
    for rows in run_tasks(context, task, todo, size=size, slices=context.defaultParallelism * 4):
        for kind, body in rows:
            if kind != _BROKER:
                add(seen, kind, loads(kind, body))
    seen.ends.sort(key=lambda end: (end.topic, end.partition, end.at or -1, end.latest))
    return seen


def _end_of(of_log: Sequence[Segment], known: SegmentProgress) -> LogEnds:
    newest = of_log[-1]
    at = known.newest if known.newest >= 0 else None
    return LogEnds(
        newest.topic,
        newest.partition,
        of_log[0].base_offset,
        max(known.next_offset, newest.base_offset),
        last_written=at,
        at=at,
        source=newest.file.name,
    )


def settle_logs(logs: Sequence[Log], batch: FileBatch, history: Observations) -> None:
    """Gives logs without a date their date."""
    settle_dates([log.reading for log in logs], _modified(batch), history)


def together(
    batch: FileBatch,
    of_disks: Observations,
    logs: Sequence[Log],
    configurations: Configurations,
    outputs: Outputs,
    *,
    history: Observations,
) -> Observations:
    """All observations but records and events, with their times where these can be known.

    `history`: changes of leaders in logs, and records of the groups that outputs show.
    """
    of_logs = (log.reading.observations for log in logs)
    everything = Observations().add(of_disks, *of_logs, configurations.settings)
    add_outputs(everything, outputs.dated, [log.reading for log in logs], _modified(batch), history)
    return everything.add(*map(_dump, [*batch.of(Kind.ZOOKEEPER), *batch.of(Kind.MAPPINGS)]))


def _dump(item: Item) -> Observations:
    file = item.file
    try:
        if Kind.MAPPINGS in item.kinds:
            mappings = read_mappings(read_lines(file.path, item.encoding), file.name)
            return settle_mappings([(mappings, file.modified)])
        return observe(read_dump(file.path), file.name, file.modified)
    except NoDump as error:
        reason = str(error)
    except OSError as error:
        reason = unreadable(error)
    return Observations(unasked=[Unasked("file", file.name, reason, source=file.name)])


def rows(
    seen: Observations, topic_ids: Mapping[bytes, str], *, cluster: str, snapshot: str
) -> list[dict[str, object]]:
    """Rows of cluster_snapshot."""
    rows_made: list[dict[str, object]] = []
    constants = {"cluster": cluster, "snapshot": snapshot}
    for kind, row in rows_of(seen):
        rows_made.append(
            {
                **constants,
                "kind": kind,
                "at": moment(getattr(row, "at", None)),
                "node": _node(row),
                "group": _group(row),
                "topic": getattr(row, "topic", None),
                "partition": getattr(row, "partition", None),
                "body": "{}" if kind == KNOWN else dumps(row),
                "source": row.source,
            }
        )
    for topic_id, topic in topic_ids.items():
        body = base64.b64encode(topic_id).decode()
        rows_made.append({**constants, "kind": TOPIC_ID, "topic": topic, "body": body, "source": ""})
    return [{**row, "ordinal": ordinal} for ordinal, row in enumerate(rows_made)]


def observed(rows: Iterable[Mapping[str, Any]]) -> Observations:
    """The observations of rows of cluster_snapshot, which are in order."""
    seen = Observations()
    for row in rows:
        kind = row["kind"].removeprefix(EARLIER).removeprefix(FAILED)
        if kind == KNOWN:
            seen.known_groups.setdefault(row["group"], row["source"])
        elif row["kind"].startswith(EARLIER):
            for earlier in earlier_rows(kind, loads(kind, row["body"])):
                add(seen, *earlier)
        elif row["kind"].startswith(FAILED):
            add(seen, kind, failed_row(loads(kind, row["body"])))
        elif kind not in (TOPIC_ID, SURVEY):
            add(seen, kind, loads(kind, row["body"]))
    return seen


def topic_ids(rows: Iterable[Mapping[str, Any]]) -> dict[bytes, str]:
    return {base64.b64decode(row["body"]): row["topic"] for row in rows if row["kind"] == TOPIC_ID}


def _modified(batch: FileBatch) -> dict[str, int | None]:
    return {item.file.name: item.file.modified for item in batch.items}


def _group(row: object) -> str | None:
    if isinstance(row, Unasked) and row.kind == "group":
        return row.name
    if isinstance(row, MappingNode):
        return None  # The mapping tree is the cluster's, as a whole.
    return getattr(row, "group", None)


def _node(row: object) -> int | None:
    nodes = (getattr(row, name, None) for name in ("node_id", "told_by"))
    return next((node for node in nodes if isinstance(node, int)), None)


def _light(segment: Segment) -> Segment:
    """Without the first bytes of the file: the task reads the file itself."""
    return replace(segment, file=replace(segment.file, head=b""))
