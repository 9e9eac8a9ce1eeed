"""What a task does with records of the offsets topic: decode, write Parquet files, tell the driver which.

This runs in the workers, and only there, as `segments.task` does.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kelpie.pipeline.decoding.pairs import numbers_of, read_pairs
from kelpie.pipeline.decoding.segment import QUOTED_BYTES, Unread
from kelpie.pipeline.sources.segments.files import FILLED, QUARANTINE
from kelpie.pipeline.sources.segments.task import quarantine, tables_of
from kelpie.pipeline.sources.topic.ends import Epochs
from kelpie.pipeline.sources.topic.rows import RAW, ROWS_A_BATCH, runs
from kelpie.pipeline.storage.parquet import Writer
from kelpie.pipeline.tables.types import INT

FILES = pa.schema({"table": pa.string(), "file": pa.string()})
"""One row per file: of which table, and all that is to be known of it, as JSON."""


def write(
    batches: Iterable[pa.RecordBatch], folders: Mapping[str, str], cluster: str, epochs: Epochs
) -> Iterator[pa.RecordBatch]:
    """Files by table, for all these rows together. `epochs`: for rows that do not tell their own."""
    writers = {table.name: Writer(table, Path(folders[table.name]), cluster) for table in FILLED}
    for rows in _collected(batches):
        for begin, end in runs(numbers_of(rows["offsets_partition"])):
            own = rows.slice(begin, end - begin)
            for table, found, constants in _tables(_dated(own, epochs)):
                writers[table].write(found, constants)
    files = [(name, json.dumps(asdict(file))) for name, writer in writers.items() for file in writer.close()]
    yield pa.RecordBatch.from_pylist([{"table": name, "file": file} for name, file in files], FILES)


def _collected(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Larger ones: each costs a dictionary of its own."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(it.num_rows for it in waiting) >= ROWS_A_BATCH:
            yield _joined(waiting)
            waiting = []
    if waiting:
        yield _joined(waiting)


def _joined(batches: list[pa.RecordBatch]) -> pa.Table:
    table = pa.Table.from_batches(batches)
    return table.select(RAW.names).cast(RAW).combine_chunks()


def _dated(rows: pa.Table, epochs: Epochs) -> pa.Table:
    """With the epochs of their leaders, as far as they are known."""
    known = epochs.get(rows["offsets_partition"][0].as_py())
    column = rows["log_epoch"]
    if not known or column.null_count < len(column):
        return rows
    begins, numbers = np.array(known, np.int64).T
    places = np.searchsorted(begins, numbers_of(rows["log_offset"]), "right") - 1
    # What is older than the oldest epoch that is known is taken for its own: the log begins there.
    told = pa.py_buffer(numbers[np.maximum(places, 0)].astype(np.int32))
    return rows.set_column(
        rows.column_names.index("log_epoch"), "log_epoch", pa.Array.from_buffers(INT, len(rows), [None, told])
    )


def _tables(rows: pa.Table) -> Iterator[tuple[str, pa.Table, Mapping[str, object]]]:
    """Rows of one partition, by table."""
    constants = {
        "source": rows["source"][0].as_py(),
        "replica": None,
        "offsets_partition": rows["offsets_partition"][0].as_py(),
    }
    told = pc.is_valid(rows["reason"])
    if pc.any(told).as_py():
        unread = [
            Unread(
                it["log_offset"], len(it["value"] or b""), it["reason"], (it["value"] or b"")[:QUOTED_BYTES]
            )
            for it in rows.filter(told).to_pylist()
        ]
        yield QUARANTINE.name, quarantine(unread), constants
        rows = rows.filter(pc.invert(told))
    for read in read_pairs(rows):
        for name, found in tables_of(read):
            yield name, found, constants
