"""What tasks hand back when one pass over a file fills several tables: rows with a word, staged once.

The rows go to Parquet files in a folder beside the tables, from where each table takes its own. So nothing is
computed twice, and nothing has to fit into memory.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kelpie.pipeline.storage.frames import literally
from kelpie.pipeline.storage.lake import STAGING, Lake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS_A_BATCH = 10_000


@contextmanager
def staging(lake: Lake, name: str) -> Iterator[Path]:
    """A folder for what tasks leave to other tasks; empty at first, and gone in the end."""
    folder: Path = lake.root / STAGING / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def staged(lake: Lake, name: str, frame: "DataFrame") -> Iterator["DataFrame"]:
    """The rows, computed once, to be read as often as needed; gone in the end."""
    with staging(lake, name) as folder:
        frame.write.mode("overwrite").parquet(str(folder))
        yield frame.sparkSession.read.schema(frame.schema).parquet(literally(folder))
