"""Fetches a range of offsets of one partition of the offsets topic, over Kelpie's own client.

A planned range must be read: if its leader goes away, the task waits for the next one, and fails if none
comes in time. Records that were deleted since are skipped. Records that an unclean leader election has lost
are reported as lost.
"""

import asyncio
from collections.abc import Iterator, Sequence

import pyarrow as pa

from kelpie.client.admin.log_ends import ask_offsets_at
from kelpie.client.client_errors import ClientError
from kelpie.client.memory import Memory
from kelpie.client.nodes import Nodes
from kelpie.client.offsets_topic import READ_COMMITTED, ask_records, ask_views
from kelpie.client.settings import Settings
from kelpie.errors import ErrorCode, describe, info
from kelpie.model.names import TopicPartition
from kelpie.observations import OFFSETS_TOPIC
from kelpie.pipeline.decoding.pairs import Fetched, read_fetched
from kelpie.pipeline.decoding.segment import Unread
from kelpie.pipeline.sources.topic.rows import FetchRange
from kelpie.questions.fetch import FetchedPartition
from kelpie.questions.list_offsets import EARLIEST

PATIENCE_S = 60.0
"""How long a task waits for a leader."""
_SHORT_LOG_S = 10.0
"""How long it waits for the high watermark of a new leader to pass the end of the range."""
_FETCH_BYTES, _GROWTH, _LARGEST_BATCH = 4 * 1024 * 1024, 8, 128 * 1024 * 1024
_FETCH_LIMIT_S = 30.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 2.0


class NotRead(Exception):
    """A planned range of the topic could not be read."""


def read_range(
    settings: Settings,
    offset_range: FetchRange,
    *,
    tells_versions: bool | None = None,
    patience_s: float = PATIENCE_S,
) -> Iterator[tuple[pa.Table, Sequence[Unread]]]:
    """Yields the records piece by piece. Raises NotRead."""
    with asyncio.Runner() as runner:
        fetching = _Fetching(settings, offset_range, Memory(tells_versions), patience_s)
        try:
            while (piece := runner.run(fetching.next())) is not None:
                yield piece
        finally:
            runner.run(fetching.close())


class _Fetching:
    """The state of fetching one range."""

    def __init__(
        self, settings: Settings, offset_range: FetchRange, memory: Memory, patience_s: float
    ) -> None:
        self._settings, self._memory, self._patience_s = settings, memory, patience_s
        self._partition, self._at, self._stop = offset_range
        self._bytes = _FETCH_BYTES
        self._nodes: Nodes | None = None
        self._leader = -1
        self._lost: list[Unread] = []
        self._trouble = ""
        self._short_since: float | None = None
        """Since when the leader's high watermark is below the end of the range."""

    async def next(self) -> tuple[pa.Table, Sequence[Unread]] | None:
        """The next piece; None at the end. Raises NotRead."""
        loop = asyncio.get_running_loop()
        deadline, pause = loop.time() + self._patience_s, _FIRST_PAUSE_S
        while self._at < self._stop:
            piece = None
            try:
                piece = await self._try()
            except ClientError as error:
                self._trouble = error.reason
                await self.close()
            if piece is not None:
                self._at = max(self._at + 1, min(piece.following or self._stop, self._stop))
                self._bytes = _FETCH_BYTES
                return piece.pairs, [*piece.unread, *self._taken()]
            if self._short_since is not None and loop.time() - self._short_since > _SHORT_LOG_S:
                self._give_up_rest()
            if self._at >= self._stop:
                break
            if loop.time() > deadline:
                raise NotRead(
                    f"{OFFSETS_TOPIC}-{self._partition} could not be read from offset {self._at} within "
                    f"{self._patience_s:.0f} s: {self._trouble or 'nobody leads it'}. What was read before "
                    "counts; run it again when the partition is back."
                )
            if self._trouble:
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_S)
        unread = self._taken()
        return (_nothing(), unread) if unread else None

    async def close(self) -> None:
        nodes, self._nodes, self._leader = self._nodes, None, -1
        if nodes is not None:
            await nodes.close()

    async def _try(self) -> Fetched | None:
        """One fetch. None: there was nothing to read yet, and the state says why. Raises ClientError."""
        self._trouble = ""
        if self._nodes is None:
            self._nodes = await Nodes.open(self._settings, memory=self._memory)
        nodes = self._nodes
        if self._leader < 0:
            view = (await ask_views(nodes)).get(self._partition)
            self._leader = view.leader if view is not None else -1
        if self._leader < 0:
            self._trouble = "it has no leader"
            return None
        data = await ask_records(
            nodes,
            self._leader,
            self._partition,
            self._at,
            self._bytes,
            isolation_level=READ_COMMITTED,
            limit_s=_FETCH_LIMIT_S,
        )
        if data.error == ErrorCode.OFFSET_OUT_OF_RANGE:
            await self._skip_deleted(nodes)
        elif data.error:
            self._leader = -1
            self._trouble = f"{describe(data.error)}. {info(data.error).meaning}"
        elif not data.records:
            self._skip_compacted(data)
        else:
            return self._read(data)
        return None

    def _read(self, data: FetchedPartition) -> Fetched | None:
        records = bytes(data.records)
        fetched = read_fetched(records, data.aborted, self._at, self._stop)
        if fetched.following is None and self._bytes < _LARGEST_BATCH:
            self._bytes *= _GROWTH  # Up to 0.10, a message larger than the limit is cut off.
            return None
        if fetched.following is None:
            reason = f"what begins at offset {self._at} cannot be read, nor what follows up to {self._stop}"
            self._lost.append(Unread(self._at, len(records), reason, records[:4096]))
        return fetched

    def _skip_compacted(self, data: FetchedPartition) -> None:
        """No records follow in the range, unless the leader does not know its high watermark yet."""
        if data.high_watermark >= self._stop:
            self._at = self._stop
            return
        self._trouble = f"the log of broker {self._leader} is good to offset {data.high_watermark} so far"
        if self._short_since is None:
            self._short_since = asyncio.get_running_loop().time()

    async def _skip_deleted(self, nodes: Nodes) -> None:
        name = TopicPartition(OFFSETS_TOPIC, self._partition)
        first = (await ask_offsets_at(nodes, self._leader, {name: EARLIEST})).get(name)
        if first is None or first.failure:
            self._trouble = first.failure if first else f"broker {self._leader} does not tell its ends"
            self._leader = -1
        elif first.offset > self._at:
            self._at = min(first.offset, self._stop)
        else:
            self._give_up_rest()

    def _give_up_rest(self) -> None:
        reason = (
            f"the log ends before offset {self._stop}: what was there from {self._at} on is lost, as after "
            "the election of a leader that was not in sync"
        )
        self._lost.append(Unread(self._at, 0, reason, b""))
        self._at = self._stop

    def _taken(self) -> list[Unread]:
        lost, self._lost = self._lost, []
        return lost


def _nothing() -> pa.Table:
    return read_fetched(b"", (), 0, 0).pairs
