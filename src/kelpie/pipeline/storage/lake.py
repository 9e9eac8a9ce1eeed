"""Delta tables in a folder: made as declared, written exactly once by batch, read by anyone who knows Delta.

Files are Parquet. Tasks write them into the table's folder (`parquet.py`), or Spark does (`frames.py`), and
the driver adds them in one commit, with the id of an application and a version: a batch that was committed
before is not committed again, whoever runs it. Delta inside Spark would do the same, at the price of several
Spark jobs for every look at a table.

The folder must be one that the driver and all executors see under the same path.
"""

import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import ColumnProperties, CommitProperties, DeltaTable, Transaction, WriterProperties
from deltalake.exceptions import CommitFailedError
from deltalake.schema import Field, Schema
from deltalake.transaction import AddAction

from kelpie.pipeline.storage.parquet import NewFile
from kelpie.pipeline.tables import TABLES, Table
from kelpie.pipeline.tables.table import CLUSTER

_SETTINGS = {
    "delta.checkpointInterval": "50",
    "delta.enableDeletionVectors": "false",
    # A stream commits every few seconds, for months: yesterday's commits go when a checkpoint is made.
    "delta.logRetentionDuration": "interval 1 days",
    "delta.deletedFileRetentionDuration": "interval 1 days",
}
_PARTITION = f"partition.{CLUSTER}"
UNFINISHED, STAGING, BATCHES = "_written-", "_staging", "_batches"
"""Names of folders: what Spark is writing for a table, what several tables are made of, the journal."""
DRAFT = "draft-"
_MADE = "kelpie tables of "
_SMALL = 32 * 1024 * 1024
_ATTEMPTS = 5
A_DAY, AN_HOUR = timedelta(days=1), timedelta(hours=1)


