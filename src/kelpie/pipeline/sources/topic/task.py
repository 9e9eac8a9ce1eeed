"""What a task does with records of the offsets topic: decode them, write Parquet files, return their names.

This runs in the workers, and only there, as `segments.task` does.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kelpie.pipeline.decoding.pairs import numbers_of, read_pairs
from kelpie.pipeline.decoding.segment import QUOTED_BYTES, Unread
from kelpie.pipeline.sources.segments.files import FILLED, QUARANTINE
from kelpie.pipeline.sources.segments.task import quarantine, tables_of
from kelpie.pipeline.sources.topic.ends import Epochs
from kelpie.pipeline.sources.topic.rows import RAW, ROWS_A_BATCH, runs
from kelpie.pipeline.spark.workers import spare_modules
from kelpie.pipeline.storage.parquet import Writer
from kelpie.pipeline.tables.types import INT
from kelpie.places import place_of

FILES = pa.schema({"table": pa.string(), "file": pa.string()})
"""One row per file: its table, and its `NewFile` as JSON."""


def write(
    batches: Iterable[pa.RecordBatch], folders: Mapping[str, str], cluster: str, epochs: Epochs
) -> Iterator[pa.RecordBatch]:
    """Writes one file per table for all these rows. `epochs`: for rows without a leader epoch."""
    spare_modules()
    writers = {table.name: Writer(table, place_of(folders[table.name]), cluster) for table in FILLED}
    for rows in _collected(batches):
        for begin, end in runs(numbers_of(rows["offsets_partition"])):
            of_partition = rows.slice(begin, end - begin)
            for table, decoded, constants in _tables(_with_epochs(of_partition, epochs)):
                writers[table].write(decoded, constants)
    files = [(name, json.dumps(asdict(file))) for name, writer in writers.items() for file in writer.close()]
    yield pa.RecordBatch.from_pylist([{"table": name, "file": file} for name, file in files], FILES)


def _collected(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Larger tables: each has a dictionary of its own, which costs."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(batch.num_rows for batch in waiting) >= ROWS_A_BATCH:
            yield _joined(waiting)
            waiting = []
    if waiting:
        yield _joined(waiting)


def _joined(batches: list[pa.RecordBatch]) -> pa.Table:
    table = pa.Table.from_batches(batches)
    return table.select(RAW.names).cast(RAW).combine_chunks()


def _with_epochs(rows: pa.Table, epochs: Epochs) -> pa.Table:
    """Adds leader epochs, where they are known."""
    known = epochs.get(rows["offsets_partition"][0].as_py())
    column = rows["log_epoch"]
    if not known or column.null_count < len(column):
        return rows
    begins, numbers = np.array(known, np.int64).T
    places = np.searchsorted(begins, numbers_of(rows["log_offset"]), "right") - 1
    # Records before the oldest known epoch get that epoch: the log begins there.
    epoch_numbers = pa.py_buffer(numbers[np.maximum(places, 0)].astype(np.int32))
    return rows.set_column(
        rows.column_names.index("log_epoch"),
        "log_epoch",
        pa.Array.from_buffers(INT, len(rows), [None, epoch_numbers]),
    )


def _tables(rows: pa.Table) -> Iterator[tuple[str, pa.Table, Mapping[str, object]]]:
    """Rows of one partition, by table."""
    constants = {
        "source": rows["source"][0].as_py(),
        "replica": None,
        "offsets_partition": rows["offsets_partition"][0].as_py(),
    }
    has_reason = pc.is_valid(rows["reason"])
    if pc.any(has_reason).as_py():
        unread = [
            Unread(
                row["log_offset"],
                len(row["value"] or b""),
                row["reason"],
                (row["value"] or b"")[:QUOTED_BYTES],
            )
            for row in rows.filter(has_reason).to_pylist()
        ]
        yield QUARANTINE.name, quarantine(unread), constants
        rows = rows.filter(pc.invert(has_reason))
    for read in read_pairs(rows):
        for name, decoded in tables_of(read):
            yield name, decoded, constants
