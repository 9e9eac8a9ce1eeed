"""The history in the offsets topic, read by Fetch from its leaders: commits, generations, removed groups.

Each partition is read backwards from its end, in windows of offsets. Reading stops when the allowed bytes are
used up, or when the time asked for or the beginning is reached. The size of records counts when they are
inflated, and of small ones their number. The windows are put in order before their records are decoded.

Nothing fails as a whole. A partition that has no leader, may not be read, or whose broker does not answer is
an `Unasked` row of kind "history"; so is the part of a partition that was not read. A broker that holds us
back by a quota is not asked for more.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kelpie.client.admin.topics import best_views
from kelpie.client.client_errors import ClientError, Throttled
from kelpie.client.kept_history import KeptHistory, Leadership, Window
from kelpie.client.nodes import Nodes
from kelpie.client.offsets_topic import ask_offsets, ask_records, ask_views
from kelpie.errors import ErrorCode, describe
from kelpie.model.names import TopicPartition
from kelpie.model.partitioning import partition_for
from kelpie.model.time import Instant
from kelpie.observations import OFFSETS_TOPIC, Observations, PartitionView, Unasked
from kelpie.observations.group_offsets import GroupCommits
from kelpie.observations.offsets_topic import OffsetsPartition, Placed, add_row, cost_of
from kelpie.questions.list_offsets import EARLIEST, LATEST
from kelpie.wire.api.list_offsets import ListOffsetsRequest
from kelpie.wire.malformed import Malformed, TooLarge
from kelpie.wire.records import read_batches

BYTES_PER_PARTITION = 2 * 1024 * 1024
_AT_ONCE = 8
"""Fetches under way to one broker."""
_FIRST_WINDOW = 4096
_GROWTH = 8
_FETCH_BYTES = 1024 * 1024
_LARGEST_BATCH = 64 * 1024 * 1024
_NONE = -1
"""In place of an offset: there is no such record."""
_NOT_ALLOWED = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


class _PartitionRefused(Exception):
    """Why one partition cannot be read."""


async def read_history(
    nodes: Nodes,
    seen: Observations | None = None,
    max_bytes_per_partition: int = BYTES_PER_PARTITION,
    *,
    partitions: Iterable[int] | None = None,
    groups: Iterable[str] | None = None,
    since: Instant | None = None,
    by_request: bool = False,
    kept: KeptHistory | None = None,
) -> Observations:
    """Rows of the ends of offsets partitions: all of them, or those named, or those of the groups named.

    `seen` is a survey, which names the leaders; without it, brokers are asked. With `groups`, only rows of
    these groups are returned. `since` leaves out what is older, where brokers know times (0.10.1 and later).
    `by_request`: commits are `group_commits`, as far as each was read so. `kept`: what an earlier call has
    read of the same cluster is not read again; it goes without `since`.
    """
    rows = Observations()
    views = await _views(nodes, seen, rows)
    only = None if groups is None else frozenset(groups)
    wanted = set(views if partitions is None and only is None else partitions or ())
    if only is not None and views:
        wanted |= {partition_for(group, max(views) + 1) for group in only}
    leaders = {number: Leadership(view.leader, view.leader_epoch) for number, view in views.items()}
    reader = _Reader(nodes, max_bytes_per_partition, since, only, leaders, kept)
    by_leader: dict[int, list[int]] = defaultdict(list)
    for partition in sorted(wanted):
        view = views.get(partition)
        if view is None or view.leader < 0:
            reason = "It has no leader." if view is not None else "No broker knows it."
            rows.unasked.append(Unasked("history", _name(partition), reason))
        else:
            by_leader[view.leader].append(partition)
    read = await asyncio.gather(*(reader.leader(node, numbers) for node, numbers in by_leader.items()))
    rows.add(*read)
    return rows if by_request else rows.by_partition()


async def _views(nodes: Nodes, seen: Observations | None, rows: Observations) -> dict[int, PartitionView]:
    """The leader of each offsets partition: from the survey, or asked."""
    surveyed = [] if seen is None else [row for row in seen.partitions if row.topic == OFFSETS_TOPIC]
    if surveyed:
        return {name.partition: view for name, view in best_views(surveyed).items()}
    try:
        return await ask_views(nodes)
    except ClientError as error:
        rows.unasked.append(Unasked("history", OFFSETS_TOPIC, error.reason))
        return {}


@dataclass(slots=True)
class _Reader:
    """Reads partitions, each on its own, a few at a time from each broker."""

    _nodes: Nodes
    _most_bytes: int
    _since: Instant | None
    _groups: frozenset[str] | None
    _leaders: Mapping[int, Leadership] = field(default_factory=dict)
    """By partition."""
    _kept: KeptHistory | None = None
    _topic_names: dict[bytes, str] = field(default_factory=dict)
    _throttled: dict[int, str] = field(default_factory=dict)
    """Brokers that hold us back, and what to say of it."""

    async def leader(self, node: int, partitions: Sequence[int]) -> Observations:
        """All partitions of one leader. If the leader does not answer, none of them is read."""
        rows = Observations()
        try:
            versions = await self._nodes.versions(node)
            begins = await self._ends(node, partitions, EARLIEST)
            ends = await self._ends(node, partitions, LATEST)
            if self._since is not None and versions.speaks(ListOffsetsRequest, at_least=1):
                for partition, later in (await self._ends(node, partitions, self._since)).items():
                    if isinstance(later, int) and later < 0:
                        begins[partition] = ends[partition]  # Everything is older.
                    elif isinstance(later, int):
                        begins[partition] = later
        except ClientError as error:
            rows.unasked += [Unasked("history", _name(partition), error.reason) for partition in partitions]
            return rows
        under_way = asyncio.Semaphore(_AT_ONCE)

        async def one(partition: int) -> Observations:
            async with under_way:
                begin, end = begins[partition], ends[partition]
                if node in self._throttled and begin != end:
                    begin = self._throttled[node]
                return await self._partition(node, partition, begin, end)

        return rows.add(*await asyncio.gather(*map(one, partitions)))

    async def _ends(self, node: int, partitions: Sequence[int], timestamp: int) -> dict[int, int | str]:
        """Offsets by partition, or why there is none."""
        ends: dict[int, int | str] = dict.fromkeys(partitions, "The broker did not answer for it.")
        for partition, row in (await ask_offsets(self._nodes, node, partitions, timestamp)).items():
            ends[partition] = _reason(row.error) if row.error else _NONE if row.offset is None else row.offset
        return ends

    async def _partition(self, node: int, partition: int, begin: int | str, end: int | str) -> Observations:
        rows = Observations()
        source = f"{self._nodes.name_of(node)}, {_name(partition)}"
        try:
            if isinstance(begin, str) or isinstance(end, str):
                raise _PartitionRefused(begin if isinstance(begin, str) else end)
            windows = await self._new_and_kept(node, partition, begin, end)
        except (ClientError, _PartitionRefused) as error:
            if isinstance(error, Throttled):
                self._throttled[node] = error.reason
            rows.unasked.append(Unasked("history", _name(partition), str(error), source=source))
            return rows
        first = windows[-1].start if windows else end
        if first > begin:
            reason = f"Only its end was read: offsets {first} to {end} of {begin} to {end}."
            rows.unasked.append(Unasked("history", _name(partition), reason, source=source))
        reading = OffsetsPartition(self._topic_names)
        for window in reversed(windows):
            for piece in window.pieces:
                for read in reading.read_runs(piece, source):
                    self._add(rows, read, partition)
        rows.pending_commits += [
            row for row in reading.pending_commits if self._groups is None or row.group in self._groups
        ]
        return rows

    async def _new_and_kept(self, node: int, partition: int, begin: int, end: int) -> list[Window]:
        """The newest first. What an earlier look has read is not read again."""
        if self._kept is None:
            return await self._windows(node, partition, begin, end)
        known_until, known = self._kept.windows(partition, self._leaders[partition], end)
        windows = await self._windows(node, partition, max(begin, known_until), end)
        read_from = windows[-1].start if windows else end
        if read_from <= known_until:
            windows += known
        self._kept.keep(partition, self._leaders[partition], end, windows, self._most_bytes)
        return windows

    async def _windows(self, node: int, partition: int, begin: int, end: int) -> list[Window]:
        """The newest first."""
        windows: list[Window] = []
        left, length, until = self._most_bytes, _FIRST_WINDOW, end
        while until > begin and left > 0 and length > 0:
            start = max(begin, until - length)
            window = await self._window(node, partition, start, until, left)
            if window is None:
                if windows:
                    break
                length //= _GROWTH  # Not even the newest window fits: a smaller one.
                continue
            windows.append(window)
            left -= window.cost
            density = max(window.cost, 1) / max(until - start, 1)
            length = min(length * _GROWTH, int(left / density))
            until = start
        return windows

    async def _window(self, node: int, partition: int, start: int, until: int, left: int) -> Window | None:
        """None: it is larger than what is left."""
        window = Window(start)
        offset, largest = start, _FETCH_BYTES
        while offset < until:
            data = await ask_records(self._nodes, node, partition, offset, largest)
            if data.error:
                raise _PartitionRefused(_reason(data.error))
            try:
                whole, following, cost = _whole(data.records, until, left)
            except TooLarge:
                return None
            if following is None:
                if not data.records or largest >= _LARGEST_BATCH:
                    break  # Compaction has left nothing between here and the end.
                largest *= _GROWTH  # Up to version 2 a batch that does not fit is cut off.
                continue
            left -= cost
            window.cost += cost
            window.pieces.append(whole)
            offset = max(following, offset + 1)
        return window

    def _add(self, rows: Observations, read: Placed | GroupCommits, partition: int) -> None:
        if isinstance(read, GroupCommits):
            if self._groups is None or read.group in self._groups:
                rows.group_commits.append(read)
                if read.group not in rows.known_groups:
                    rows.known_groups[read.group] = read.source
        elif isinstance(read.row, Unasked):
            rows.unasked.append(Unasked("history", _name(partition), read.row.reason, source=read.row.source))
        elif self._groups is None or read.row.group in self._groups:
            add_row(rows, read.row)


def _whole(records: bytes, until: int, most: int) -> tuple[bytes, int | None, int]:
    """The whole batches at the beginning, up to an offset, the offset behind them, and their cost.

    Raises TooLarge when their records come to more than so many bytes.
    """
    end, following, cost = 0, None, 0
    try:
        for batch in read_batches(records, crc=False):
            if following is not None and following >= until:
                break
            end, following = batch.position + batch.size, batch.header.next_offset
            cost += cost_of(batch, most - cost)
    except TooLarge:
        raise
    except Malformed:
        end = len(records)  # The decoder of the batches will say what is wrong.
        cost = max(cost, end)
        if cost > most:
            raise TooLarge("a broken batch", offset=0) from None
    return records[:end], following, cost


def _reason(code: int) -> str:
    if code in _NOT_ALLOWED:
        return f"It may not be read ({describe(code)}): that needs the right to read {OFFSETS_TOPIC}."
    return f"The broker answered {describe(code)}."


def _name(partition: int) -> str:
    return str(TopicPartition(OFFSETS_TOPIC, partition))
