"""A consumer that reads: a member of a group (member.py) that fetches, and commits how far it has come.

It takes its position up as Kafka's consumers do: the committed offset, or what its reset policy says; out of
range, the policy again. It commits at every interval, whether it has moved or not, as Java's consumer does,
with the leader epoch of the last record. What can go wrong with its progress can be had by its switches:

    commits=NEVER             it never commits
    commits=ON_CLOSE          it commits once, when it is closed
    reader.stuck = True       it cannot get over the next record: heartbeats and commits go on
    reader.most = 5           records a partition and interval at most: it is slow
"""

import asyncio
from collections.abc import Sequence

from kelpie.errors import ErrorCode
from kelpie.lab.cluster import Cluster
from kelpie.lab.scenarios import administering
from kelpie.lab.scenarios.client import RawClient
from kelpie.lab.scenarios.member import Member
from kelpie.lab.scenarios.stage import Stage
from kelpie.model.names import TopicPartition
from kelpie.wire.api.fetch import FetchPartition, FetchRequest, FetchTopic
from kelpie.wire.api.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kelpie.wire.records import BatchHeader, read_batches

EARLIEST, LATEST = "earliest", "latest"
ALWAYS, ON_CLOSE, NEVER = "always", "on close", "never"
READ_COMMITTED = 1
INTERVAL_S = 0.1
_FETCH, _COMMIT = 11, 8
_MOST_BYTES = 1 << 20

SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 100,
    "offsets.topic.num.partitions": 4,
}
"""Of a cluster on which readers are quick."""


class Reader:
    def __init__(
        self,
        stage: Stage,
        cluster: Cluster,
        group: str,
        topics: Sequence[str],
        *,
        name: str = "",
        reset: str = EARLIEST,
        isolation: int = 0,
        commits: str = ALWAYS,
        session_ms: int = 1_000,
    ) -> None:
        self.group, self.reset, self.isolation = group, reset, isolation
        self.commits = commits
        self.stuck = False
        self.most = 1 << 30
        self.positions: dict[TopicPartition, int] = {}
        self.read = 0
        """Records so far."""
        self.taken: dict[TopicPartition, int] = {}
        """Where it began in each partition."""
        self.member = Member(stage, cluster, group, name or f"{group}-1", topics, session_ms=session_ms)
        self._stage, self._cluster = stage, cluster
        self._epochs: dict[TopicPartition, int] = {}
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self.member.start()
        await self.member.until_joined()
        self._task = self._stage.actor(self._live())

    async def close(self) -> None:
        """It commits what it has read, and leaves."""
        await self._end()
        if self.commits != NEVER and self.positions:
            await self._commit()
        await self.member.close()

    async def vanish(self) -> None:
        await self._end()
        await self.member.vanish()

    async def until_at(self, name: TopicPartition, offset: int) -> int:
        """Where it is, once it has come so far."""

        async def look() -> int:
            return self.positions.get(name, -1)

        return await self._stage.until(look, lambda at: at >= offset)

    async def _end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _live(self) -> None:
        while True:
            try:
                if self.member.joined.is_set():
                    await self._turn()
            except OSError:
                pass  # A broker is gone; the next turn finds out who has its part.
            await asyncio.sleep(INTERVAL_S)

    async def _turn(self) -> None:
        for name in self.member.assigned:
            if name not in self.positions:
                await self._take_up(name)
            if not self.stuck:
                await self._fetch(name)
        if self.commits == ALWAYS:
            await self._commit()

    async def _take_up(self, name: TopicPartition) -> None:
        offset = await administering.committed(self._stage, self._cluster, self.group, name)
        self.positions[name] = offset if offset >= 0 else await self._by_policy(name)
        self.taken.setdefault(name, self.positions[name])

    async def _by_policy(self, name: TopicPartition) -> int:
        point = administering.EARLIEST if self.reset == EARLIEST else administering.LATEST
        return await administering.end_of(self._stage, self._cluster, name, point, self.isolation)

    async def _fetch(self, name: TopicPartition) -> None:
        address, _ = await administering.leader(self._stage, self._cluster, name)
        wanted = FetchPartition(
            partition=name.partition, fetch_offset=self.positions[name], partition_max_bytes=_MOST_BYTES
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            isolation_level=self.isolation,
            topics=[FetchTopic(topic=name.topic, partitions=[wanted])],
        )
        async with RawClient(self.member.name, address) as client:
            answer = await client.ask(request, _FETCH)
        row = answer.responses[0].partitions[0]
        if row.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self.positions[name] = await self._by_policy(name)
        elif row.error_code == ErrorCode.NONE:
            self._take(name, row.records or b"")

    def _take(self, name: TopicPartition, records: bytes) -> None:
        begin = self.positions[name]
        upto = begin
        for batch in read_batches(records):
            upto = batch.header.last_offset + 1
            if isinstance(batch.header, BatchHeader):
                self._epochs[name] = batch.header.partition_leader_epoch
            if upto - begin >= self.most:
                break
        upto = min(upto, begin + self.most)
        self.read += max(0, upto - begin)
        self.positions[name] = max(begin, upto)

    async def _commit(self) -> None:
        rows: dict[str, list[OffsetCommitRequestPartition]] = {}
        for name, offset in self.positions.items():
            row = OffsetCommitRequestPartition(
                partition_index=name.partition,
                committed_offset=offset,
                committed_leader_epoch=self._epochs.get(name, -1),
                committed_metadata="",
            )
            rows.setdefault(name.topic, []).append(row)
        request = OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=self.member.generation,
            member_id=self.member.id,
            topics=[OffsetCommitRequestTopic(name=topic, partitions=own) for topic, own in rows.items()],
        )
        address = await administering.coordinator(self._stage, self._cluster, self.group)
        async with RawClient(self.member.name, address) as client:
            await client.ask(request, _COMMIT)
