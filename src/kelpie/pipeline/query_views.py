"""Every table of a folder under its own name, for people who query: in Spark, or in DuckDB without Spark.

    views(spark, "tables")
    spark.sql("SELECT h.group, h.worst FROM group_health h WHERE h.lag > 0")

A view shows the rows that its table had when the view was made, while a stream goes on writing. Call it again
to see newer rows. A table that is not there yet is an empty view.

`group` is a reserved word of SQL. Behind the name of a table (`h.group`) both engines take it as it is.
"""

from typing import TYPE_CHECKING

from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import TABLES
from kelpie.places import Place, place_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from pyspark.sql import SparkSession


def views(spark: "SparkSession", folder: str | Place) -> list[str]:
    """Makes a temporary view of each table, with the rows of all clusters. Returns the names of the views.

    It needs no jar of Delta: the log of a table names the files, and Spark reads those.
    """
    from kelpie.pipeline.storage.frames import table_frame  # noqa: PLC0415 - DuckDB's users need no Spark.

    lake = Lake(place_of(str(folder)), read_only=True)
    for name, table in TABLES.items():
        table_frame(spark, lake, table).createOrReplaceTempView(name)
    return list(TABLES)


def duckdb_views(connection: "DuckDBPyConnection", folder: str | Place) -> list[str]:
    """The same in a connection of DuckDB. It reads columns and files that a query needs, and no others."""
    lake = Lake(place_of(str(folder)), read_only=True)
    for name, table in TABLES.items():
        connection.register(name, lake.dataset(table))
    return list(TABLES)
