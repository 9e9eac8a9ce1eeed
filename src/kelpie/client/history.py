"""The history in the offsets topic, read by Fetch from its leaders: commits, generations, removed groups.

Each partition is read from near its end: windows of offsets, the newest first, until the bytes allowed are
used up, or the time asked for, or the beginning is reached. Within a window records come in order, and the
windows are put together before anything is made of them.

Nothing fails as a whole: a partition that has no leader, may not be read, or whose broker does not answer, is
an `Unasked` row of kind "history"; so is what lies before the part that was read.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kelpie.client.admin.topics import best_views
from kelpie.client.client_errors import ClientError
from kelpie.client.nodes import Nodes
from kelpie.client.offsets_topic import EARLIEST, LATEST, ask_offsets, ask_records, ask_views
from kelpie.errors import ErrorCode, describe
from kelpie.model.names import TopicPartition
from kelpie.model.partitioning import partition_for
from kelpie.model.time import Instant
from kelpie.observations import OFFSETS_TOPIC, Observations, PartitionView, Unasked
from kelpie.observations.offsets_topic import OffsetsPartition, Row, add_row
from kelpie.wire.api.list_offsets import ListOffsetsRequest
from kelpie.wire.malformed import Malformed
from kelpie.wire.records import read_batches

BYTES_PER_PARTITION = 2 * 1024 * 1024
_AT_ONCE = 8
"""Fetches under way to one broker."""
_FIRST_WINDOW = 4096
_GROWTH = 8
_FETCH_BYTES = 1024 * 1024
_LARGEST_BATCH = 64 * 1024 * 1024
_NONE = -1
"""In place of an offset: nothing is that new."""
_NOT_ALLOWED = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


class _Refused(Exception):
    """One partition's trouble, in words."""


@dataclass(slots=True)
class _Window:
    """A stretch of a partition, whole batches in order."""

    start: int
    pieces: list[bytes] = field(default_factory=list)

    @property
    def size(self) -> int:
        return sum(map(len, self.pieces))


async def read_history(
    nodes: Nodes,
    seen: Observations | None = None,
    max_bytes_per_partition: int = BYTES_PER_PARTITION,
    *,
    partitions: Iterable[int] | None = None,
    groups: Iterable[str] | None = None,
    since: Instant | None = None,
) -> Observations:
    """Rows of the ends of offsets partitions: all of them, or those named, or those of the groups named.

    `seen` is a survey: who leads which partition is taken from there, and asked if there is none. With
    `groups` only rows of these come back. `since` spares what is older, where the broker can tell (0.10.1 and
    later).
    """
    found = Observations()
    views = await _views(nodes, seen, found)
    only = None if groups is None else frozenset(groups)
    wanted = _wanted(views, partitions, only)
    reader = _Reader(nodes, max_bytes_per_partition, since, only)
    by_leader: dict[int, list[int]] = defaultdict(list)
    for partition in wanted:
        view = views.get(partition)
        if view is None or view.leader < 0:
            reason = "It has no leader." if view is not None else "No broker knows it."
            found.unasked.append(Unasked("history", _name(partition), reason))
        else:
            by_leader[view.leader].append(partition)
    read = await asyncio.gather(*(reader.leader(node, own) for node, own in by_leader.items()))
    return found.add(*read)


async def _views(nodes: Nodes, seen: Observations | None, found: Observations) -> dict[int, PartitionView]:
    """Who leads each offsets partition. To ask for it must not create it: old brokers are asked for all."""
    rows = [] if seen is None else [row for row in seen.partitions if row.topic == OFFSETS_TOPIC]
    if not rows:
        try:
            rows = await _ask_views(nodes)
        except ClientError as error:
            found.unasked.append(Unasked("history", OFFSETS_TOPIC, error.reason))
    return {name.partition: view for name, view in best_views(rows).items()}


async def _ask_views(nodes: Nodes) -> list[PartitionView]:
    failure: ClientError | None = None
    for node in list(nodes.brokers):
        try:
            return await ask_views(nodes, node, _broker(nodes, node))
        except ClientError as error:
            failure = error
    if failure is not None:
        raise failure
    return []


def _wanted(
    views: dict[int, PartitionView], partitions: Iterable[int] | None, groups: frozenset[str] | None
) -> list[int]:
    wanted = set(views if partitions is None and groups is None else partitions or ())
    if groups is not None and views:
        wanted |= {partition_for(group, max(views) + 1) for group in groups}
    return sorted(wanted)


