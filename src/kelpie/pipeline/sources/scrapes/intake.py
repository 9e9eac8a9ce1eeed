"""Scrapes of metrics into `metric_sample`; lines in another format into `quarantine`."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from kelpie.evidence.logs.lines import read_lines
from kelpie.evidence.scrapes import MalformedLine, read_scrape
from kelpie.evidence.unreadable import unreadable
from kelpie.model.time import Instant
from kelpie.pipeline.sources.inventory import Item
from kelpie.pipeline.storage.frames import ROWS_A_BATCH
from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.tables.moments import moment

_SAMPLES, _QUARANTINE = TABLES["metric_sample"].schema, TABLES["quarantine"].schema
_STAGED = pa.schema(
    [*_SAMPLES, *(field for field in _QUARANTINE if field.name not in _SAMPLES.names)],
)
_FILES = "name string, path string, encoding string, modified bigint"
_REASON = "It is no line of the text format of Prometheus"


def read_scrapes(spark: SparkSession, items: Sequence[Item], *, cluster: str) -> DataFrame:
    """Rows of both tables. Rows of quarantine have a `reason`."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                yield from _read(**row, cluster=cluster)

    files = [(item.file.name, str(item.file.path), item.encoding, item.file.modified) for item in items]
    tasks = max(1, min(len(files), spark.sparkContext.defaultParallelism * 4))
    frame = spark.createDataFrame(files, _FILES).repartition(tasks)
    return frame.mapInArrow(task, from_arrow_schema(_STAGED, prefer_timestamp_ntz=False))


def _read(
    name: str, path: str, encoding: str, modified: Instant | None, cluster: str
) -> Iterator[pa.RecordBatch]:
    rows: list[dict[str, Any]] = []
    constants = {"cluster": cluster, "source": name}
    try:
        for line in read_scrape(read_lines(Path(path), encoding)):
            if isinstance(line, MalformedLine):
                text = line.text.encode("utf-8", "replace")
                complaint = {"reason": f"{_REASON}: line {line.line}.", "bytes": text, "size": len(text)}
                rows.append({**constants, **complaint, "position": line.position})
            else:
                sample = {"name": line.name, "labels": list(line.labels.items()), "value": line.value}
                at = moment(line.at if line.at is not None else modified)
                rows.append({**constants, **sample, "line": line.line, "type": line.type, "at": at})
            if len(rows) >= ROWS_A_BATCH:
                yield pa.RecordBatch.from_pylist(rows, _STAGED)
                rows = []
    except OSError as error:
        reason = unreadable(error)
        rows.append({**constants, "reason": reason, "position": 0, "size": 0})
    if rows:
        yield pa.RecordBatch.from_pylist(rows, _STAGED)
