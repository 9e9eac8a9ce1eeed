"""Commits of many groups as runs: what a group committed at one time is one row.

The doctor makes rows of single partitions when a rule asks for them, which hardly any does of a healthy group
(`doctor.group_positions`). So here columns are cut into runs, and no row is made either: of 1,000 groups
with four partitions, rules may read 800,000 commits.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import OFFSETS_TOPIC
from kelpie.observations.group_offsets import GroupCommits
from kelpie.observations.positions import NO_OFFSET
from kelpie.pipeline.ordering import keys, milliseconds, numbers

_NO_EPOCH = -1
_NO_TIME = -(1 << 62)


def commit_runs(rows: pa.Table) -> dict[str, list[GroupCommits]]:
    """By group, in the order of the log. `rows`: of recent_commit; none of them has an expiry."""
    if not rows.num_rows:
        return {}
    # Dictionaries differ from file to file; numbers of groups and positions do not.
    group, position = keys(rows, ["group"]), keys(rows, ["topic", "partition"])
    order = np.lexsort((numbers(rows["log_offset"]), numbers(rows["offsets_partition"]), group))
    rows, group, position = rows.take(pa.array(order)), group[order], position[order]
    columns = _Columns(rows, position)
    at, home = milliseconds(rows["committed"], _NO_TIME), numbers(rows["offsets_partition"])
    is_transactional = np.asarray(rows["is_transactional"].combine_chunks().fill_null(False))
    is_first = np.zeros(rows.num_rows, bool)
    is_first[0] = True
    for column in (group, home, at, is_transactional):
        is_first[1:] |= column[1:] != column[:-1]
    starts = np.flatnonzero(is_first)
    names = rows["group"].take(pa.array(starts)).to_pylist()
    times: list[Instant | None] = [None if each == _NO_TIME else each for each in at[starts].tolist()]
    homes, transactional = home[starts].tolist(), is_transactional[starts].tolist()
    runs: dict[str, list[GroupCommits]] = {}
    for number, (first, end) in enumerate(pairwise([*starts.tolist(), rows.num_rows])):
        for places in columns.cut(first, end):
            run = columns.run(
                places,
                names[number],
                times[number],
                transactional[number],
                f"{OFFSETS_TOPIC}-{homes[number]}",
            )
            runs.setdefault(names[number], []).append(run)
    return runs


class _Columns:
    """What runs have of each partition. Runs with the same partitions share their names."""

    def __init__(self, rows: pa.Table, position: Any) -> None:
        self._log_offsets: list[int] = rows["log_offset"].to_pylist()
        self._offsets: list[int] = numbers(rows["offset"], NO_OFFSET).tolist()
        self._epochs: list[int] = numbers(rows["leader_epoch"], _NO_EPOCH).tolist()
        self._positions: list[int] = position.tolist()
        first = np.unique(position, return_index=True)[1]
        named = rows.select(["topic", "partition"]).take(pa.array(first)).to_pylist()
        self._names = [TopicPartition(row["topic"], row["partition"]) for row in named]
        self._shared: dict[tuple[int, ...], tuple[TopicPartition, ...]] = {}
        self._blank: dict[int, tuple[str, ...]] = {}

    def cut(self, first: int, end: int) -> Iterator[slice]:
        """A run ends where a partition comes again."""
        positions = self._positions[first:end]
        if len(set(positions)) == len(positions):
            yield slice(first, end)
            return
        seen: set[int] = set()
        for place, position in enumerate(positions, first):
            if position in seen:
                yield slice(first, place)
                first, seen = place, set()
            seen.add(position)
        yield slice(first, end)

    def run(
        self, places: slice, group: str, at: Instant | None, transactional: bool, home: str
    ) -> GroupCommits:
        positions = tuple(self._positions[places])
        names = self._shared.get(positions)
        if names is None:
            names = self._shared[positions] = tuple(self._names[each] for each in positions)
        blank = self._blank.setdefault(len(names), ("",) * len(names))
        offsets, epochs = tuple(self._offsets[places]), tuple(self._epochs[places])
        numbers = self._log_offsets[places]
        return GroupCommits(group, names, offsets, epochs, blank, blank, at, transactional, home, numbers)


def with_expiry(rows: pa.Table) -> Sequence[str]:
    """Groups with a commit that has an expiry time. Only very old clients set one."""
    found: list[str] = rows.filter(pc.field("previous_expires").is_valid())["group"].unique().to_pylist()
    return found
