"""Floors: a table of which old rows have gone, or whose inputs have lost theirs, is closed before a day.

Theory. Silver and gold are functions of bronze. When bronze loses its beginning, the same functions would
give other rows for the time that was lost, and for the time right after it. So retention closes a derived
table before it takes rows from its inputs (`retention`): from then on, rows that ended before the floor stay
as they are, whatever is made again, and no row from before the floor is added. Nor is one added to a bronze
table from which older rows have gone: a file that is read again does not bring them back.

The floor is a number in the log of the table, as a transaction id of Delta: days since 1970.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, Transaction

from kelpie.pipeline.storage.parquet import NewFile, Writer, declared, readable
from kelpie.pipeline.tables import LakeTable
from kelpie.pipeline.tables.lifetimes import ends, is_young, midnight
from kelpie.pipeline.tables.table import CLUSTER
from kelpie.places import Place

_CLOSED, _KEPT = "kelpie closed of ", "kelpie kept of "
_FIRST_DAY = date(1970, 1, 1)


class Aged(NamedTuple):
    """A file with rows that ended before a day."""

    path: str
    within: dict[str, str]
    is_whole: bool
    """Whether all its rows did."""


def floor_of(delta: DeltaTable, cluster: str) -> date | None:
    """The day before which a table is closed."""
    days = [delta.transaction_version(name + cluster) for name in (_CLOSED, _KEPT)]
    known = [day for day in days if day is not None]
    return _FIRST_DAY + timedelta(days=max(known)) if known else None


def kept_since(delta: DeltaTable, cluster: str) -> date | None:
    """The day whose older rows have gone."""
    days = delta.transaction_version(_KEPT + cluster)
    return None if days is None else _FIRST_DAY + timedelta(days=days)


def closed_mark(cluster: str, before: date) -> Transaction:
    return Transaction(_CLOSED + cluster, (before - _FIRST_DAY).days)


def kept_mark(cluster: str, since: date) -> Transaction:
    return Transaction(_KEPT + cluster, (since - _FIRST_DAY).days)


def aged_files(delta: DeltaTable, folder: Place, table: LakeTable, cluster: str, before: date) -> list[Aged]:
    """By the table's log, where it has bounds; else by the column itself."""
    partition = f"partition.{CLUSTER}"
    files = pa.table(delta.get_add_actions(flatten=True))
    if partition not in files.column_names:
        return []
    found = []
    for row in files.filter(pc.field(partition) == cluster).to_pylist():
        within = {name: str(row[f"partition.{name}"]) for name in table.divided_by}
        bounds = _bounds(table, row, within) or _read_bounds(table, folder / row["path"])
        first, last, has_none = bounds
        limit = midnight(before)
        if first is not None and first < limit:
            is_whole = last is not None and last < limit and not has_none
            found.append(Aged(row["path"], within, is_whole))
    return found


def trimmed(table: LakeTable, folder: Place, files: Sequence[NewFile], before: date) -> list[NewFile]:
    """The same files, without rows that ended before a day. No commit names them yet.

    What they are made of stays until the sweep: a page of the journal may name it.
    """
    kept: list[NewFile] = []
    for file in files:
        known = json.loads(file.statistics)
        row = {f"{way}.{name}": value for way, of in _WAYS.items() for name, value in known[of].items()}
        first, _, _ = _bounds(table, row, file.within) or _read_bounds(table, folder / file.path)
        if first is None or first >= midnight(before):
            kept.append(file)
        else:
            where = is_young(table, before)
            kept += rewritten(table, folder, file.path, cluster=file.cluster, within=file.within, where=where)
    return kept


def rewritten(
    table: LakeTable,
    folder: Place,
    path: str,
    *,
    cluster: str,
    within: Mapping[str, str],
    where: pc.Expression,
) -> list[NewFile]:
    """A new file with some of the rows of another one, if there are any."""
    if set(ends(table)) <= set(table.divided_by):
        return []  # It is of one day, and old as a whole.
    stored = pq.read_table(readable(folder / path), partitioning=None)
    # deltalake writes strings of another kind, which Arrow does not filter.
    held = pa.schema([table.schema.field(column.name) for column in table.in_files])
    rows = declared(stored, table, {}, as_stored=True).cast(held)
    writer = Writer(table, folder, cluster, within, as_stored=True)
    writer.write(rows.filter(where), {})
    return writer.close()


_WAYS = {"min": "minValues", "max": "maxValues", "null_count": "nullCount"}
_Bounds = tuple[datetime | None, datetime | None, bool]
"""The first and the last time, and whether a row has none."""


def _bounds(table: LakeTable, row: Mapping[str, Any], within: Mapping[str, str]) -> _Bounds | None:
    """As the log has them; None: it has not."""
    name = ends(table)[0]
    if name in within:
        day = midnight(date.fromisoformat(within[name]))
        return day, day, False
    first, last, nulls = (row.get(f"{way}.{name}") for way in _WAYS)
    if name not in table.searched or first is None or last is None or nulls:
        return None
    return _time(first), _time(last) + timedelta(milliseconds=1), False


def _time(value: Any) -> datetime:
    time = datetime.fromisoformat(value) if isinstance(value, str) else value
    return time if time.tzinfo is not None else time.replace(tzinfo=midnight(_FIRST_DAY).tzinfo)


def _read_bounds(table: LakeTable, file: Place) -> _Bounds:
    names = list(ends(table))
    rows = pq.read_table(readable(file), columns=names, partitioning=None)
    times = pc.coalesce(*(rows[name] for name in names))
    if not rows.num_rows or times.null_count == rows.num_rows:
        return None, None, True
    found = pc.min_max(times.cast(table.schema.field(names[0]).type)).as_py()
    return found["min"], found["max"], bool(times.null_count)


def split(
    delta: DeltaTable, folder: Place, table: LakeTable, cluster: str, before: date
) -> tuple[list[str], list[NewFile]]:
    """For a commit that replaces all rows that have not ended before a day.

    The files to take out, and new ones with the rows among them that stay.
    """
    aged = {file.path: file for file in aged_files(delta, folder, table, cluster, before)}
    files = pa.table(delta.get_add_actions(flatten=True))
    partition = f"partition.{CLUSTER}"
    if partition not in files.column_names:
        return [], []
    out = [
        path
        for path in files.filter(pc.field(partition) == cluster)["path"].to_pylist()
        if path not in aged or not aged[path].is_whole
    ]
    stay: list[NewFile] = []
    for path in out:
        if path in aged:
            is_old = ~is_young(table, before)
            stay += rewritten(table, folder, path, cluster=cluster, within=aged[path].within, where=is_old)
    return out, stay
