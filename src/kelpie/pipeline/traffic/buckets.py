"""A day in parts, each of some partitions, so that what a task holds in memory does not grow with the day.

All that is known of a partition is in one part, so parts can be judged one after the other.
"""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kelpie.pipeline.storage.parquet import ROWS_AT_ONCE as READ_AT_ONCE
from kelpie.pipeline.storage.parquet import readable
from kelpie.pipeline.traffic.evidence_rows import known_as
from kelpie.pipeline.traffic.growth import codes
from kelpie.places import Place

DELTAS_AT_ONCE = 100_000
"""About so many in a part. Of one partition, each broker has at most one for each scrape and label."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """One of so many parts of a day."""

    place: int
    count: int

    def chosen(self, rows: pa.Table) -> pa.Table:
        """Those of this part. `rows` have a topic and a partition."""
        if self.count == 1:
            return rows
        topic, topics = codes(rows["topic"])
        start = np.array([zlib.crc32(known_as(name).encode()) for name in topics], np.int64)
        number = (start[topic] if len(start) else topic) + rows["partition"].to_numpy()
        return rows.filter(pa.array(number % self.count == self.place))


def buckets(files: Iterable[str]) -> list[Bucket]:
    """The parts of a day with these files of unattributed deltas."""
    count = -(-sum(pq.read_metadata(readable(file)).num_rows for file in files) // DELTAS_AT_ONCE) or 1
    return [Bucket(place, count) for place in range(count)]


def batches(
    files: Iterable[str | Place], columns: Sequence[str] | None = None, names: Sequence[str] = ()
) -> Iterator[pa.Table]:
    """The rows of files, some at a time. `names`: columns to read as dictionaries."""
    for file in files:
        with pq.ParquetFile(readable(file), read_dictionary=list(names)) as opened:
            for batch in opened.iter_batches(READ_AT_ONCE, columns=columns, use_threads=False):
                yield pa.Table.from_batches([batch])
