"""What tasks do for one day of derived traffic: read samples of offsets, compute with columns, write files.

A day may be larger than memory, so it is cut by partitions: a task reads the files of the day once for each
slice, row group by row group, and holds the rows of one slice only.
"""

import zlib
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kelpie.pipeline.storage.parquet import Writer, readable
from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.tables.table import DAY, HOW
from kelpie.pipeline.traffic.day import Day, Written
from kelpie.pipeline.traffic.derivation import COLUMNS, NAMES, derived, last_of_each
from kelpie.pipeline.traffic.derived_days import DERIVED
from kelpie.pipeline.traffic.growth import TOLD, codes
from kelpie.places import place_of

ROWS_AT_ONCE = 1_000_000
_ATTRIBUTED, _CLOSING = TABLES["attributed_traffic"], TABLES["offset_closing"]
_SAMPLES = pa.schema([TABLES["offset_sample"].schema.field(name) for name in COLUMNS])


def close_offsets(day: Day) -> Written:
    """Writes the last sample of each log, and of each group in it, on a day."""
    writer = Writer(_CLOSING, place_of(day.folders[_CLOSING.name]), day.cluster, {DAY: day.day})
    for samples in _slices(day.files):
        writer.write(last_of_each(samples), {})
    return {_CLOSING.name: writer.close()}


def derive(day: Day) -> Written:
    """Writes what groups read, from survey to survey."""
    within = {DAY: day.day, HOW: DERIVED}
    writer = Writer(_ATTRIBUTED, place_of(day.folders[_ATTRIBUTED.name]), day.cluster, within)
    before = [file for files in day.before for file in files]
    count = _count(day.files)
    for number in range(count):
        parts = [
            rows.append_column(TOLD, pa.array(np.full(rows.num_rows, told)))
            for files, told in ((before, True), (day.files, False))
            for rows in [_slice(files, number, count)]
        ]
        writer.write(derived(pa.concat_tables(parts).unify_dictionaries()), {})
    return {_ATTRIBUTED.name: writer.close()}


def _slices(files: Sequence[str]) -> Iterator[pa.Table]:
    count = _count(files)
    return (_slice(files, number, count) for number in range(count))


def _count(files: Iterable[str]) -> int:
    rows = sum(pq.read_metadata(readable(file)).num_rows for file in files)
    return -(-rows // ROWS_AT_ONCE) or 1


def _slice(files: Iterable[str], number: int, count: int) -> pa.Table:
    """The rows of every partition that belongs to this slice."""
    coded = pa.dictionary(pa.int32(), pa.string())
    schema = pa.schema([field.with_type(coded) if field.name in NAMES else field for field in _SAMPLES])
    parts = [schema.empty_table()]
    for name in files:
        with pq.ParquetFile(readable(name), read_dictionary=list(NAMES)) as file:
            for group in range(file.num_row_groups):
                rows = file.read_row_group(group, columns=list(COLUMNS), use_threads=False).cast(schema)
                topic, topics = codes(rows["topic"])
                hashes = np.array([zlib.crc32(each.encode()) for each in topics], np.int64)
                mine = (hashes[topic] + rows["partition"].to_numpy()) % count == number
                parts.append(rows if mine.all() else rows.filter(pa.array(mine)))
    return pa.concat_tables(parts).unify_dictionaries().combine_chunks()
