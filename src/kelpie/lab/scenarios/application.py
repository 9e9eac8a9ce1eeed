"""An application of a scenario: it reads with Kelpie's own consumer, in the background.

It polls, and its consumer commits what was read every 100 ms, at the close, or only when the scenario says so
(`CommitPolicy`). What the consumer does is logged in the words of Java's client (java_log.py). Each thing
that can go wrong with a consumer is a method:

    await app.stop_polling()      the application is busy: heartbeats go on, and nothing calls poll()
    await app.hang()              the process stands still: neither polls nor heartbeats
    await app.resume()            the end of both
    app.pause()                   it cannot get over the next record: polls, heartbeats and commits go on
    app.fail_at(partition)        it cannot read the next record there, and logs that
    app.seconds_per_record = 0.1  it is slow
    await app.close()             it leaves, as it should
    await app.crash()             it dies without a word
"""

import asyncio
from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from kelpie.client.consumer import Consumer, ConsumerError
from kelpie.errors import ErrorCode
from kelpie.lab.cluster import Cluster
from kelpie.lab.scenarios.java_log import JavaLog
from kelpie.lab.scenarios.stage import Stage
from kelpie.model.names import TopicPartition

if TYPE_CHECKING:
    from typing import Self

QUICK = {"group.initial.rebalance.delay.ms": 0, "group.min.session.timeout.ms": 100}
"""Settings of a cluster on which groups are quick to gather, and sessions may be short."""
QUICK_AND_SMALL = {**QUICK, "offsets.topic.num.partitions": 4}

_POLL_S = 0.1
_HOUR_MS = 3_600_000


class CommitPolicy(Enum):
    """How often the consumer commits: the interval of automatic commits in ms; None: they are off."""

    ALWAYS = 100
    ON_CLOSE = _HOUR_MS
    ON_DEMAND = None


class Application:
    """`options` are those of Kelpie's consumer; if left out, sessions and intervals are short."""

    def __init__(
        self,
        stage: Stage,
        cluster: Cluster,
        group: str,
        topics: Sequence[str],
        *,
        name: str = "",
        commits: CommitPolicy = CommitPolicy.ALWAYS,
        poll_s: float = _POLL_S,
        **options: Any,
    ) -> None:
        self.group, self.name = group, name or f"{group}-1"
        self.seconds_per_record = 0.0
        self._poll_s = poll_s
        self.read = 0
        """Records so far."""
        self.refused: ErrorCode | None = None
        """The error that ended it."""
        session_ms = options.setdefault("session_timeout_ms", 1_000)
        options.setdefault("heartbeat_interval_ms", session_ms // 5)
        options = {
            "assignors": ("range",),
            "auto_offset_reset": "earliest",
            "max_poll_interval_ms": 3_000,
            "max_poll_records": 10,
            "fetch_max_wait_ms": 100,
            "enable_auto_commit": commits is not CommitPolicy.ON_DEMAND,
            "auto_commit_interval_ms": commits.value or _HOUR_MS,
            **options,
        }
        self._log = JavaLog(stage.logs, self.name, group, options.get("group_instance_id"))
        self._consumer = Consumer(
            stage.settings(cluster, self.name),
            group,
            topics,
            memory=stage.memory,
            wall=stage.environment.wall,
            rng=stage.environment.rng,
            trace=self._log,
            **options,
        )
        self._stage = stage
        self._polling: asyncio.Task[None] | None = None
        stage.at_end(self._consumer.crash)

    # What it does.

    def start(self) -> "Self":
        self._polling = self._stage.actor(self._poll())
        return self

    async def commit(self, offset: int | None = None, metadata: str = "") -> ErrorCode:
        """Commit this offset in every partition, or what was read. The error of the commit.

        `metadata`: a text that is kept beside what was read.
        """
        offsets = None if offset is None else dict.fromkeys(self.assignment, offset)
        if metadata:
            offsets = {partition: self.position(partition) for partition in self.assignment}
        try:
            await self._consumer.commit(offsets, metadata=metadata)
        except ConsumerError as raised:
            return ErrorCode(raised.problem.error or ErrorCode.UNKNOWN_SERVER_ERROR)
        return ErrorCode.NONE

    async def close(self) -> None:
        await self.stop_polling()
        await self._consumer.close()

    async def crash(self) -> None:
        await self.stop_polling()
        await self._consumer.crash()

    # What can happen to it.

    async def stop_polling(self) -> None:
        if self._polling is not None:
            self._polling.cancel()
            await asyncio.wait([self._polling])
            self._polling = None

    async def hang(self) -> None:
        await self.stop_polling()
        self._consumer.hold_heartbeats()

    async def resume(self) -> None:
        self._consumer.release_heartbeats()
        self.start()

    def pause(self) -> None:
        self._consumer.pause(*self.assignment)

    def fail_at(self, partition: TopicPartition) -> int:
        """It cannot read the next record of a partition: it logs that, twice, and stays there. The offset."""
        self._consumer.pause(partition)
        offset = self.position(partition)
        for _ in range(2):
            self._log.could_not_read(partition, offset, self._stage.environment.now_ms())
        return offset

    def unpause(self) -> None:
        self._consumer.resume(*self.assignment)

    # Where it stands.

    @property
    def assignment(self) -> tuple[TopicPartition, ...]:
        return self._consumer.assignment

    @property
    def member_id(self) -> str:
        return self._consumer.identity.member_id

    @property
    def generation(self) -> int:
        return self._consumer.identity.generation

    @property
    def coordinator(self) -> int | None:
        node = self._consumer.coordinator
        return None if node is None else node.node_id

    @property
    def is_joined(self) -> bool:
        return self._consumer.is_joined

    def position(self, partition: TopicPartition) -> int:
        """The next offset to read; −1: none yet."""
        return self._consumer.positions.get(partition, -1)

    def began_at(self, partition: TopicPartition) -> int | None:
        """The offset at which it began to read, even if the broker refused that offset."""
        state = self._consumer.machine.assignment.get(partition)
        if state is None or state.began is None:
            return None
        return state.began[0] if state.unusable is None else state.unusable

    async def until_joined(self) -> None:
        await self.until(lambda: self.is_joined)

    async def until_refused(self) -> ErrorCode | None:
        """The error that ended it; None if it goes on."""
        await self.until(lambda: self.refused is not None)
        return self.refused

    async def until_at(self, partition: TopicPartition, offset: int) -> int:
        """Its position, once it has come so far."""
        await self.until(lambda: self.position(partition) >= offset)
        return self.position(partition)

    async def until(self, condition: Callable[[], bool]) -> bool:
        """Wait until it is so; whether it is."""

        async def is_so() -> bool:
            return condition()

        return await self._stage.until(is_so, bool)

    async def _poll(self) -> None:
        try:
            while True:
                records = await self._consumer.poll(self._poll_s)
                self.read += len(records)
                if records:
                    await asyncio.sleep(len(records) * self.seconds_per_record)
        except ConsumerError as raised:
            self.refused = ErrorCode(raised.problem.error or ErrorCode.UNKNOWN_SERVER_ERROR)
            await self._consumer.crash()
