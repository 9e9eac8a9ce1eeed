"""Logs of brokers and clients into `log_event`: a range of a file is a task.

Lines tell whose they are by what came before, some logs tell no more than the time of day, and a big log is
read in ranges at once. What only a whole file tells (`log_parts`), or only all files together (the date of a
log without one, a group that nothing but the name of the file gives away), is set right afterwards, before
the rows reach the table. A log that cannot be read in ranges is read by the evidence's own reader, in one
task.
"""

import base64
import json
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everyone who knows Spark knows F.
from pyspark.sql.pandas.types import from_arrow_schema

from kelpie.evidence.folder import NOTHING_KNOWN
from kelpie.evidence.logs import Float, Reading, read_log
from kelpie.evidence.logs.attribution import group_in_name, is_of_server
from kelpie.evidence.logs.lines import read_lines
from kelpie.model.time import Instant
from kelpie.observations import Event
from kelpie.observations.encoding import add, decode, encode, rows_of
from kelpie.pipeline.sources.inventory import Item, instant
from kelpie.pipeline.sources.log_parts import Merged, Unjoinable, merged, part_of
from kelpie.pipeline.sources.log_ranges import (
    RANGE_BYTES,
    Whole,
    can_be_split,
    read_range,
    without_collector,
)
from kelpie.pipeline.sources.log_rows import PIECE, STAGED, SUMMARY, batches, finished, row_of, summary_batch
from kelpie.pipeline.sources.log_settling import settled

_WHOLE = -1
_TASKS = "name string, path string, encoding string, piece int, pieces int, begins bigint, ends bigint"


class _Task(NamedTuple):
    """A range of a file, or all of it."""

    name: str
    path: str
    encoding: str
    piece: int = _WHOLE
    pieces: int = 1
    begins: int = 0
    ends: int = 0


@dataclass(slots=True)
class Log:
    """What tasks say of a log, beside its events."""

    reading: Reading
    """Without its events; lines that mean nothing may be missing in its `heads` and `unknown`."""
    reason: str = ""
    """Why it is of no use."""
    ungrouped: bool = False
    """Whether there are events of clients that nothing in the file gives a group."""
    began: Instant | None = None
    """Its first time, before its date was settled."""
    merged: Merged | None = None
    """Of a log that was read in ranges: what its rows still lack."""
    again: Mapping[str, Any] | None = None
    """Of a log that had to be read anew, as a whole: how."""


def read_logs(
    spark: SparkSession,
    items: Sequence[Item],
    *,
    cluster: str,
    zone: tzinfo | None = None,
    range_bytes: int = RANGE_BYTES,
) -> DataFrame:
    """Rows of log_event, and a row for each range with a `summary`; see `summaries`."""
    tasks = [task for item in items for task in _tasks(item, range_bytes)]
    return _read_tasks(spark, tasks, cluster, zone)


def _tasks(item: Item, range_bytes: int) -> list[_Task]:
    name, path, encoding = item.file.name, str(item.file.path), item.encoding
    size = item.file.size
    if size <= range_bytes:
        return [_Task(name, path, encoding, 0, 1, 0, size)]
    try:
        splits = can_be_split(item.file.path, encoding)
    except OSError:
        splits = False  # The task will say why.
    if not splits:
        return [_Task(name, path, encoding)]
    bounds = [*range(0, size, range_bytes), size]
    return [
        _Task(name, path, encoding, number, len(bounds) - 1, begins, ends)
        for number, (begins, ends) in enumerate(pairwise(bounds))
    ]


