"""Delta tables in a folder: created as declared, each batch written once, readable by any Delta reader.

Files are Parquet. Tasks write them into the table's folder (`parquet`), or Spark does (`frames`), and the
driver adds them in one commit. The commit names an application and a version (Delta's transaction ids), so a
batch that is in the table is not added again. Delta inside Spark would do the same, but needs several Spark
jobs for each access to a table's log.

The folder is one that the driver and all executors see under the same path, or by the same URL.
"""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import ColumnProperties, CommitProperties, DeltaTable, Transaction, WriterProperties
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from deltalake.schema import Field, Schema
from deltalake.transaction import AddAction

from kelpie.pipeline.storage.exchange import DRAFT as PAGE
from kelpie.pipeline.storage.exchange import exchange
from kelpie.pipeline.storage.floors import floor_of, split, trimmed
from kelpie.pipeline.storage.parquet import NewFile, write_rows
from kelpie.pipeline.tables import STORED, LakeTable
from kelpie.pipeline.tables.lifetimes import ends, young_in_sql
from kelpie.pipeline.tables.table import CLUSTER
from kelpie.places import Place
from kelpie.places.credentials import s3_settings
from kelpie.places.place import for_tables, newest_change, remove_folder
from kelpie.places.stores import UNNAMED

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset

T = TypeVar("T")

_SETTINGS = {
    "delta.checkpointInterval": "50",
    "delta.enableDeletionVectors": "false",
    # A stream commits every few seconds, for months: yesterday's commits go when a checkpoint is made.
    "delta.logRetentionDuration": "interval 1 days",
    "delta.deletedFileRetentionDuration": "interval 1 days",
}
_PARTITION = f"partition.{CLUSTER}"
UNFINISHED, STAGING, BATCHES = "_written-", "_staging", "_batches"
"""Names of folders: files that Spark is writing, rows that several tables share, the journal."""
DRAFT = "draft-"
_LEFT = (f"*/*/{UNFINISHED}*", f"{STAGING}/*", f"{BATCHES}/*/{DRAFT}*", f"*/*/_delta_log/{PAGE}*")
"""What killed runs leave, beside files of tables that no commit names."""
_LEFT_ON_HDFS = ("*/*/_delta_log/.*.tmp.*", f"*/*/_delta_log/{UNNAMED}*", f"_*/*/{UNNAMED}*")
"""There a commit, too, is a file that gets its name when it is complete."""
_MADE = "kelpie tables of "
_DERIVED = ("silver", "gold")
_SMALL = 32 * 1024 * 1024
_ATTEMPTS = 5
_NOT_IN_IDS, _LONGEST_NAME = re.compile(r"[^A-Za-z0-9._-]"), 200
A_DAY, AN_HOUR = timedelta(days=1), timedelta(hours=1)


class Snapshot(NamedTuple):
    """What a table has of a cluster at one moment."""

    version: int
    files: tuple[Place, ...]
    rows: int


