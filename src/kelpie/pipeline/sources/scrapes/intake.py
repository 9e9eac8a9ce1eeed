"""Scrapes of metrics: every sample into `metric_sample`; of brokers with KoP also traffic by group, a row for
each topic, partition and group, into `traffic_sample`. Lines in another format go into `quarantine`, and
those that are series of KoP's all the same into `cluster_snapshot`, for the doctor.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everyone who knows Spark knows F.
from pyspark.sql.pandas.types import from_arrow_schema

from kelpie.evidence.kop_scrapes import KopReading, folder_of
from kelpie.evidence.logs.lines import read_lines
from kelpie.evidence.scrapes import MalformedLine, read_scrape
from kelpie.evidence.unreadable import unreadable
from kelpie.model.time import Instant
from kelpie.observations import Observations
from kelpie.observations.encoding import dumps, kind_of
from kelpie.observations.traffic import BYTES, ENTRIES, MESSAGES
from kelpie.pipeline.sources.inventory import Item
from kelpie.pipeline.storage.frames import ROWS_A_BATCH
from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.tables.moments import moment
from kelpie.pipeline.tables.table import DAY
from kelpie.places import place_of

SAMPLE, DAMAGE, TRAFFIC, MALFORMED = "sample", "damage", "traffic", "malformed"
_FILLED = {
    SAMPLE: "metric_sample",
    DAMAGE: "quarantine",
    TRAFFIC: "traffic_sample",
    MALFORMED: "cluster_snapshot",
}
_STAGED = pa.schema({part: pa.struct(list(TABLES[table].schema)) for part, table in _FILLED.items()})
"""A row has one of these."""
_FILES = "name string, path string, encoding string, modified bigint"
_ORDER = (DAY, "at", "source")
_REASON = "It is no line of the text format of Prometheus"
_COUNTERS = {MESSAGES: "messages", BYTES: "bytes", ENTRIES: "entries"}
Row = dict[str, Any]


def read_here(items: Sequence[Item], *, cluster: str) -> pa.Table:
    """Rows of all tables, of few scrapes; the driver reads them."""
    batches = [batch for file in _files(items) for batch in _batches(_read(*file), cluster)]
    return pa.Table.from_batches(batches, _STAGED)


def read_scrapes(spark: SparkSession, items: Sequence[Item], *, cluster: str) -> DataFrame:
    """Rows of all tables; `rows_for` tells them apart."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                yield from _batches(_read(**row), cluster)

    files = _files(items)
    tasks = max(1, min(len(files), spark.sparkContext.defaultParallelism * 4))
    # By time, so that a task has scrapes of few days.
    frame = spark.createDataFrame(files, _FILES).repartitionByRange(tasks, "modified", "name")
    return frame.mapInArrow(task, from_arrow_schema(_STAGED, prefer_timestamp_ntz=False))


def _files(items: Sequence[Item]) -> list[tuple[str, str, str, Instant | None]]:
    files = [(item.file.name, str(item.file.path), item.encoding, item.file.modified) for item in items]
    return sorted(files, key=lambda file: (file[3] or 0, file[0]))


def rows_for(part: str, staged: DataFrame | pa.Table) -> DataFrame | pa.Table:
    """Rows of one table: SAMPLE of metric_sample, DAMAGE of quarantine, TRAFFIC of traffic_sample."""
    if isinstance(staged, pa.Table):
        rows = pa.Table.from_struct_array(staged[part].drop_null())
        return rows.sort_by([(name, "ascending") for name in _ORDER]) if part == TRAFFIC else rows
    mine = staged.where(F.col(part).isNotNull()).select(f"{part}.*")
    return mine.sortWithinPartitions(*_ORDER) if part == TRAFFIC else mine


def snapshot_rows(staged: DataFrame | pa.Table, snapshot: str) -> list[Row]:
    """Rows of cluster_snapshot, without their places: malformed series. There are few."""
    ordered = sorted(_collected(rows_for(MALFORMED, staged)), key=lambda row: (row["source"], row["body"]))
    return [{**row, "snapshot": snapshot, "ordinal": ordinal} for ordinal, row in enumerate(ordered)]


