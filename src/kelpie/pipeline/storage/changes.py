"""What has changed in a table since an earlier version of it: the files that came, and those that went.

Files of a Delta table never change, and its log says of each commit which files it added and removed. A
commit that only puts files together, as compaction does, says that it changes no data (`dataChange`); it is
left out, so old rows never look new. So is a commit that takes out rows because they are old: what they told
still holds. A commit that deletes rows for another reason writes the other rows of the same files again: then
the difference of all rows that came and all rows that went is what has changed.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from kelpie.pipeline.storage.exchange import AGED
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import LakeTable
from kelpie.pipeline.tables.table import CLUSTER
from kelpie.places import Place


@dataclass(frozen=True, slots=True)
class Changes:
    came: tuple[Place, ...] = ()
    went: tuple[Place, ...] = ()
    """Empty: rows were added, and nothing else."""
    rows: int = 0
    """In the files that came."""

    def __bool__(self) -> bool:
        return bool(self.came or self.went)


def changes(lake: Lake, table: LakeTable, cluster: str, *, since: int, until: int) -> Changes | None:
    """Of one cluster, between two versions. None: the table no longer knows.

    The log of a table is kept for a day, and files that were replaced for an hour.
    """
    folder = lake.path(table)
    came: dict[str, int] = {}
    went: dict[str, None] = {}
    for version in range(since + 1, until + 1):
        page = folder / "_delta_log" / f"{version:020}.json"
        if not page.exists():
            return None
        actions = [json.loads(line) for line in page.read_text().splitlines()]
        if any(action.get("commitInfo", {}).get(AGED) for action in actions):
            continue
        for action in actions:
            added, removed = action.get("add"), action.get("remove")
            if _counts(added, cluster):
                came[unquote(added["path"])] = _rows(added)
            elif _counts(removed, cluster):
                name = unquote(removed["path"])
                if name in came:
                    del came[name]
                else:
                    went[name] = None
    files = Changes(
        tuple(folder / name for name in came), tuple(folder / name for name in went), sum(came.values())
    )
    return files if all(path.exists() for path in (*files.came, *files.went)) else None


def _counts(action: dict[str, Any] | None, cluster: str) -> bool:
    if action is None or not action["dataChange"]:
        return False
    return bool((action.get("partitionValues") or {}).get(CLUSTER) == cluster)


def _rows(added: Mapping[str, Any]) -> int:
    return int(json.loads(added.get("stats") or "{}").get("numRecords", 0))
