"""Events of logs as rows, and rows as Arrow batches, column by column."""

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import pyarrow as pa

from kelpie.evidence.logs.pauses import BACK, with_pauses
from kelpie.evidence.logs.times import Float, Stamp
from kelpie.observations import Event, EventKind
from kelpie.pipeline.sources.log_parts import Merged, client_of, is_ungrouped
from kelpie.pipeline.sources.log_ranges import RangeReader, Row
from kelpie.pipeline.sources.staging import ROWS_A_BATCH
from kelpie.pipeline.tables import TABLES

EVENTS = TABLES["log_event"]
SUMMARY, PIECE = "summary", "piece"
STAGED = pa.schema(
    [
        *EVENTS.schema,
        pa.field(SUMMARY, pa.string()),
        pa.field(PIECE, pa.int32()),
        pa.field("zoned", pa.bool_()),
        pa.field("once", pa.int32()),
    ]
)
COLUMNS = (
    "at",
    "line",
    "kind",
    "group",
    "member",
    "instance_id",
    "client_id",
    "node",
    "topic",
    "partition",
    "offset",
    "generation",
    "error",
    "reason",
    "details",
    "text",
    "part",
    "zoned",
    "once",
)
"""Of a row, in this order; `at` in milliseconds, `details` as a dict."""


def row_of(row: Row) -> list[Any]:
    """As it was read; its group, its line and the zone of its time may be set right later."""
    get = row.fields.get
    stamp = row.stamp
    return [
        None if stamp is None else stamp.at,
        row.line,
        row.kind.value,
        get("group"),
        get("member"),
        get("instance_id"),
        get("client_id"),
        get("node"),
        get("topic"),
        get("partition"),
        get("offset"),
        get("generation"),
        get("error"),
        get("reason", ""),
        row.details,
        row.text,
        row.part,
        stamp is not None and stamp.float is Float.ZONE,
        row.once,
    ]


def finished(reader: RangeReader, joined: Merged) -> list[list[Any]]:
    """Rows of a file that was read in one piece: nothing is left open."""
    groups, clock = joined.reader.groups, joined.reader.clock
    only = groups.only()
    for row in reader.rows:
        if is_ungrouped(row):
            found = groups.of(client_of(row), only)
            if found is not None:
                row.fields = {**row.fields, "group": found[0]}
                row.details = {**row.details, "group_from": found[1]}
        if row.stamp is not None and clock.offset:
            row.stamp = Stamp(row.stamp.at + clock.offset.get(row.stamp.float, 0), row.stamp.float)
    if joined.has_pauses:
        _tell_pauses(reader, joined)
    return [row_of(row) for row in reader.rows]


def _tell_pauses(reader: RangeReader, joined: Merged) -> None:
    mine = [row for row in reader.rows if row.kind in (*BACK, EventKind.POLL_INTERVAL_EXCEEDED)]
    told = [
        Event(
            row.kind,
            None if row.stamp is None else row.stamp.at,
            "",
            "",
            group=row.fields.get("group"),  # type: ignore[arg-type]
            client_id=row.fields.get("client_id"),  # type: ignore[arg-type]
            details=row.details,
        )
        for row in mine
    ]
    for row, event in zip(mine, with_pauses(told, joined.reader.settings), strict=True):
        row.details = dict(event.details)


def batches(
    rows: Iterable[list[Any]], cluster: str, source: str, piece: int | None
) -> Iterator[pa.RecordBatch]:
    waiting = iter(rows)
    while some := list(islice(waiting, ROWS_A_BATCH)):
        columns = dict(zip(COLUMNS, zip(*some, strict=True), strict=True))
        columns["at"] = tuple(None if at is None else at * 1000 for at in columns["at"])
        columns["details"] = tuple(tuple(it.items()) for it in columns["details"])
        count = len(some)
        constant = {"cluster": cluster, "source": source, PIECE: piece}
        arrays = []
        for field in STAGED:
            if field.name in constant:
                arrays.append(pa.repeat(pa.scalar(constant[field.name], field.type), count))
            elif field.name in columns:
                arrays.append(_array(columns[field.name], field.type))
            else:
                arrays.append(pa.nulls(count, field.type))
        yield pa.RecordBatch.from_arrays(arrays, schema=STAGED)


def _array(values: tuple[Any, ...], type_: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(type_):
        return pa.array(values, pa.int64()).cast(type_)
    return pa.array(values, type_)


def summary_batch(cluster: str, source: str, data: dict[str, Any]) -> pa.RecordBatch:
    row = {"cluster": cluster, "source": source, "line": 0, "kind": "", "text": "", SUMMARY: json.dumps(data)}
    return pa.RecordBatch.from_pylist([row], STAGED)
