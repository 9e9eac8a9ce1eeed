"""Undecoded records of the offsets topic as rows, the same from both sources."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kelpie.observations import OFFSETS_TOPIC
from kelpie.pipeline.tables.types import BINARY, INT, LONG, MOMENT, SHORT, STRING

RAW = pa.schema(
    {
        "offsets_partition": INT,
        "log_offset": LONG,
        "written": MOMENT,
        "key": BINARY,
        "value": BINARY,
        "producer_id": LONG,
        "producer_epoch": SHORT,
        "log_epoch": INT,
        "source": STRING,
        "reason": STRING,
    }
)
"""Spark's source gives neither producers nor epochs: null. A row with a `reason` is no record: it says what
could not be read, from which offset on, with the first bytes as value."""

ROWS_A_BATCH = 1 << 16


class FetchRange(NamedTuple):
    """Offsets of a partition from `start` to before `stop`."""

    partition: int
    start: int
    stop: int


def source_of(partition: int, bootstrap: str) -> str:
    """The source of a partition's rows: "__consumer_offsets-12@kafka-1:9092"."""
    return f"{OFFSETS_TOPIC}-{partition}@{address_of(bootstrap)}"


def address_of(bootstrap: str) -> str:
    """The first of the addresses, which stands for the cluster."""
    return bootstrap.partition(",")[0].strip()


def raw_rows(partition: int, source: str, pairs: pa.Table) -> Iterator[pa.RecordBatch]:
    """Rows of one partition's records. `pairs`: see `decoding.pairs`."""
    same = {"offsets_partition": partition, "source": source, "reason": None}
    rows = pairs
    for name, value in same.items():
        rows = rows.append_column(name, pa.repeat(pa.scalar(value, RAW.field(name).type), pairs.num_rows))
    yield from rows.select(RAW.names).combine_chunks().to_batches(ROWS_A_BATCH)


def reason_row(
    partition: int, source: str, log_offset: int, reason: str, head: bytes = b""
) -> pa.RecordBatch:
    row = {"offsets_partition": partition, "log_offset": log_offset, "value": head, "source": source}
    return pa.RecordBatch.from_pylist([{**row, "reason": reason}], RAW)


def runs(numbers: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Starts and ends of runs of equal numbers."""
    cuts = (np.flatnonzero(np.diff(numbers)) + 1).tolist()
    yield from zip([0, *cuts], [*cuts, len(numbers)], strict=True)
