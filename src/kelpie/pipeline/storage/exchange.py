"""One commit that takes some files out of a Delta table and puts others in.

deltalake replaces whole partitions, or reads and rewrites all files that may hold a row. Retention knows from
the log of the table which files are old as a whole, and reads none of these. So the page of the log is
written here, as Delta's protocol says, under a name that only one writer gets.
"""

import json
import time
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError

from kelpie.pipeline.storage.parquet import NewFile
from kelpie.pipeline.tables.table import CLUSTER
from kelpie.places import Place
from kelpie.places.place import create_exclusively

AGED = "kelpie.aged"
"""In the information of a commit: rows went because they were old. For whoever follows, nothing is new."""
_ATTEMPTS = 20
DRAFT = ".draft-"
"""How the names of pages begin that are not complete."""


def exchange(
    delta: DeltaTable,
    folder: Place,
    *,
    remove: Sequence[str],
    add: Iterable[NewFile],
    marks: Iterable[Transaction] = (),
    aged: bool = False,
) -> None:
    """`remove`: paths as the table's log has them. `aged`: see `AGED`.

    Raises CommitFailedError if another writer has taken one of them out.
    """
    now_ms = round(time.time() * 1000)
    own: list[dict[str, Any]] = [_information(now_ms, aged=aged)]
    own += [{"txn": {"appId": mark.app_id, "version": mark.version, "lastUpdated": now_ms}} for mark in marks]
    own += [_added(file) for file in add]
    for _ in range(_ATTEMPTS):
        delta.update_incremental()
        page = folder / "_delta_log" / f"{delta.version() + 1:020}.json"
        actions = [*own, *_removed(delta, remove, now_ms)]
        lines = "".join(json.dumps(action, separators=(",", ":")) + "\n" for action in actions)
        try:
            create_exclusively(page, lines.encode(), draft=DRAFT)
        except FileExistsError:
            continue  # Another writer has added something: that is no hindrance.
        return
    raise CommitFailedError(f"{folder}: others have committed {_ATTEMPTS} times meanwhile")


def _information(now_ms: int, *, aged: bool) -> dict[str, Any]:
    information: dict[str, Any] = {"timestamp": now_ms, "operation": "DELETE" if aged else "WRITE"}
    return {"commitInfo": {**information, "operationParameters": {}, "engineInfo": "kelpie", AGED: aged}}


def _added(file: NewFile) -> dict[str, Any]:
    return {
        "add": {
            "path": file.path,
            "partitionValues": {CLUSTER: file.cluster, **file.within},
            "size": file.size,
            "modificationTime": file.written_ms,
            "dataChange": True,
            "stats": file.statistics,
        }
    }


def _removed(delta: DeltaTable, paths: Sequence[str], now_ms: int) -> list[dict[str, Any]]:
    if not paths:
        return []
    files = pa.table(delta.get_add_actions(flatten=True))
    parts = [name for name in files.column_names if name.startswith("partition.")]
    known = {row["path"]: row for row in files.select(["path", "size_bytes", *parts]).to_pylist()}
    if not known.keys() >= set(paths):
        raise CommitFailedError("another writer has replaced files that were to be replaced")
    return [
        {
            "remove": {
                "path": path,
                "deletionTimestamp": now_ms,
                "dataChange": True,
                "extendedFileMetadata": True,
                "partitionValues": {
                    name.removeprefix("partition."): None
                    if known[path][name] is None
                    else str(known[path][name])
                    for name in parts
                },
                "size": known[path]["size_bytes"],
            }
        }
        for path in paths
    ]