class Lake:
    """The folder with all tables."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()

    def path(self, table: Table) -> Path:
        return self.root / table.layer / table.name

    def open(self, table: Table) -> DeltaTable:
        """The table, made if it is not there, widened if it lacks columns that were declared later."""
        path = self.path(table)
        found = DeltaTable.create(
            str(path),
            schema=table.schema,
            mode="ignore",
            name=table.name,
            description=table.meaning,
            partition_by=[CLUSTER],
            configuration={**_SETTINGS, **_statistics(table)},
        )
        missing = _missing(found, table)
        if missing:
            found.alter.add_columns(missing)
        return found

    def version_of(self, table: Table, application: str) -> int:
        """The newest batch of an application that this table has; −1 for none."""
        version = self.open(table).transaction_version(application)
        return -1 if version is None else version

    def add(self, table: Table, files: Sequence[NewFile], *, application: str, version: int) -> bool:
        """Commit files of one batch. False, and nothing done, if the batch is there already."""
        delta = self.open(table)
        known = delta.transaction_version(application)
        if known is not None and known >= version:
            return False
        delta.create_write_transaction(
            list(map(_added, files)),
            mode="append",
            schema=delta.schema(),
            partition_by=[CLUSTER],
            commit_properties=CommitProperties(app_transactions=[Transaction(application, version)]),
        )
        return True

    def replace(
        self, table: Table, cluster: str, files: Sequence[NewFile], *, made_of: int | None = None
    ) -> None:
        """All rows of a cluster at once: readers see the old ones or the new ones.

        `made_of`: a number for what they follow from; the log of the table keeps it (`made_of`).
        """
        delta = self.open(table)
        mark = [] if made_of is None else [Transaction(_MADE + cluster, made_of)]
        delta.create_write_transaction(
            list(map(_added, files)),
            mode="overwrite",
            schema=delta.schema(),
            partition_by=[CLUSTER],
            partition_filters=[(CLUSTER, "=", cluster)],
            commit_properties=CommitProperties(app_transactions=mark),
        )

    def made_of(self, table: Table, cluster: str) -> int | None:
        """What the rows of a cluster were said to follow from when they were last replaced."""
        number: int | None = self.open(table).transaction_version(_MADE + cluster)
        return number

    def delete(self, table: Table, cluster: str, where: str) -> None:
        """Rows of a cluster that meet a condition in SQL; only files that have some are written anew."""
        condition = f"{CLUSTER} = {quoted(cluster)} AND ({where})"
        self._change(table, lambda delta: delta.delete(condition, writer_properties=_writing(table)))

    def update(self, table: Table, cluster: str, where: str, values: Mapping[str, str]) -> None:
        """Give such rows other texts in some columns."""
        condition = f"{CLUSTER} = {quoted(cluster)} AND ({where})"
        updates = {column: quoted(text) for column, text in values.items()}
        self._change(
            table, lambda delta: delta.update(updates, predicate=condition, writer_properties=_writing(table))
        )

    def _change(self, table: Table, change: Callable[[DeltaTable], object]) -> None:
        for left in reversed(range(_ATTEMPTS)):
            try:
                change(self.open(table))
            except CommitFailedError:  # Somebody has added rows meanwhile: look at those, too.
                if not left:
                    raise
            else:
                return

    def files(self, table: Table, cluster: str) -> list[Path]:
        """Where the rows of a cluster are."""
        return [self.path(table) / name for name in self._known(table, cluster)["path"].to_pylist()]

    def fragments(self, table: Table, cluster: str) -> int:
        """How many files of a cluster are small."""
        return sum(size < _SMALL for size in self._known(table, cluster)["size_bytes"].to_pylist())

    def count(self, table: Table, cluster: str) -> int:
        """How many rows a cluster has; no file is opened for it."""
        return int(sum(self._known(table, cluster)["num_records"].to_pylist()))

    def rows(self, table: Table, cluster: str, where: pc.Expression | None = None) -> pa.Table:
        """Rows of a cluster, for tables that are small, or a condition that few rows meet."""
        if not self.files(table, cluster):
            return table.schema.empty_table()  # Arrow's datasets load pandas.
        wanted = pc.field(CLUSTER) == cluster
        return (
            self.open(table).to_pyarrow_dataset().to_table(filter=wanted if where is None else wanted & where)
        )

    def tally(self, table: Table, cluster: str, column: str) -> dict[str, int]:
        """How many rows of a cluster have each value of a column that has few."""
        rows = self.open(table).to_pyarrow_dataset().scanner([column], pc.field(CLUSTER) == cluster)
        found: Counter[str] = Counter()
        for batch in rows.to_batches():
            for each in batch[column].value_counts().to_pylist():
                found[each["values"]] += each["counts"]
        return dict(found)

    def clusters(self, table: Table) -> list[str]:
        """Whose rows there are."""
        adds = pa.table(self.open(table).get_add_actions(flatten=True))
        return sorted(set(adds[_PARTITION].to_pylist())) if _PARTITION in adds.column_names else []

    def _known(self, table: Table, cluster: str) -> pa.Table:
        adds = pa.table(self.open(table).get_add_actions(flatten=True))
        if _PARTITION not in adds.column_names:
            return pa.table({name: [] for name in ("path", "num_records", "size_bytes")})
        return adds.filter(pc.field(_PARTITION) == cluster)

    def discard(self, table: Table, files: Sequence[NewFile]) -> None:
        """Files that are not wanted after all, and that no commit knows."""
        for file in files:
            (self.path(table) / file.path).unlink(missing_ok=True)

    def compact(self, table: Table, cluster: str) -> None:
        """Many small files of a cluster into few; the rows stay as they are."""
        self.open(table).optimize.compact(
            partition_filters=[(CLUSTER, "=", cluster)], writer_properties=_writing(table)
        )

    def sweep(self, older_than: timedelta = A_DAY, replaced: timedelta = AN_HOUR) -> list[Path]:
        """Remove what killed runs wrote and no table knows, and what was replaced; what was removed.

        `older_than` must be longer than any run takes: a run that goes on has files that no table knows yet.
        `replaced`: so long ago; somebody may have opened the table right before, and still be reading.
        """
        hours = max(1, round(older_than / AN_HOUR))
        gone: list[Path] = []
        for table in TABLES.values():
            path = self.path(table)
            if not (path / "_delta_log").is_dir():
                continue
            delta = DeltaTable(str(path))
            stale = {*delta.vacuum(round(replaced / AN_HOUR), enforce_retention_duration=False)}
            stale |= {*delta.vacuum(hours, enforce_retention_duration=False, full=True)}
            for name in sorted(stale):
                if (path / name).exists():
                    (path / name).unlink(missing_ok=True)
                    gone.append(path / name)
        return gone + self._sweep_unfinished(hours)

    def _sweep_unfinished(self, hours: int) -> list[Path]:
        """Folders that Spark was writing into, and drafts of pages.

        Delta does not look into folders whose names begin with `_`.
        """
        limit = time.time() - hours * 3600
        left = [*self.root.glob(f"*/*/{UNFINISHED}*"), *self.root.glob(f"{STAGING}/*")]
        left += self.root.glob(f"{BATCHES}/*/{DRAFT}*")
        stale = [path for path in left if path.stat().st_mtime < limit]
        for path in stale:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        return stale


def quoted(value: str) -> str:
    """A text as SQL has it."""
    return "'" + value.replace("'", "''") + "'"


def _added(file: NewFile) -> AddAction:
    return AddAction(file.path, file.size, {CLUSTER: file.cluster}, file.written_ms, True, file.statistics)


def _writing(table: Table) -> WriterProperties:
    """Files as Kelpie writes them: with bounds of what is searched only.

    Arrow cannot compare its strings with deltalake's, and fails where a file has bounds of these.
    """
    no_bounds = ColumnProperties(statistics_enabled="NONE")
    others = [column.name for column in table.in_files if column.name not in table.searched]
    return WriterProperties(compression="ZSTD", column_properties=dict.fromkeys(others, no_bounds))


def _statistics(table: Table) -> dict[str, str]:
    """Which columns have bounds: where others have none, deltalake thinks that a file has no such rows."""
    return {"delta.dataSkippingStatsColumns": ",".join(table.searched)}


def _missing(delta: DeltaTable, table: Table) -> list[Field]:
    known = {field.name for field in delta.schema().fields}
    new = pa.schema([field for field in table.schema if field.name not in known])
    return list(Schema.from_arrow(new).fields) if len(new) else []
