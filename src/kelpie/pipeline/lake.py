"""Delta tables in a folder: made as declared, written exactly once by batch, read by anyone who knows Delta.

Files are Parquet. Tasks write them into the table's folder (`parquet.py`), or Spark does (`frames.py`), and
the driver adds them in one commit, with the id of an application and a version: a batch that was committed
before is not committed again, whoever runs it. Delta inside Spark would do the same, at the price of several
Spark jobs for every look at a table.

The folder must be one that the driver and all executors see under the same path.
"""

import shutil
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.schema import Field, Schema
from deltalake.transaction import AddAction

from kelpie.pipeline.parquet import NewFile
from kelpie.pipeline.tables import TABLES, Table
from kelpie.pipeline.tables.table import CLUSTER

_SETTINGS = {"delta.checkpointInterval": "50", "delta.enableDeletionVectors": "false"}
_PARTITION = f"partition.{CLUSTER}"
UNFINISHED, STAGING = "_written-", "_staging"
"""Names of folders: what Spark is writing for a table, and what several tables are made of."""
A_DAY = timedelta(days=1)


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

    def replace(self, table: Table, cluster: str, files: Sequence[NewFile]) -> None:
        """All rows of a cluster at once: readers see the old ones or the new ones."""
        delta = self.open(table)
        delta.create_write_transaction(
            list(map(_added, files)),
            mode="overwrite",
            schema=delta.schema(),
            partition_by=[CLUSTER],
            partition_filters=[(CLUSTER, "=", cluster)],
        )

    def files(self, table: Table, cluster: str) -> list[Path]:
        """Where the rows of a cluster are."""
        return [self.path(table) / name for name in self._known(table, cluster)["path"].to_pylist()]

    def count(self, table: Table, cluster: str) -> int:
        """How many rows a cluster has; no file is opened for it."""
        return int(sum(self._known(table, cluster)["num_records"].to_pylist()))

    def rows(self, table: Table, cluster: str, where: pc.Expression | None = None) -> pa.Table:
        """Rows of a cluster, for tables that are small, or a condition that few rows meet."""
        wanted = pc.field(CLUSTER) == cluster
        return (
            self.open(table).to_pyarrow_dataset().to_table(filter=wanted if where is None else wanted & where)
        )

    def clusters(self, table: Table) -> list[str]:
        """Whose rows there are."""
        adds = pa.table(self.open(table).get_add_actions(flatten=True))
        return sorted(set(adds[_PARTITION].to_pylist())) if _PARTITION in adds.column_names else []

    def _known(self, table: Table, cluster: str) -> pa.Table:
        adds = pa.table(self.open(table).get_add_actions(flatten=True))
        if _PARTITION not in adds.column_names:
            return pa.table({"path": pa.array([], pa.string()), "num_records": pa.array([], pa.int64())})
        return adds.filter(pc.field(_PARTITION) == cluster)

    def discard(self, table: Table, files: Sequence[NewFile]) -> None:
        """Files that are not wanted after all, and that no commit knows."""
        for file in files:
            (self.path(table) / file.path).unlink(missing_ok=True)

    def compact(self, table: Table, cluster: str) -> None:
        """Many small files of a cluster into few; the rows stay as they are."""
        self.open(table).optimize.compact(partition_filters=[(CLUSTER, "=", cluster)])

    def sweep(self, older_than: timedelta = A_DAY) -> list[Path]:
        """Remove what killed runs wrote and no table knows; what was removed.

        `older_than` must be longer than any run takes: a run that goes on has files that no table knows yet.
        """
        hours = max(1, round(older_than / timedelta(hours=1)))
        gone: list[Path] = []
        for table in TABLES.values():
            path = self.path(table)
            if not (path / "_delta_log").is_dir():
                continue
            stale = DeltaTable(str(path)).vacuum(hours, enforce_retention_duration=False, full=True)
            for name in stale:
                (path / name).unlink(missing_ok=True)
                gone.append(path / name)
        return gone + self._sweep_unfinished(hours)

    def _sweep_unfinished(self, hours: int) -> list[Path]:
        """Folders that Spark was writing into. Delta does not look into those whose names begin with `_`."""
        limit = time.time() - hours * 3600
        left = [*self.root.glob(f"*/*/{UNFINISHED}*"), *self.root.glob(f"{STAGING}/*")]
        stale = [folder for folder in left if folder.stat().st_mtime < limit]
        for folder in stale:
            shutil.rmtree(folder, ignore_errors=True)
        return stale


def _added(file: NewFile) -> AddAction:
    return AddAction(file.path, file.size, {CLUSTER: file.cluster}, file.written_ms, True, file.statistics)


def _statistics(table: Table) -> dict[str, str]:
    """Which columns have bounds: where others have none, deltalake thinks that a file has no such rows."""
    return {"delta.dataSkippingStatsColumns": ",".join(table.searched)}


def _missing(delta: DeltaTable, table: Table) -> list[Field]:
    known = {field.name for field in delta.schema().fields}
    new = pa.schema([field for field in table.schema if field.name not in known])
    return list(Schema.from_arrow(new).fields) if len(new) else []
