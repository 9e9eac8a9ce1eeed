"""Surveys that `kelpie collect` took into `cluster_snapshot`; incomplete files into `quarantine`.

There are many, so tasks read them. A task reads a whole file before it yields rows: a file that is torn at
its end gives none. The driver reads first lines only; each survey has a row of kind "survey" with that line.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from kelpie.evidence.snapshot_choice import choose, other_cluster
from kelpie.evidence.snapshot_files import Header, Torn, header_line, header_of, read_plain
from kelpie.evidence.unreadable import unreadable
from kelpie.observations.encoding import KNOWN
from kelpie.pipeline.sources.inventory import Item
from kelpie.pipeline.sources.snapshots.outputs import SURVEY
from kelpie.pipeline.storage.frames import ROWS_A_BATCH
from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.transforms.lag import SURVEYED
from kelpie.places import Place, place_of

PREFIX = SURVEYED
"""How the names of these snapshots begin in the table."""
_ROWS, _QUARANTINE = TABLES["cluster_snapshot"].schema, TABLES["quarantine"].schema
_STAGED = pa.schema([*_ROWS, *(field for field in _QUARANTINE if field.name not in _ROWS.names)])
_FILES = "name string, path string, size bigint"
_HEAD = 1 << 16
_QUOTED_BYTES = 4096


def headers_of(items: Sequence[Item]) -> tuple[dict[str, Header], dict[str, str]]:
    """First lines by name of the file; and the reason for files without a valid one."""
    headers: dict[str, Header] = {}
    damaged: dict[str, str] = {}
    for item in items:
        try:
            with item.file.path.open("rb") as file:
                headers[item.file.name] = header_of(file.read(_HEAD))
        except Torn as error:
            damaged[item.file.name] = str(error)
        except OSError as error:
            damaged[item.file.name] = unreadable(error)
    return headers, damaged


def clusters_of(items: Sequence[Item]) -> set[str]:
    """Ids of the clusters that answered."""
    return {header.cluster for header in headers_of(items)[0].values() if header.answered}


def sort_out(items: Sequence[Item], cluster: str) -> tuple[list[Item], dict[str, str]]:
    """The files of this cluster; and the reason for those that are left out."""
    headers, left_out = headers_of(items)
    choice = choose(headers, cluster)
    left_out |= {name: other_cluster(headers[name], choice) for name in choice.foreign}
    return [item for item in items if item.file.name not in left_out], left_out


def read_here(items: Sequence[Item], *, cluster: str) -> pa.Table:
    """Rows of both tables, of few surveys; the driver reads them."""
    batches = [batch for file in _files(items) for batch in _read(*file, cluster)]
    return pa.Table.from_batches(batches, _STAGED)


def read_surveys(spark: SparkSession, items: Sequence[Item], *, cluster: str) -> DataFrame:
    """Rows of both tables; those of quarantine have a `reason`."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                yield from _read(row["name"], row["path"], row["size"], cluster)

    files = _files(items)
    tasks = max(1, min(len(files), spark.sparkContext.defaultParallelism * 4))
    # By range of names, so that rows of one time are in one file and readers can skip the others.
    frame = spark.createDataFrame(files, _FILES).repartitionByRange(tasks, "name")
    return frame.mapInArrow(task, from_arrow_schema(_STAGED, prefer_timestamp_ntz=False))


def damaged_rows(staged: DataFrame | pa.Table) -> DataFrame | pa.Table:
    """Rows of quarantine."""
    if isinstance(staged, pa.Table):
        return staged.filter(pc.field("reason").is_valid())
    return staged.where("reason is not null")


def whole_rows(staged: DataFrame | pa.Table) -> DataFrame | pa.Table:
    """Rows of cluster_snapshot."""
    if isinstance(staged, pa.Table):
        return staged.filter(pc.field("reason").is_null())
    return staged.where("reason is null")


def torn_files(damaged: DataFrame | pa.Table, most: int) -> list[tuple[str, str]]:
    """Files that are damaged, with the reason for each."""
    rows = damaged.select(["source", "reason"])
    if isinstance(rows, DataFrame):
        return [(row["source"], row["reason"]) for row in rows.limit(most).collect()]
    return [(row["source"], row["reason"]) for row in rows.slice(0, most).to_pylist()]


def _files(items: Sequence[Item]) -> list[tuple[str, str, int]]:
    return sorted((item.file.name, str(item.file.path), item.file.size) for item in items)


def _read(name: str, path: str, size: int, cluster: str) -> Iterator[pa.RecordBatch]:
    try:
        batches = _batches(_rows_of(name, place_of(path)), cluster, f"{PREFIX}{name}")
    except Torn as error:
        yield _damaged(name, path, size, cluster, str(error))
    except OSError as error:
        yield _damaged(name, path, size, cluster, unreadable(error))
    except (pa.ArrowException, ValueError, OverflowError) as error:
        yield _damaged(name, path, size, cluster, f"It has a value that no table can hold: {error}.")
    else:
        yield from batches


def _rows_of(name: str, path: Place) -> Iterator[tuple[str, Mapping[str, Any], str]]:
    """Kind, fields and body of each row. Raises Torn, OSError."""
    with path.open("rb") as file:
        header = header_of(file.read(_HEAD))
    yield SURVEY, {"source": name}, header_line(header)
    for kind, data, body in read_plain(path):
        if not header.answered:
            data["at"] = None  # No broker answered, so nothing was seen then.
        yield kind, data, "{}" if kind == KNOWN else body


def _batches(
    rows: Iterable[tuple[str, Mapping[str, Any], str]], cluster: str, snapshot: str
) -> list[pa.RecordBatch]:
    """Rows of one survey, made column by column: a dict per row would cost three times as much."""
    columns: dict[str, list[Any]] = {
        name: [] for name in ("kind", "body", "group", "topic", "partition", "source", "node", "at")
    }
    for kind, data, body in rows:
        get = data.get
        columns["kind"].append(kind)
        columns["body"].append(body)
        is_of_group = kind == "unasked" and get("kind") == "group"
        columns["group"].append(_plain(get("name") if is_of_group else get("group")))
        columns["topic"].append(_plain(get("topic")))
        columns["partition"].append(get("partition"))
        columns["source"].append(_plain(get("source", "")))
        columns["node"].append(get("node_id", get("told_by")))
        at = get("at")
        columns["at"].append(None if at is None else at * 1000)
    count = len(columns["kind"])
    same = {"cluster": [cluster] * count, "snapshot": [snapshot] * count, "ordinal": range(count)}
    whole = {name: pa.array(values, _ROWS.field(name).type) for name, values in (columns | same).items()}
    arrays = [whole[field.name] if field.name in whole else pa.nulls(count, field.type) for field in _STAGED]
    batch = pa.RecordBatch.from_arrays(arrays, schema=_STAGED)
    return [batch.slice(start, ROWS_A_BATCH) for start in range(0, count, ROWS_A_BATCH)]


def _damaged(name: str, path: str, size: int, cluster: str, reason: str) -> pa.RecordBatch:
    try:
        with place_of(path).open("rb") as file:
            beginning: bytes | None = file.read(_QUOTED_BYTES)
    except OSError:
        beginning = None
    row = {"cluster": cluster, "source": name, "position": 0, "size": size}
    return pa.RecordBatch.from_pylist([{**row, "reason": reason, "bytes": beginning}], _STAGED)


def _plain(text: str | None) -> str | None:
    """A column must hold valid UTF-8; the body keeps the text as it is."""
    if text is None or text.isascii():
        return text
    return text.encode("utf-8", "replace").decode()
