"""The tables of one cluster as Spark's frames: read from the Parquet files that a table's log names.

The cluster itself is in the log of the table and not in its files. The driver reads a small table, and its
rows are part of the plan: Spark takes longer to list and open files, and to plan for them, than for the rows.
"""

import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everyone who knows Spark knows F.
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kelpie.pipeline.spark.arrow_frames import frame_of_arrow
from kelpie.pipeline.spark.session import for_few_rows, is_for_few_rows
from kelpie.pipeline.storage.lake import STAGING, UNFINISHED, Lake
from kelpie.pipeline.storage.parquet import (
    NewFile,
    below,
    declared,
    described,
    place,
    readable,
    write_parts,
    write_rows,
)
from kelpie.pipeline.tables import STORED, TABLES, LakeTable
from kelpie.pipeline.tables.table import CLUSTER
from kelpie.places import Place
from kelpie.places.place import files_below, move, remove_folder

Rows: TypeAlias = DataFrame | pa.Table | Sequence[Mapping[str, object]]
"""Rows of a table: a frame, or few enough that the driver holds them."""

ROWS_A_BATCH = 10_000
"""Rows that a task hands to Spark at once."""
SMALL_ROWS = 100_000
"""Of one table; so many rows are one task."""
SMALL_FILES_BYTES = 4 << 20
"""Of one table; the driver reads so many, and Spark gets the rows from memory."""
_SPECIAL = re.compile(r"([\\{}\[\]*?])")
_TIMES = "spark.sql.parquet.outputTimestampType"


