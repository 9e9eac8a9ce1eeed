"""Log segments of the offsets topic as a source of Spark's, for queries of one's own:

    spark.dataSource.register(OffsetsSegments)
    spark.read.format("kelpie_segments").option("table", "offset_commit").load("/mnt/broker-1/data")

Rows are those of bronze tables, without tables: one for each replica that holds a record. `kelpie pipeline
run` does not go this way, for its tasks write Parquet files themselves, and no row crosses to the JVM.
"""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from kelpie.evidence.archives import Budget
from kelpie.evidence.files import Search
from kelpie.evidence.recognition import Kind
from kelpie.pipeline.sources.inventory import take_inventory
from kelpie.pipeline.sources.segments.discovery import described, of_offsets_topic
from kelpie.pipeline.sources.segments.files import FILLED, Range, SegmentFile, packed, ranges
from kelpie.pipeline.sources.snapshots.outputs import Configurations
from kelpie.pipeline.storage.parquet import declared
from kelpie.pipeline.tables import Table
from kelpie.pipeline.tables.table import CLUSTER

NAME = "kelpie_segments"
_TABLE, _PATH = "table", "path"
_TABLES = {table.name: table for table in FILLED}
_OF_A_TASK = 64 * 1024 * 1024
_NEVER_CUT = 1 << 62
"""Nobody looks afterwards whether a range began where it should have; and files of the topic are small."""


class OffsetsSegments(DataSource):
    """Options: `path`, a folder with disks of brokers below it; `table`, offset_commit unless told; and
    `cluster`, a name for it. Archives are not opened.
    """

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        return _table(self.options.get(_TABLE)).spark_schema

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - Spark's words.
        path = self.options.get(_PATH)
        if not path:
            raise ValueError("There is no path: give load() a folder with the data of brokers.")
        return _Reader(Path(path), _table(self.options.get(_TABLE)), self.options.get(CLUSTER) or "")


class _Task(InputPartition):
    def __init__(self, parts: Sequence[Range]) -> None:
        super().__init__(None)
        self.parts = parts


class _Reader(DataSourceReader):
    def __init__(self, path: Path, table: Table, cluster: str) -> None:
        self._path, self._table, self._cluster = path, table, cluster

    def partitions(self) -> Sequence[InputPartition]:
        files = segment_files(self._path, self._cluster)
        whole = ranges(((file, 0) for file in files), _NEVER_CUT)
        return [_Task(parts) for parts in packed(whole, _OF_A_TASK)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """In a worker. A file that is gone by then ends the query, which would lack its rows."""
        if not isinstance(partition, _Task):  # Spark's own, when there is nothing to read.
            return
        # Not in the driver: it loads compiled code.
        from kelpie.pipeline.sources.segments.task import opened, tables_of  # noqa: PLC0415

        for part in partition.parts:
            with opened(part) as reader:
                for read in reader:
                    rows = next(rows for name, rows in tables_of(read) if name == self._table.name)
                    yield from _filled(rows, self._table, part).to_batches()


def segment_files(path: Path, cluster: str) -> list[SegmentFile]:
    """Those of the offsets topic below a folder. Raises FileNotFoundError."""
    if not path.exists():
        raise FileNotFoundError(f"There is no {path}: give a folder with the data of brokers.")
    with tempfile.TemporaryDirectory(prefix="kelpie-segments-") as room:
        inventory = take_inventory([path], Search(Path(room), Budget(0, 0)), Path(room))
        disks = Configurations(inventory.of(Kind.CONFIGURATION)).disks
        found = of_offsets_topic(described(inventory.of(Kind.SEGMENT), disks), cluster)
    return [file for file in found if file.size]


def _filled(rows: pa.Table, table: Table, part: Range) -> pa.Table:
    """As the table is declared: files know of no cluster, and hold dictionaries."""
    from kelpie.pipeline.sources.segments.task import constants_of  # noqa: PLC0415 - not in the driver.

    found = declared(rows, table, constants_of(part))
    cluster = pa.repeat(pa.scalar(part.cluster, pa.string()), rows.num_rows)
    return found.append_column(CLUSTER, cluster).select(table.schema.names).cast(table.schema)


def _table(name: str | None) -> Table:
    table = _TABLES.get(name or FILLED[0].name)
    if table is None:
        raise ValueError(f"Segments hold no table {name!r}; there are {', '.join(sorted(_TABLES))}.")
    return table