class Lake:
    """The folder with all tables."""

    def __init__(self, root: Place, *, read_only: bool = False) -> None:
        """`read_only`: nothing is created or changed. A table that is not there has no rows."""
        self.root: Place = for_tables(root)
        self._read_only = read_only

    def path(self, table: LakeTable) -> Place:
        return self.root / table.layer / table.name

    def _delta(self, table: LakeTable) -> DeltaTable:
        """Raises TableNotFoundError."""
        path = self.path(table)
        return DeltaTable(str(path), storage_options=storage_options(path))

    def open(self, table: LakeTable) -> DeltaTable:
        """The table. Creates it if needed, and adds columns that were declared since."""
        assert not self._read_only, "nothing may be created here"
        try:
            delta = self._delta(table)
        except TableNotFoundError:
            delta = DeltaTable.create(
                str(self.path(table)),
                schema=table.schema,
                mode="ignore",  # Another process may have created it meanwhile.
                name=table.name,
                description=table.meaning,
                partition_by=list(table.partitions),
                configuration={**_SETTINGS, **_statistics(table)},
                storage_options=storage_options(self.path(table)),
            )
        missing = _missing(delta, table)
        if missing:
            delta.alter.add_columns(missing)
        return delta

    def _existing(self, table: LakeTable) -> DeltaTable | None:
        """The table as it is, to be read. None: there is none, and none may be created."""
        if not self._read_only:
            return self.open(table)
        try:
            return self._delta(table)
        except TableNotFoundError:
            return None

    def state_of(self, table: LakeTable) -> int:
        """A number that grows with every change of the table; −1: there is none."""
        delta = self._existing(table)
        return -1 if delta is None else delta.version()

    def version_of(self, table: LakeTable, application: str) -> int:
        """The newest batch of an application in this table; −1 if there is none."""
        version = self.open(table).transaction_version(application)
        return -1 if version is None else version

    def floor(self, table: LakeTable, cluster: str) -> date | None:
        """The day before which a table is closed (`floors`)."""
        return floor_of(self.open(table), cluster)

    def add(self, table: LakeTable, files: Sequence[NewFile], *, application: str, version: int) -> bool:
        """Commits the files of one batch. Returns False, and does nothing, if the table has the batch."""

        def add(delta: DeltaTable) -> bool:
            known = delta.transaction_version(application)
            if known is not None and known >= version:
                return False
            floor = floor_of(delta, files[0].cluster) if files and ends(table) else None
            fresh = files if floor is None else trimmed(table, self.path(table), files, floor)
            _write(delta, table, fresh, [Transaction(application, version)], mode="append")
            return True

        return self._change(table, add)

    def renew(
        self, table: LakeTable, cluster: str, files: Sequence[NewFile], *, application: str, version: int
    ) -> bool:
        """Replaces all rows of a cluster by those of a batch, in one commit. Returns False as `add` does.

        Rows that the floor protects stay.
        """

        def renew(delta: DeltaTable) -> bool:
            known = delta.transaction_version(application)
            if known is not None and known >= version:
                return False
            self._replace_open(delta, table, cluster, files, Transaction(application, version))
            return True

        return self._change(table, renew)

    def _replace_open(
        self, delta: DeltaTable, table: LakeTable, cluster: str, files: Sequence[NewFile], mark: Transaction
    ) -> None:
        floor = floor_of(delta, cluster) if ends(table) else None
        if floor is None:
            filters = [(CLUSTER, "=", cluster)]
            _write(delta, table, files, [mark], mode="overwrite", partition_filters=filters)
            return
        folder = self.path(table)
        out, stay = split(delta, folder, table, cluster, floor)
        stay += trimmed(table, folder, files, floor)
        exchange(delta, folder, remove=out, add=stay, marks=[mark])

    def append_rows(
        self,
        table: LakeTable,
        cluster: str,
        rows: Sequence[Mapping[str, object]] | pa.Table,
        *,
        application: str,
        version: int,
    ) -> int:
        """Adds rows of a batch that the driver holds, once. Returns how many it added."""
        if self.version_of(table, application) >= version:
            return 0
        files = write_rows(table, self.path(table), cluster, rows)
        return len(rows) if self.add(table, files, application=application, version=version) else 0

    def replace(self, table: LakeTable, cluster: str, files: Sequence[NewFile], *, made_of: int) -> None:
        """Replaces all rows of a cluster in one commit: readers see the old or the new rows.

        `made_of`: the number of the inputs that the rows were made of (`derived`); the table's log keeps it.
        """
        mark = Transaction(_MADE + cluster, made_of)
        self._change(table, lambda delta: self._replace_open(delta, table, cluster, files, mark))

    def replace_parts(
        self,
        table: LakeTable,
        cluster: str,
        files: Sequence[NewFile],
        *,
        parts: Mapping[str, Sequence[str]],
        made_of: Mapping[str, int],
    ) -> None:
        """Replaces the rows of some parts of a cluster in one commit.

        `parts`: values of columns that the table is divided by. `made_of`: numbers, as for `replace`, by
        name; the names are the caller's, one for each part that is made by itself.
        """
        marks = [Transaction(f"{_MADE}{cluster}: {name}", number) for name, number in made_of.items()]
        filters = [(CLUSTER, "=", cluster), *((name, "in", list(values)) for name, values in parts.items())]
        self._change(
            table,
            lambda delta: _write(delta, table, files, marks, mode="overwrite", partition_filters=filters),
        )

    def mark(self, table: LakeTable, cluster: str, *, made_of: int) -> None:
        """Notes the number of the inputs, as `replace` does, and leaves all rows."""
        mark = Transaction(_MADE + cluster, made_of)
        self._change(table, lambda delta: _write(delta, table, (), [mark], mode="append"))

    def made_of(self, table: LakeTable, cluster: str, part: str | None = None) -> int | None:
        """The number that the last `replace` of this cluster's rows, or of a part of them, was given."""
        return self.numbers(table, cluster, [part])[part]

    def numbers(
        self, table: LakeTable, cluster: str, parts: Iterable[str | None]
    ) -> dict[str | None, int | None]:
        """The same for several parts, of one state of the table."""
        delta = self.open(table)
        names = {part: _MADE + cluster + ("" if part is None else f": {part}") for part in parts}
        return {part: delta.transaction_version(name) for part, name in names.items()}

    def delete(self, table: LakeTable, cluster: str, where: str) -> None:
        """Deletes rows of a cluster that meet a condition in SQL; rewrites only files with such rows.

        Rows of derived tables that the floor protects stay.
        """
        condition = f"{CLUSTER} = {quoted(cluster)} AND ({where})"
        if table.layer in _DERIVED and ends(table):
            floor = floor_of(self.open(table), cluster)
            condition += f" AND {young_in_sql(table, floor)}" if floor is not None else ""
        self._change(table, lambda delta: delta.delete(condition, writer_properties=_writing(table)))

    def update(self, table: LakeTable, cluster: str, where: str, values: Mapping[str, str]) -> None:
        """Sets columns of the rows of a cluster that meet a condition in SQL to other texts."""
        condition = f"{CLUSTER} = {quoted(cluster)} AND ({where})"
        updates = {column: quoted(text) for column, text in values.items()}
        self._change(
            table, lambda delta: delta.update(updates, predicate=condition, writer_properties=_writing(table))
        )

    def _change(self, table: LakeTable, change: Callable[[DeltaTable], T]) -> T:
        """Makes a change once more if another commit came between: it may have added or taken out rows."""
        for left in reversed(range(_ATTEMPTS)):
            try:
                return change(self.open(table))
            except CommitFailedError:
                if not left:
                    raise
        raise AssertionError("there was no attempt")

    def files(self, table: LakeTable, cluster: str) -> list[Place]:
        """The files that hold the rows of a cluster."""
        return [self.path(table) / name for name in _files(self.open(table), cluster)["path"].to_pylist()]

    def all_files(self, table: LakeTable) -> list[Place]:
        """The files that hold the rows of all clusters."""
        delta = self._existing(table)
        names = pa.table(delta.get_add_actions(flatten=True))["path"].to_pylist() if delta is not None else []
        return [self.path(table) / name for name in sorted(names)]

    def dataset(self, table: LakeTable) -> "Dataset":
        """The rows of all clusters, not read yet, with all columns that are declared today."""
        from pyarrow.dataset import InMemoryDataset  # noqa: PLC0415 - Arrow's datasets load pandas.

        delta = self._existing(table)
        if delta is None:
            return InMemoryDataset(table.schema.empty_table())
        stored = delta.to_pyarrow_dataset()
        later = [field for field in table.schema if field.name not in stored.schema.names]
        return stored.replace_schema(pa.schema([*stored.schema, *later]))

    def snapshot(self, table: LakeTable, cluster: str) -> Snapshot:
        """The files of a cluster, and the version of the table that has them."""
        delta = self.open(table)
        files = _files(delta, cluster)
        paths = tuple(self.path(table) / name for name in sorted(files["path"].to_pylist()))
        return Snapshot(delta.version(), paths, int(sum(files["num_records"].to_pylist())))

    def files_by(self, table: LakeTable, cluster: str, column: str) -> dict[str, list[Place]]:
        """The files of a cluster by the value of a column that the table is divided by, in order."""
        by_value: dict[str, list[Place]] = {}
        delta = self._existing(table)
        files = _files(delta, cluster) if delta is not None else pa.table({})
        if files.num_rows:
            for value, name in zip(files[f"partition.{column}"], files["path"].to_pylist(), strict=True):
                by_value.setdefault(str(value), []).append(self.path(table) / name)
        return {value: sorted(by_value[value]) for value in sorted(by_value)}

    def fragments(self, table: LakeTable, cluster: str) -> int:
        """The number of small files of a cluster."""
        return sum(size < _SMALL for size in _files(self.open(table), cluster)["size_bytes"].to_pylist())

    def count(self, table: LakeTable, cluster: str, where: pc.Expression | None = None) -> int:
        """The number of rows of a cluster, from the table's log; with a condition, its columns are read."""
        delta = self._existing(table)
        count = 0 if delta is None else int(sum(_files(delta, cluster)["num_records"].to_pylist()))
        if delta is None or not count or where is None:
            return count
        wanted = (pc.field(CLUSTER) == cluster) & where
        return int(delta.to_pyarrow_dataset().scanner([CLUSTER], wanted).count_rows())

    def size(self, table: LakeTable, cluster: str) -> int:
        """The bytes of the files of a cluster, from the table's log."""
        delta = self._existing(table)
        return 0 if delta is None else int(sum(_files(delta, cluster)["size_bytes"].to_pylist()))

    def rows(
        self,
        table: LakeTable,
        cluster: str,
        where: pc.Expression | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """Rows of a cluster in memory: for small tables, few columns, or a condition that few rows meet."""
        delta = self._existing(table)
        if delta is None or not _files(delta, cluster).num_rows:
            empty = table.schema.empty_table()  # Arrow's datasets load pandas.
            return empty if columns is None else empty.select(columns)
        wanted = pc.field(CLUSTER) == cluster
        dataset = delta.to_pyarrow_dataset()
        names = table.schema.names if columns is None else list(columns)
        rows = dataset.to_table(
            columns=[name for name in names if name in dataset.schema.names],
            filter=wanted if where is None else wanted & where,
        )
        for name in names:
            if name not in rows.column_names:  # It was declared later, and nobody has added it yet.
                rows = rows.append_column(
                    table.schema.field(name), pa.nulls(len(rows), table.schema.field(name).type)
                )
        return rows.select(names)

    def has_rows(self, table: LakeTable, cluster: str, where: pc.Expression) -> bool:
        """Whether any row of a cluster meets a condition. It reads the columns of the condition only."""
        delta = self._existing(table)
        if delta is None or not _files(delta, cluster).num_rows:
            return False
        wanted = (pc.field(CLUSTER) == cluster) & where
        batches = delta.to_pyarrow_dataset().scanner([CLUSTER], wanted).to_batches()
        return any(batch.num_rows for batch in batches)

    def bounds(self, table: LakeTable, cluster: str, column: str) -> tuple[Any, Any]:
        """The least and the greatest value of a column; None if there is none.

        The table's log has them of columns that files are searched by; of others, the column is read.
        """
        found: list[Any] = []
        delta = self._existing(table)
        files = _files(delta, cluster) if delta is not None else pa.table({})
        if column in table.searched and f"max.{column}" in files.column_names:
            found = [*files[f"min.{column}"].to_pylist(), *files[f"max.{column}"].to_pylist()]
        elif delta is not None and files.num_rows:
            rows = delta.to_pyarrow_dataset().scanner([column], pc.field(CLUSTER) == cluster)
            for batch in rows.to_batches():
                found += pc.min_max(batch[column]).as_py().values()
        known = [value for value in found if value is not None]
        return min(known, default=None), max(known, default=None)

    def tally(self, table: LakeTable, cluster: str, column: str) -> dict[str, int]:
        """The number of rows of a cluster for each value of a column with few values."""
        rows = self.open(table).to_pyarrow_dataset().scanner([column], pc.field(CLUSTER) == cluster)
        counts: Counter[str] = Counter()
        for batch in rows.to_batches():
            for value in batch[column].value_counts().to_pylist():
                counts[value["values"]] += value["counts"]
        return dict(counts)

    def clusters(self, table: LakeTable) -> list[str]:
        """Names of all clusters that have rows."""
        delta = self._existing(table)
        if delta is None:
            return []
        adds = pa.table(delta.get_add_actions(flatten=True))
        return sorted(set(adds[_PARTITION].to_pylist())) if _PARTITION in adds.column_names else []

    def discard(self, table: LakeTable, files: Sequence[NewFile]) -> None:
        """Deletes files that no commit names and that are not needed after all."""
        for file in files:
            (self.path(table) / file.path).unlink(missing_ok=True)

    def compact(self, table: LakeTable, cluster: str) -> None:
        """Merges small files of a cluster. The rows stay the same."""
        self.open(table).optimize.compact(
            partition_filters=[(CLUSTER, "=", cluster)], writer_properties=_writing(table)
        )

    def sweep(self, older_than: timedelta = A_DAY, replaced: timedelta = AN_HOUR) -> list[Place]:
        """Deletes files of killed runs, and files that were replaced. Returns what it deleted.

        `older_than`: age of files that no table names. It must be longer than any run takes, for the files
        of a running one are not named yet. `replaced`: age of replaced files; a reader may still use them.
        """
        hours = max(1, round(older_than / AN_HOUR))
        gone: list[Place] = []
        for table in STORED.values():
            path = self.path(table)
            if not (path / "_delta_log").is_dir():
                continue
            delta = self._delta(table)
            stale = {*delta.vacuum(round(replaced / AN_HOUR), enforce_retention_duration=False)}
            stale |= {*delta.vacuum(hours, enforce_retention_duration=False, full=True)}
            for name in sorted(stale):
                if (path / name).exists():
                    (path / name).unlink(missing_ok=True)
                    gone.append(path / name)
        return gone + self._sweep_unfinished(hours)

    def _sweep_unfinished(self, hours: int) -> list[Place]:
        """Deletes folders that Spark was writing into, and drafts of journal pages and of commits.

        Delta's own vacuum skips folders whose names begin with `_`, the log of the table among them.
        """
        limit = time.time() - hours * 3600
        left: list[Place] = []
        for pattern in _LEFT if isinstance(self.root, Path) else (*_LEFT, *_LEFT_ON_HDFS):
            left += self.root.glob(pattern)
        stale = [path for path in left if newest_change(path) < limit]
        for path in stale:
            if path.is_dir():
                remove_folder(path)
            else:
                path.unlink(missing_ok=True)
        return stale


def storage_options(path: Place) -> dict[str, str] | None:
    """What deltalake needs to know of a place beside its URL."""
    return s3_settings() if not isinstance(path, Path) and path.scheme == "s3a" else None


def plain(name: str) -> str:
    """A name of a cluster that can be a folder: characters that ids of clusters do not have become `_`."""
    return _NOT_IN_IDS.sub("_", name)[:_LONGEST_NAME] or "_"


def quoted(value: str) -> str:
    """A string literal of SQL."""
    return "'" + value.replace("'", "''") + "'"


def _write(
    delta: DeltaTable, table: LakeTable, files: Sequence[NewFile], marks: list[Transaction], **how: Any
) -> None:
    """One commit, which also has the marks."""
    delta.create_write_transaction(
        [
            AddAction(
                file.path,
                file.size,
                {CLUSTER: file.cluster, **file.within},
                file.written_ms,
                True,
                file.statistics,
            )
            for file in files
        ],
        schema=delta.schema(),
        partition_by=list(table.partitions),
        commit_properties=CommitProperties(app_transactions=marks),
        **how,
    )


def _writing(table: LakeTable) -> WriterProperties:
    """Writes files as Kelpie's writer does: with bounds of searched columns only.

    Arrow cannot compare its strings with deltalake's, and fails on a file that has bounds of strings.
    """
    no_bounds = ColumnProperties(statistics_enabled="NONE")
    others = [column.name for column in table.in_files if column.name not in table.searched]
    return WriterProperties(compression="ZSTD", column_properties=dict.fromkeys(others, no_bounds))


def _files(delta: DeltaTable, cluster: str) -> pa.Table:
    """The files of a cluster, from the table's log."""
    adds = pa.table(delta.get_add_actions(flatten=True))
    if _PARTITION not in adds.column_names:
        return pa.table({name: [] for name in ("path", "num_records", "size_bytes")})
    return adds.filter(pc.field(_PARTITION) == cluster)


def _statistics(table: LakeTable) -> dict[str, str]:
    """Which columns have bounds. If deltalake expects bounds that a file lacks, it skips the file."""
    return {"delta.dataSkippingStatsColumns": ",".join(table.searched)}


def _missing(delta: DeltaTable, table: LakeTable) -> list[Field]:
    known = {field.name for field in delta.schema().fields}
    new = pa.schema([field for field in table.schema if field.name not in known])
    return list(Schema.from_arrow(new).fields) if len(new) else []