@dataclass(frozen=True, slots=True)
class ClusterTables:
    """All tables of one cluster."""

    spark: SparkSession
    lake: Lake
    cluster: str

    def frame(self, name: str) -> DataFrame:
        """The rows of a table as they are now."""
        table = TABLES[name]
        files = self.lake.files(table, self.cluster)
        if not files:
            return empty(self.spark, table.spark_schema)
        if self.is_small(name) and self.lake.size(table, self.cluster) <= SMALL_FILES_BYTES:
            return self._in_memory(table)
        stored = StructType([field for field in table.spark_schema if field.name != CLUSTER])
        reader = self.spark.read.schema(stored)
        if table.divided_by:  # Spark takes these columns from the paths.
            reader = reader.option("basePath", literal_path(self.lake.path(table)))
        rows = reader.parquet(*map(literal_path, files))
        if self.is_small(name):
            # All rows are in one place then, so no query needs a shuffle.
            rows = rows.coalesce(1)
        return rows.withColumn(CLUSTER, F.lit(self.cluster)).select(*table.spark_schema.names)

    def frame_of(self, name: str, files: Sequence[Place]) -> DataFrame:
        """The rows of these files of a table. Its log need not name them any more."""
        table = STORED[name]
        if not files:
            return empty(self.spark, table.spark_schema)
        stored = StructType([field for field in table.spark_schema if field.name != CLUSTER])
        rows = self._few_rows(table, files)
        if rows is not None:
            frame = frame_of_arrow(self.spark, rows, stored).coalesce(1)
        else:
            frame = self.spark.read.schema(stored).parquet(*map(literal_path, files))
        return frame.withColumn(CLUSTER, F.lit(self.cluster)).select(*table.spark_schema.names)

    def declared(self, name: str, rows: pa.Table) -> pa.Table:
        """Rows of files with all columns of their table."""
        table = STORED[name]
        whole = rows.append_column(CLUSTER, pa.array([self.cluster] * rows.num_rows, pa.string()))
        return whole.select(table.schema.names).cast(table.schema)

    def rows_now(self, name: str) -> pa.Table:
        """All rows of a table, in memory: of one that rounds keep, or that is small."""
        return self.columns_of(name, self.files_now(name), stored_names(name))

    def for_rows(self, count: int) -> "ClusterTables":
        """The same tables, for queries over so many rows."""
        return self if count > SMALL_ROWS else replace(self, spark=for_few_rows(self.spark))

    def of_rows(self, name: str, rows: pa.Table) -> tuple["ClusterTables", DataFrame]:
        """Rows of a table that are in memory, as a frame; and these tables in a session for so many rows."""
        few = self.for_rows(rows.num_rows)
        frame = frame_of_arrow(few.spark, self.declared(name, rows), STORED[name].spark_schema)
        return few, frame.coalesce(1) if few is not self else frame

    def settled(self, rows: DataFrame) -> DataFrame:
        """Rows that several queries use, made once.

        Few ones are in memory: Spark analyses the whole plan of a frame with each step on it, and for few
        rows that takes longer than to make them. `unpersist` gives many ones up.
        """
        if is_for_few_rows(self.spark):
            return frame_of_arrow(self.spark, rows.toArrow(), rows.schema).coalesce(1)
        return rows.persist()

    def _few_rows(self, table: LakeTable, files: Sequence[Place]) -> pa.Table | None:
        """The rows of these files, without the cluster; None: they are too many for one task."""
        if sum(file.stat().st_size for file in files) > SMALL_FILES_BYTES:
            return None
        held = pa.schema([field for field in table.schema if field.name != CLUSTER])
        tables = [pq.read_table(readable(file), partitioning=None) for file in files]
        if sum(each.num_rows for each in tables) > SMALL_ROWS:
            return None
        return pa.concat_tables([declared(each, table, {}).cast(held) for each in tables])

    def files_now(self, name: str) -> tuple[Place, ...]:
        """The files of any table, also of those that rounds keep."""
        return self.lake.snapshot(STORED[name], self.cluster).files

    def new_rows(self, name: str, files: Sequence[NewFile]) -> DataFrame:
        """The rows of files that no commit names yet."""
        folder = self.lake.path(STORED[name])
        return self.frame_of(name, [folder / file.path for file in files])

    def columns_of(
        self, name: str, files: Sequence[Place], columns: Sequence[str], where: pc.Expression | None = None
    ) -> pa.Table:
        """Some columns of these files, in memory: for numbers, for little state, or for few rows."""
        read = self.batches_of(name, files, columns)
        batches = list(read) if where is None else [batch.filter(where) for batch in read]
        return pa.concat_tables(batches) if batches else _schema(name, columns).empty_table()

    def batches_of(self, name: str, files: Sequence[Place], columns: Sequence[str]) -> Iterator[pa.Table]:
        """The same, a row group after the other: so few are in memory at once."""
        held = _schema(name, columns)
        for file in files:
            with pq.ParquetFile(readable(file)) as stored:
                for number in range(stored.num_row_groups):
                    rows = stored.read_row_group(number, list(columns))
                    if rows.num_columns < len(columns):  # An earlier release wrote it.
                        rows = declared(rows, STORED[name], {})
                    yield rows.select(columns).cast(held)

    def _in_memory(self, table: LakeTable) -> DataFrame:
        """In one partition, so that no query needs a shuffle."""
        rows = self.lake.rows(table, self.cluster).select(table.schema.names).cast(table.schema)
        return frame_of_arrow(self.spark, rows, table.spark_schema).coalesce(1)

    def is_small(self, *names: str) -> bool:
        """Whether one task is enough for the rows of these tables."""
        return sum(self.lake.count(TABLES[name], self.cluster) for name in names) <= SMALL_ROWS

    def has_rows(self, name: str) -> bool:
        return self.lake.count(TABLES[name], self.cluster) > 0

    def append(self, name: str, rows: Rows, *, application: str, version: int) -> int:
        """Adds rows of a batch, once. Returns how many it added."""
        table = TABLES[name]
        if not isinstance(rows, DataFrame):
            return self.lake.append_rows(table, self.cluster, rows, application=application, version=version)
        if self.lake.version_of(table, application) >= version:
            return 0
        files = self.write(table, rows)
        added = self.lake.add(table, files, application=application, version=version)
        return sum(file.rows for file in files) if added else 0

    def replace(self, name: str, rows: Rows, *, made_of: int) -> int:
        """Replaces all rows of a table at once. Returns how many it has. `made_of`: see `Lake.made_of`."""
        table = TABLES[name]
        files = self.write(table, rows)
        self.lake.replace(table, self.cluster, files, made_of=made_of)
        return sum(file.rows for file in files)

    def write(self, table: LakeTable, rows: Rows) -> list[NewFile]:
        """Files with these rows; no commit names them yet."""
        folder = self.lake.path(table)
        self.lake.open(table)
        if not isinstance(rows, DataFrame):
            return write_rows(table, folder, self.cluster, rows)
        unfinished = folder / f"{UNFINISHED}{uuid.uuid4()}"
        self.spark.conf.set(_TIMES, "TIMESTAMP_MICROS")
        columns = [
            rows[field.name].cast(field.dataType).alias(field.name)
            for field in table.spark_schema
            if field.name != CLUSTER
        ]
        writer = rows.select(*columns).write.option("compression", "zstd")
        if table.divided_by:
            writer = writer.partitionBy(*table.divided_by)
        writer.parquet(str(unfinished))
        files = []
        for path in files_below(unfinished):
            if not (path.name.startswith("part-") and path.name.endswith(".parquet")):
                continue
            within = dict(part.split("=", 1) for part in below(path, unfinished).split("/")[:-1])
            target = place(folder, self.cluster, within)
            file = described(table, path, path=target, folder=folder, cluster=self.cluster, within=within)
            if file.rows:  # Spark writes a file also where there is no row.
                move(path, target)
                files.append(file)
        remove_folder(unfinished)
        return files

    def write_parts(self, name: str, parts: Iterable[pa.Table]) -> list[NewFile]:
        """One file with the rows of all parts; no commit names it yet."""
        self.lake.open(STORED[name])
        return write_parts(STORED[name], self.lake.path(STORED[name]), self.cluster, parts)


