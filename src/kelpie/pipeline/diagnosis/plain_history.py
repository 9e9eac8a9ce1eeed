"""What outputs of tools are dated by, of few records, without Spark. `history` says the same to Spark.

A small run would wait for two queries longer than for all else that it does before its tables.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from kelpie.pipeline.ordering import is_of
from kelpie.pipeline.standing import counted, once
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import TABLES

Position = tuple[str, str, int]
Row = dict[str, Any]
_PLACE = [("offsets_partition", "ascending"), ("log_offset", "ascending")]


class PlainHistory:
    """The records of one cluster, if the driver can hold them."""

    def __init__(self, lake: Lake, cluster: str) -> None:
        self._lake, self._cluster = lake, cluster
        files = lake.rows(TABLES["evidence_file"], cluster, columns=["path", "source"])
        self._names = dict(zip(files["path"].to_pylist(), files["source"].to_pylist(), strict=True))

    def changes(self, shown: Iterable[tuple[str, str, int, int]]) -> Iterator[Row]:
        """The commits at which a position reached or left an offset that is shown, and its first commit."""
        offsets: dict[Position, set[int]] = {}
        for group, topic, partition, offset in shown:
            offsets.setdefault((group, topic, partition), set()).add(offset)
        wanted = is_of({group for group, _, _ in offsets})
        rows = self._lake.rows(TABLES["offset_commit"], self._cluster, wanted)
        markers = self._lake.rows(TABLES["transaction_marker"], self._cluster)
        return _changes(self._in_order(counted(rows, markers)), offsets)

    def records(self, groups: Collection[str]) -> Iterator[Row]:
        """Records of groups, all of which have a time, in the order of the log."""
        rows = self._lake.rows(TABLES["group_metadata"], self._cluster, is_of(groups))
        return ({**row, "at": row["written"]} for row in self._in_order(rows))

    def _in_order(self, rows: pa.Table) -> Iterator[Row]:
        for row in once(rows).sort_by(_PLACE).to_pylist():
            yield {**row, "source": self._names.get(row["source"], row["source"])}


def _changes(commits: Iterable[Row], shown: Mapping[Position, set[int]]) -> Iterator[Row]:
    before: dict[Position, int | None] = {}
    for row in commits:
        position, offset = (row["group"], row["topic"], row["partition"]), row["offset"]
        wanted = shown.get(position)
        if wanted is None:
            continue
        is_first, last = position not in before, before.get(position)
        before[position] = offset
        if is_first or (offset != last and (offset in wanted or last in wanted)):
            yield {**row, "at": row["written"] if row["committed"] is None else row["committed"]}
