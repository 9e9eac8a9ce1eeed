"""Log segments of the offsets topic as a data source of Spark, for your own queries:

    spark.dataSource.register(OffsetsSegments)
    spark.read.format("kelpie_segments").option("table", "offset_commit").load("/mnt/broker-1/data")

Rows are those of the bronze tables: one for each replica that has a record. `kelpie pipeline run` does not
use this source: its tasks write Parquet files themselves, so that no row crosses to the JVM.
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
from kelpie.pipeline.sources.segments.files import FILLED, SegmentFile, packed
from kelpie.pipeline.sources.segments.intake import described, of_offsets_topic
from kelpie.pipeline.sources.snapshots.outputs import Configurations
from kelpie.pipeline.storage.parquet import declared
from kelpie.pipeline.tables import LakeTable
from kelpie.pipeline.tables.table import CLUSTER

NAME = "kelpie_segments"
_TABLE, _PATH = "table", "path"
_TABLES = {table.name: table for table in FILLED}
_OF_A_TASK = 64 * 1024 * 1024


class OffsetsSegments(DataSource):
    """Options: `path`, a folder with disks of brokers below it; `table`, by default offset_commit; and
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
    def __init__(self, files: Sequence[SegmentFile]) -> None:
        super().__init__(None)
        self.files = files


class _Reader(DataSourceReader):
    def __init__(self, path: Path, table: LakeTable, cluster: str) -> None:
        self._path, self._table, self._cluster = path, table, cluster

    def partitions(self) -> Sequence[InputPartition]:
        files = segment_files(self._path, self._cluster)
        return [_Task(of_task) for of_task in packed(files, _OF_A_TASK)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """In a worker. A file that is gone by then makes the query fail, for its rows would be missing."""
        if not isinstance(partition, _Task):  # Spark passes its own object when there is nothing to read.
            return
        # Not in the driver: it loads compiled code.
        from kelpie.pipeline.sources.segments.task import opened, tables_of  # noqa: PLC0415

        for file in partition.files:
            with opened(file) as reader:
                for read in reader:
                    rows = next(rows for name, rows in tables_of(read) if name == self._table.name)
                    yield from _filled(rows, self._table, file).to_batches()


def segment_files(path: Path, cluster: str) -> list[SegmentFile]:
    """Segment files of the offsets topic below a folder. Raises FileNotFoundError."""
    if not path.exists():
        raise FileNotFoundError(f"There is no {path}: give a folder with the data of brokers.")
    with tempfile.TemporaryDirectory(prefix="kelpie-segments-") as room:
        inventory = take_inventory([path], Search(Path(room), Budget(0, 0)), Path(room))
        disks = Configurations(inventory.of(Kind.CONFIGURATION)).disks
        files = of_offsets_topic(described(inventory.of(Kind.SEGMENT), disks), cluster)
    return [file for file in files if file.size]


def _filled(rows: pa.Table, table: LakeTable, file: SegmentFile) -> pa.Table:
    """Rows as the table is declared: with the cluster, and without dictionaries."""
    from kelpie.pipeline.sources.segments.task import constants_of  # noqa: PLC0415 - not in the driver.

    with_constants = declared(rows, table, constants_of(file))
    cluster = pa.repeat(pa.scalar(file.cluster, pa.string()), rows.num_rows)
    return with_constants.append_column(CLUSTER, cluster).select(table.schema.names).cast(table.schema)


def _table(name: str | None) -> LakeTable:
    table = _TABLES.get(name or FILLED[0].name)
    if table is None:
        raise ValueError(f"Segments hold no table {name!r}; there are {', '.join(sorted(_TABLES))}.")
    return table
