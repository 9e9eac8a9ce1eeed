"""Tables as Spark's frames, and frames into tables: plain Parquet files, which the log of the table names.

Of each table, the rows of one cluster: the cluster itself is in the log, not in the files.
"""

import re
import shutil
import uuid
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everyone who knows Spark knows F.
from pyspark.sql.types import StructType

from kelpie.pipeline.storage.lake import UNFINISHED, Lake
from kelpie.pipeline.storage.parquet import NewFile, described, place
from kelpie.pipeline.tables import Table
from kelpie.pipeline.tables.table import CLUSTER

_MEANT_LITERALLY = re.compile(r"([\\{}\[\]*?])")
_TIMES = "spark.sql.parquet.outputTimestampType"


def frame(spark: SparkSession, lake: Lake, table: Table, cluster: str) -> DataFrame:
    """The rows of a cluster as they are now."""
    files = lake.files(table, cluster)
    if not files:
        return spark.createDataFrame([], table.spark_schema)
    held = StructType([field for field in table.spark_schema if field.name != CLUSTER])
    rows = spark.read.schema(held).parquet(*map(literally, files))
    return rows.withColumn(CLUSTER, F.lit(cluster)).select(*table.spark_schema.names)


def literally(path: Path) -> str:
    """Spark takes paths for patterns."""
    return _MEANT_LITERALLY.sub(r"\\\1", str(path))


def write(lake: Lake, table: Table, rows: DataFrame, cluster: str) -> list[NewFile]:
    """Files with these rows, which no commit knows yet."""
    folder = lake.path(table)
    lake.open(table)
    made = folder / f"{UNFINISHED}{uuid.uuid4()}"
    rows.sparkSession.conf.set(_TIMES, "TIMESTAMP_MICROS")
    columns = [
        rows[field.name].cast(field.dataType).alias(field.name)
        for field in table.spark_schema
        if field.name != CLUSTER
    ]
    rows.select(*columns).write.option("compression", "zstd").parquet(str(made))
    files = []
    for path in made.glob("part-*.parquet"):
        target = place(folder, cluster)
        target.parent.mkdir(exist_ok=True)
        files.append(described(table, path.rename(target), folder, cluster))
    shutil.rmtree(made)
    return files


def append(lake: Lake, table: Table, rows: DataFrame, cluster: str, *, application: str, version: int) -> int:
    """Rows of a batch, once. How many were added."""
    if lake.version_of(table, application) >= version:
        return 0
    files = write(lake, table, rows, cluster)
    added = lake.add(table, files, application=application, version=version)
    return sum(file.rows for file in files) if added else 0