class _Reader:
    """Reads partitions, each on its own, a few at a time from each broker."""

    def __init__(
        self, nodes: Nodes, most_bytes: int, since: Instant | None, groups: frozenset[str] | None
    ) -> None:
        self._nodes = nodes
        self._most_bytes = most_bytes
        self._since = since
        self._groups = groups
        self._topic_names: dict[bytes, str] = {}

    async def leader(self, node: int, partitions: Sequence[int]) -> Observations:
        """All partitions of one leader. The first answer that does not come ends it for the rest."""
        found = Observations()
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
            found.unasked += [Unasked("history", _name(it), error.reason) for it in partitions]
            return found
        turn = asyncio.Semaphore(_AT_ONCE)

        async def one(partition: int) -> Observations:
            async with turn:
                return await self._partition(node, partition, begins[partition], ends[partition])

        return found.add(*await asyncio.gather(*map(one, partitions)))

    async def _ends(self, node: int, partitions: Sequence[int], timestamp: int) -> dict[int, int | str]:
        """Offsets by partition, or why there is none."""
        told: dict[int, int | str] = dict.fromkeys(partitions, "The broker did not answer for it.")
        for partition, it in (await ask_offsets(self._nodes, node, partitions, timestamp)).items():
            told[partition] = _reason(it.error) if it.error else _NONE if it.offset is None else it.offset
        return told

    async def _partition(self, node: int, partition: int, begin: int | str, end: int | str) -> Observations:
        found = Observations()
        source = f"{_broker(self._nodes, node)}, {_name(partition)}"
        try:
            if isinstance(begin, str) or isinstance(end, str):
                raise _Refused(begin if isinstance(begin, str) else end)
            windows = await self._windows(node, partition, begin, end)
        except ClientError as error:
            found.unasked.append(Unasked("history", _name(partition), error.reason, source=source))
            return found
        except _Refused as refusal:
            found.unasked.append(Unasked("history", _name(partition), str(refusal), source=source))
            return found
        first = windows[-1].start if windows else end
        if first > begin:
            reason = f"Only its end was read: offsets {first} to {end} of {begin} to {end}."
            found.unasked.append(Unasked("history", _name(partition), reason, source=source))
        reading = OffsetsPartition(self._topic_names)
        for window in reversed(windows):
            for piece in window.pieces:
                for placed in reading.read(piece, source):
                    self._add(found, placed.row, partition)
        return found

    async def _windows(self, node: int, partition: int, begin: int, end: int) -> list[_Window]:
        """The newest first."""
        windows: list[_Window] = []
        left, length, until = self._most_bytes, _FIRST_WINDOW, end
        while until > begin and left > 0 and length > 0:
            start = max(begin, until - length)
            window = await self._window(node, partition, start, until, left)
            if window is None:
                if windows:
                    break
                length //= _GROWTH  # Not even the newest fit: then fewer of them.
                continue
            windows.append(window)
            left -= window.size
            density = max(window.size, 1) / max(until - start, 1)
            length = min(length * _GROWTH, int(left / density))
            until = start
        return windows

    async def _window(self, node: int, partition: int, start: int, until: int, left: int) -> _Window | None:
        """None: it is larger than what is left."""
        window = _Window(start)
        offset, largest = start, _FETCH_BYTES
        while offset < until:
            records = await self._fetch(node, partition, offset, largest)
            whole, following = _whole(records, until)
            if following is None:
                if not records or largest >= _LARGEST_BATCH:
                    break  # Compaction has left nothing between here and the end.
                largest *= _GROWTH  # Up to version 2 a batch that does not fit is cut off.
                continue
            left -= len(whole)
            if left < 0:
                return None
            window.pieces.append(whole)
            offset = max(following, offset + 1)
        return window

    async def _fetch(self, node: int, partition: int, offset: int, largest: int) -> bytes:
        data = await ask_records(self._nodes, node, partition, offset, largest)
        if data.error:
            raise _Refused(_reason(data.error))
        return data.records

    def _add(self, found: Observations, row: Row, partition: int) -> None:
        if isinstance(row, Unasked):
            found.unasked.append(Unasked("history", _name(partition), row.reason, source=row.source))
            return
        if self._groups is None or row.group in self._groups:
            add_row(found, row)


def _whole(records: bytes, until: int) -> tuple[bytes, int | None]:
    """The whole batches at the beginning, as far as they are wanted, and the offset behind them."""
    end, following = 0, None
    try:
        for batch in read_batches(records, crc=False):
            if following is not None and following >= until:
                break
            end, following = batch.position + batch.size, batch.header.next_offset
    except Malformed:
        end = len(records)  # Whoever reads the batches will say what is wrong.
    return records[:end], following


def _reason(code: int) -> str:
    if code in _NOT_ALLOWED:
        return f"It may not be read ({describe(code)}): that needs the right to read {OFFSETS_TOPIC}."
    return f"The broker answered {describe(code)}."


def _name(partition: int) -> str:
    return str(TopicPartition(OFFSETS_TOPIC, partition))


def _broker(nodes: Nodes, node: int) -> str:
    broker = nodes.brokers.get(node)
    return f"broker {node}" if broker is None else f"broker {node} ({broker.address})"