def _read_tasks(spark: SparkSession, tasks: Sequence[_Task], cluster: str, zone: tzinfo | None) -> DataFrame:
    def task(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with without_collector():
            for batch in rows:
                for row in batch.to_pylist():
                    yield from _read(_Task(**row), cluster, zone)

    slices = max(1, min(len(tasks), spark.sparkContext.defaultParallelism * 8))
    frame = spark.createDataFrame(list(tasks), _TASKS).repartition(slices)
    return frame.mapInArrow(task, from_arrow_schema(STAGED, prefer_timestamp_ntz=False))


def summaries(staged: DataFrame) -> list[Log]:
    """By name, as files are gone through."""
    found = _collected(staged)
    redone = {name for name, log in found.items() if log.again is not None}
    for name in redone:
        again = found[name].again
        assert again is not None
        found[name] = _collected(_again(staged.sparkSession, again))[name]
        found[name].again = again
    return sorted(found.values(), key=lambda it: it.reading.name.split("/"))


def _collected(staged: DataFrame) -> dict[str, Log]:
    by_name: dict[str, list[dict[str, Any]]] = {}
    for row in staged.where(f"{SUMMARY} is not null").select(SUMMARY).collect():
        data = json.loads(row[0])
        by_name.setdefault(data["name"], []).append(data)
    return {name: _log(sorted(parts, key=lambda it: int(it["piece"]))) for name, parts in by_name.items()}


def _log(parts: Sequence[dict[str, Any]]) -> Log:
    name = parts[0]["name"]
    if "found" in parts[0]:
        return _unpacked(parts[0])
    again = next((part["again"] for part in parts if part["again"]), None)
    if again is None:
        broken = next((part["reason"] for part in parts if part["reason"]), "")
        if broken:
            return Log(Reading(name), broken)
        try:
            joined = merged([part["part"] for part in parts])
        except Unjoinable:
            again = parts[0]["whole"]
        else:
            reading = joined.reader.reading
            return Log(reading, "", joined.ungrouped, reading.first, joined)
    return Log(Reading(name), again=again)


def _again(spark: SparkSession, how: Mapping[str, Any]) -> DataFrame:
    zone = pickle.loads(base64.b64decode(how["zone"]))
    return _read_tasks(spark, [_Task(how["name"], how["path"], how["encoding"])], how["cluster"], zone)


def events(staged: DataFrame, logs: Sequence[Log], known: Mapping[str, str]) -> DataFrame:
    """The rows of log_event, with all that only whole files, and all files together, tell.

    `known`: groups that somebody knows of; what is learned from names of files is noted with each log.
    """
    rows = staged.where(f"{SUMMARY} is null")
    redone = [log for log in logs if log.again is not None]
    if redone:
        rows = rows.where(~F.col("source").isin([log.reading.name for log in redone]))
    in_ranges = {log.reading.name: log.merged for log in logs if log.merged is not None}
    if in_ranges:
        rows = settled(rows, in_ranges)
    for log in redone:
        assert log.again is not None
        rows = rows.unionByName(_again(staged.sparkSession, log.again).where(f"{SUMMARY} is null"))
    return _corrected(rows.drop(SUMMARY, PIECE, "zoned", "once"), logs, known)


def _corrected(rows: DataFrame, logs: Sequence[Log], known: Mapping[str, str]) -> DataFrame:
    corrections = [it for it in (_correction(log, known) for log in logs) if it[1:] != (0, False, None)]
    if not corrections:
        return rows
    table = rows.sparkSession.createDataFrame(
        corrections, "source string, shift_ms bigint, dateless boolean, named string"
    )
    of_server = F.col("kind").rlike("^(broker|controller): ")
    named = F.when(F.col("group").isNull() & ~of_server, F.col("named"))
    told = F.map_from_arrays(
        F.array(F.lit("group_from")), F.array(F.concat(F.lit("the name of "), F.col("source")))
    )
    shifted = F.timestamp_millis(F.unix_millis("at") + F.col("shift_ms"))
    return (
        rows.join(F.broadcast(table), "source", "left")
        .withColumn(
            "at",
            F.when(F.coalesce("dateless", F.lit(False)), F.lit(None))
            .when(F.coalesce("shift_ms", F.lit(0)) != 0, shifted)
            .otherwise(F.col("at")),
        )
        .withColumn(
            "details", F.when(named.isNotNull(), F.map_concat("details", told)).otherwise(F.col("details"))
        )
        .withColumn("group", F.coalesce("group", named))
    )


def _correction(log: Log, known: Mapping[str, str]) -> tuple[str, int, bool, str | None]:
    reading = log.reading
    shift = 0
    if log.began is not None and reading.first is not None:
        shift = reading.first - log.began
    dateless = log.began is not None and reading.first is None
    group = group_in_name(reading.name, known) if log.ungrouped and not reading.found.known_groups else None
    if group is not None:
        reading.found.known_groups[group] = f"the name of {reading.name}"
    return reading.name, shift, dateless, group


def _read(task: _Task, cluster: str, zone: tzinfo | None) -> Iterator[pa.RecordBatch]:
    how = {
        "name": task.name,
        "path": task.path,
        "encoding": task.encoding,
        "cluster": cluster,
        "zone": base64.b64encode(pickle.dumps(zone)).decode(),
    }
    head = {"name": task.name, "piece": task.piece}
    try:
        if task.piece == _WHOLE:
            yield from _read_whole(task, cluster, zone)
            return
        try:
            reader = read_range(
                Path(task.path), task.name, zone, task.begins, task.ends, encoding=task.encoding
            )
        except Whole:
            if task.pieces == 1:
                yield from _read_whole(task, cluster, zone)
            else:
                yield summary_batch(cluster, task.name, {**head, "again": how, "reason": ""})
            return
        part = part_of(reader)
        if task.pieces > 1:
            yield from batches((row_of(it) for it in reader.rows), cluster, task.name, task.piece)
            data = {**head, "again": None, "reason": "", "part": part, "whole": how}
            yield summary_batch(cluster, task.name, data)
            return
        joined = merged([part])
        rows = finished(reader, joined)
        yield from batches(rows, cluster, task.name, None)
        reading = joined.reader.reading
        reason = "" if reading.heads or rows else NOTHING_KNOWN
        yield summary_batch(
            cluster, task.name, {**head, **_packed(reading, reason, ungrouped=joined.ungrouped)}
        )
    except OSError as error:
        reason = f"It cannot be read: {error.strerror or error}."
        yield summary_batch(
            cluster, task.name, {**head, **_packed(Reading(task.name), reason), "again": None}
        )
    except Exception as error:  # One file of many, from anywhere: the others must not pay for it.
        reason = f"It made Kelpie stumble ({type(error).__name__}: {error})."
        yield summary_batch(
            cluster, task.name, {**head, **_packed(Reading(task.name), reason), "again": None}
        )


def _read_whole(task: _Task, cluster: str, zone: tzinfo | None) -> Iterator[pa.RecordBatch]:
    """By the evidence's own reader, line by line."""
    reading = read_log(read_lines(Path(task.path), task.encoding), task.name, zone)
    reason = "" if reading.heads or reading.found.events else NOTHING_KNOWN
    rows = reading.found.events
    ungrouped = any(it.group is None and not is_of_server(it) for it in rows)
    reading.found.events = []
    yield from batches(_rows_of(rows), cluster, task.name, None)
    data = {"name": task.name, "piece": task.piece, **_packed(reading, reason, ungrouped=ungrouped)}
    yield summary_batch(cluster, task.name, data)


def _rows_of(found: Sequence[Event]) -> Iterator[list[Any]]:
    place, part = -1, 0
    for event in found:
        line = int(event.source.rpartition(":")[2])
        part = part + 1 if line == place else 0
        place = line
        yield [
            event.at,
            line,
            event.kind.value,
            event.group,
            event.member,
            event.instance_id,
            event.client_id,
            event.node,
            event.topic,
            event.partition,
            event.offset,
            event.generation,
            event.error,
            event.reason,
            event.details,
            event.text,
            part,
            None,
            None,
        ]


def event_of(row: Mapping[str, Any]) -> Event:
    """The reverse of what a task writes."""
    event: Event = decode(
        "event",
        {
            "kind": row["kind"],
            "at": instant(row["at"]),
            "source": f"{row['source']}:{row['line']}",
            "text": row["text"],
            "group": row["group"],
            "member": row["member"],
            "instance_id": row["instance_id"],
            "client_id": row["client_id"],
            "node": row["node"],
            "topic": row["topic"],
            "partition": row["partition"],
            "offset": row["offset"],
            "generation": row["generation"],
            "error": row["error"],
            "reason": row["reason"] or "",
            "details": dict(row["details"] or ()),
        },
    )
    return event


def _packed(reading: Reading, reason: str, *, ungrouped: bool = False) -> dict[str, Any]:
    return {
        "found": [(kind, encode(row)) for kind, row in rows_of(reading.found)],
        "lines": reading.lines,
        "heads": reading.heads,
        "unknown": reading.unknown,
        "first": reading.first,
        "last": reading.last,
        "missing": reading.missing.value,
        "known": reading.found.known_groups,
        "reason": reason,
        "ungrouped": ungrouped,
    }


def _unpacked(data: Mapping[str, Any]) -> Log:
    reading = Reading(
        data["name"],
        lines=data["lines"],
        heads=data["heads"],
        unknown=data["unknown"],
        first=data["first"],
        last=data["last"],
        missing=Float(data["missing"]),
    )
    for kind, row in data["found"]:
        add(reading.found, kind, decode(kind, row))
    reading.found.known_groups = dict(data["known"])
    return Log(reading, data["reason"], data["ungrouped"], data["first"])
