"""A table: its columns with type and meaning, what makes a row unique, and what files are sorted by.

Columns may all be null as far as Spark, Delta and Arrow are concerned; `required` says which never are.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

CLUSTER = "cluster"
"""What all tables are partitioned by: a file is of one cluster, which the log of the table names."""
DAY, HOW = "day", "how"
_SEARCHED = ("offsets_partition", "log_offset", "committed", "written", "at")
"""What readers skip files by: places in the log, and times."""


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: pa.DataType
    meaning: str
    required: bool = False


@dataclass(frozen=True)
class LakeTable:
    name: str
    layer: str
    meaning: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    """Columns that identify a row: evidence that is read twice gives each row once."""
    divided_by: tuple[str, ...] = ()
    """What the table is partitioned by beside the cluster."""

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        assert len(set(names)) == len(names), f"{self.name} names a column twice"
        assert set(self.key) <= set(names), f"the key of {self.name} has columns that it lacks"
        assert set(self.divided_by) <= set(names), f"{self.name} is divided by columns that it lacks"

    @property
    def partitions(self) -> tuple[str, ...]:
        """The columns whose values the log of the table has for each file."""
        return (CLUSTER, *self.divided_by)

    @property
    def in_files(self) -> tuple[Column, ...]:
        """The columns that files hold."""
        return tuple(column for column in self.columns if column.name not in self.partitions)

    @property
    def searched(self) -> tuple[str, ...]:
        """The columns of which every file has bounds."""
        return tuple(column.name for column in self.columns if column.name in _SEARCHED)

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(column.name, column.type) for column in self.columns])

    @cached_property
    def spark_schema(self) -> "StructType":
        from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - tables can be read without it.

        return from_arrow_schema(self.schema, prefer_timestamp_ntz=False)


def required(name: str, type_: pa.DataType, meaning: str) -> Column:
    return Column(name, type_, meaning, required=True)


def in_layer(layer: str, *, cluster: str) -> Callable[..., LakeTable]:
    """Declares tables of a layer: name, meaning, key, columns. The cluster comes first in columns and key."""
    of_cluster = required(CLUSTER, pa.string(), cluster)

    def declare(
        name: str, meaning: str, key: tuple[str, ...], *columns: Column, divided_by: tuple[str, ...] = ()
    ) -> LakeTable:
        return LakeTable(name, layer, meaning, (of_cluster, *columns), (CLUSTER, *key), divided_by)

    return declare
