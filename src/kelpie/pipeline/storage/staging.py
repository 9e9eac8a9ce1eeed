"""Rows that several tables share: written once to Parquet files beside the tables, then read by each table.

So no row is computed twice, and the rows need not fit into memory.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kelpie.pipeline.storage.frames import literal_path
from kelpie.pipeline.storage.lake import STAGING, Lake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS_A_BATCH = 10_000


@contextmanager
def staging(lake: Lake, name: str) -> Iterator[Path]:
    """An empty folder for files that tasks leave for other tasks; deleted at the end."""
    folder: Path = lake.root / STAGING / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def staged(lake: Lake, name: str, frame: "DataFrame") -> Iterator["DataFrame"]:
    """The rows of a frame, computed once, to be read several times; deleted at the end."""
    with staging(lake, name) as folder:
        frame.write.mode("overwrite").parquet(str(folder))
        yield frame.sparkSession.read.schema(frame.schema).parquet(literal_path(folder))
