"""Rows that the driver holds, as frames of Spark.

Spark 4 reads the batches of a table until one is empty, and says nothing of the rows behind it. Tables that
are put together of what several files have of some groups often have an empty batch in the middle. So all
frames of rows in memory are made here, of tables without empty batches.
"""

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType


def frame_of_arrow(spark: SparkSession, rows: pa.Table, schema: StructType | None = None) -> DataFrame:
    """`schema`: the types of its columns, if Spark is not to take them from Arrow."""
    batches = [batch for batch in rows.to_batches() if batch.num_rows]
    filled = pa.Table.from_batches(batches, rows.schema) if batches else rows.schema.empty_table()
    return spark.createDataFrame(filled) if schema is None else spark.createDataFrame(filled, schema)
