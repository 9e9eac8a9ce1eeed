"""Groups that each play a scene of their own, and one query for all of them: plans cost more than rows."""

from collections.abc import Callable, Iterable
from typing import Any

Rows = list[dict[str, Any]]


class Scenes:
    """Rows by table, a group for each test; each group has a partition of the offsets topic to itself."""

    def __init__(self) -> None:
        self._tables: dict[str, Rows] = {}
        self._groups: dict[str, int] = {}

    def add(self, group: str, **tables: Iterable[dict[str, Any]]) -> str:
        """Rows of a group, by table; returns its name."""
        partition = self._groups.setdefault(group, len(self._groups))
        for table, rows in tables.items():
            own = {"group": group} | ({"offsets_partition": partition} if table in _OF_TOPIC else {})
            self._tables.setdefault(table, []).extend({**row, **own} for row in rows)
        return group

    def rows(self, table: str) -> Rows:
        return self._tables.get(table, [])


_OF_TOPIC = ("group_metadata", "offset_commit")


def by_group(rows: Iterable[Any], order: Callable[[dict[str, Any]], Any]) -> dict[str, Rows]:
    """Rows that came out, by group, in this order."""
    found: dict[str, Rows] = {}
    for row in sorted((row.asDict(recursive=True) for row in rows), key=order):
        found.setdefault(row["group"], []).append(row)
    return found