def table_frame(spark: SparkSession, lake: Lake, table: LakeTable) -> DataFrame:
    """The rows of all clusters as they are now. Spark takes the clusters from the paths of the files."""
    files = lake.all_files(table)
    if not files:
        return empty(spark, table.spark_schema)
    reader = spark.read.schema(table.spark_schema).option("basePath", literal_path(lake.path(table)))
    return reader.parquet(*map(literal_path, files)).select(*table.spark_schema.names)


def _schema(name: str, columns: Sequence[str]) -> pa.Schema:
    return pa.schema([STORED[name].schema.field(column) for column in columns])


def stored_names(name: str) -> list[str]:
    """The columns of a table that its files hold."""
    return [column.name for column in STORED[name].in_files]


def empty(spark: SparkSession, schema: StructType) -> DataFrame:
    """No rows. Spark knows it, so it leaves out what joins them or counts them."""
    return frame_of_arrow(spark, to_arrow_schema(schema, timezone="UTC").empty_table(), schema)


def as_frame(spark: SparkSession, rows: DataFrame | pa.Table) -> DataFrame:
    """Rows that the driver may hold in memory, as a frame of one partition."""
    return rows if isinstance(rows, DataFrame) else frame_of_arrow(spark, rows).coalesce(1)


def literal_path(path: Place) -> str:
    """A path that Spark does not take for a pattern."""
    return _SPECIAL.sub(r"\\\1", str(path))


@contextmanager
def staging(lake: Lake, name: str) -> Iterator[Place]:
    """An empty folder for files that tasks leave for other tasks; deleted at the end."""
    folder: Place = lake.root / STAGING / name
    remove_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield folder
    finally:
        remove_folder(folder)


@contextmanager
def staged(lake: Lake, name: str, frame: DataFrame) -> Iterator[DataFrame]:
    """The rows of a frame, written once beside the tables, so that several tables can read them.

    No row is computed twice, and the rows need not fit into memory.
    """
    with staging(lake, name) as folder:
        frame.write.mode("overwrite").parquet(str(folder))
        yield frame.sparkSession.read.schema(frame.schema).parquet(literal_path(folder))