def groups_in(staged: DataFrame | pa.Table) -> dict[str, str]:
    """Groups that labels name, each with a scrape that has it."""
    rows = rows_for(TRAFFIC, staged)
    if isinstance(rows, DataFrame):
        rows = rows.where(F.col("group") != "").groupBy("group").agg(F.min("source").alias("source"))
    named: dict[str, str] = {}
    for row in _collected(rows):
        if row["group"]:
            named[row["group"]] = min(row["source"], named.get(row["group"], row["source"]))
    return {group: f"labels in {source}" for group, source in sorted(named.items())}


def _collected(rows: DataFrame | pa.Table) -> list[Row]:
    if isinstance(rows, DataFrame):
        return [row.asDict() for row in rows.collect()]
    collected: list[Row] = rows.to_pylist()
    return collected


def _batches(rows: Iterator[tuple[str, Row]], cluster: str) -> Iterator[pa.RecordBatch]:
    waiting: dict[str, list[Row]] = {part: [] for part in _FILLED}
    for part, row in rows:
        waiting[part].append({"cluster": cluster, **row})
        if len(waiting[part]) >= ROWS_A_BATCH:
            yield _batch(part, waiting[part])
            waiting[part] = []
    yield from (_batch(part, left) for part, left in waiting.items() if left)


def _batch(part: str, rows: list[Row]) -> pa.RecordBatch:
    """Rows of one table: whole columns are made ten times as fast as nested rows."""
    made = pa.RecordBatch.from_pylist(rows, TABLES[_FILLED[part]].schema).to_struct_array()
    columns = [made if field.name == part else pa.nulls(len(rows), field.type) for field in _STAGED]
    return pa.RecordBatch.from_arrays(columns, schema=_STAGED)


def _read(name: str, path: str, encoding: str, modified: Instant | None) -> Iterator[tuple[str, Row]]:
    reading = KopReading(name)
    try:
        for line in read_scrape(read_lines(place_of(path), encoding)):
            reading.line(line)
            if isinstance(line, MalformedLine):
                text = line.text.encode("utf-8", "replace")
                complaint = {"reason": f"{_REASON}: line {line.line}.", "bytes": text, "size": len(text)}
                yield DAMAGE, {"source": name, "position": line.position, **complaint}
            else:
                sample = {"name": line.name, "labels": list(line.labels.items()), "value": line.value}
                at = moment(line.at if line.at is not None else modified)
                place = {"source": name, "line": line.line, "type": line.type, "at": at}
                yield SAMPLE, {**place, **sample}
    except OSError as error:
        yield DAMAGE, {"source": name, "reason": unreadable(error), "position": 0, "size": 0}
        return
    of_kop = reading.end()
    if of_kop is not None:
        yield from _traffic(of_kop, name, modified or 0)


def _traffic(seen: Observations, name: str, modified: Instant) -> Iterator[tuple[str, Row]]:
    """Rows of traffic_sample, and malformed series. A scrape without traffic is a row, too."""
    times = {scrape.broker: scrape.at for scrape in seen.scrapes}
    series: dict[tuple[str, str, int, str | None], Row] = {}
    for each in seen.traffic:
        amounts = series.setdefault((each.broker, each.topic, each.partition, each.group), {})
        amounts[_COUNTERS[each.counter]] = each.value
        if each.counter == MESSAGES or "line" not in amounts:
            amounts["line"] = int(each.source.rpartition(":")[2])
    silent = times.keys() - {broker for broker, *_ in series}
    rows: list[tuple[str, Row]] = [(broker, {}) for broker in sorted(silent)]
    for (broker, topic, partition, group), amounts in series.items():
        place = {"topic": topic, "partition": partition, "group": group}
        rows.append((broker, {**dict.fromkeys(_COUNTERS.values(), 0), **amounts, **place}))
    for broker, row in rows:
        own = times.get(broker)
        at = moment(own if own is not None else modified)
        assert at is not None
        known = {"broker": broker or folder_of(name), "at": at, DAY: at.date()}
        yield TRAFFIC, {"source": name, "is_stamped": own is not None, **known, **row}
    for malformed in seen.malformed:
        body = {"kind": kind_of(malformed), "body": dumps(malformed)}
        yield MALFORMED, {"source": malformed.source, "at": moment(malformed.at), **body}
