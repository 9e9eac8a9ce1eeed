"""A consumer of Kafka 0.8 for asyncio: the machine of `kelpie.zookeeper` on ZooKeeper and brokers.

    config = ZookeeperConsumerConfig(group_id="billing", subscription=Subscription({"orders": 1}))
    async with await ZookeeperGroupConsumer.open("zk-1:2181", config) as consumer:
        for record in await consumer.poll(1.0):
            ...

It shares a group with Kafka's own ZookeeperConsumerConnector, of 0.8 up to 1.1. Records count as
consumed when the next poll begins, or when the consumer is closed: only then are their offsets committed. So
every record is delivered at least once.
"""

import asyncio
import random
import socket
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING

from kelpie.client.zookeeper import BROKERS, no_answer, no_cluster, no_path
from kelpie.client.zookeeper_consumer.reader import PartitionReader
from kelpie.client.zookeeper_consumer.session import ZookeeperSession
from kelpie.consumer.effects import ConsumedRecord
from kelpie.consumer.positions.reset_policy import LATEST, ResetPolicy
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.zookeeper.config import ZookeeperConsumerConfig
from kelpie.zookeeper.consumer_machine import ZookeeperConsumer
from kelpie.zookeeper.effects import (
    ApplicationEvent,
    Ask,
    Effect,
    EndSession,
    StartFetching,
    StopFetching,
    Tell,
)
from kelpie.zookeeper.nodes import consumer_id
from kelpie.zookeeper.steps import RecordedStep

if TYPE_CHECKING:
    from typing import Self

_OPEN_LIMIT_S = 10.0
_CLOSE_LIMIT_S = 10.0
_MOST_RECORDS = 500


class ZookeeperGroupConsumer:
    """`on_event` hears of partitions that come and go, and of failures; `on_step` of every step.

    After a failure that it cannot mend it has left the group, and `poll` raises that failure.
    """

    def __init__(
        self,
        hosts: str,
        config: ZookeeperConsumerConfig,
        *,
        auto_offset_reset: ResetPolicy = LATEST,
        on_event: Callable[[ApplicationEvent], None] | None = None,
        on_step: Callable[[RecordedStep], None] | None = None,
        rng: random.Random | None = None,
    ) -> None:
        """Call it on the loop; `open` also connects."""
        rng = rng or random.Random()
        self._hosts = hosts
        self._config = config
        self._reset = auto_offset_reset
        self._on_event = on_event
        self._on_step = on_step
        self._loop = asyncio.get_running_loop()
        self._origin = time.time() - self._loop.time()
        name = consumer_id(config.group_id, socket.gethostname(), self._now(), rng.getrandbits(32))
        self.machine = ZookeeperConsumer(config, name, rng.randrange)
        self._session = ZookeeperSession(hosts, config.session_timeout_ms, self)
        self._reader: PartitionReader | None = None
        self._handed_out: Sequence[ConsumedRecord] = ()
        self._handed_out_by: PartitionReader | None = None
        self._told_steps = 0
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._connected = asyncio.Event()
        self._changed = asyncio.Event()
        self._over = asyncio.Event()
        self._has_started = False
        self._broken: Exception | None = None

    @classmethod
    async def open(
        cls,
        hosts: str,
        config: ZookeeperConsumerConfig,
        *,
        limit_s: float = _OPEN_LIMIT_S,
        auto_offset_reset: ResetPolicy = LATEST,
        on_event: Callable[[ApplicationEvent], None] | None = None,
        on_step: Callable[[RecordedStep], None] | None = None,
    ) -> "ZookeeperGroupConsumer":
        """Connect, and begin to take part in the group. Raises ZooKeeperError."""
        consumer = cls(hosts, config, auto_offset_reset=auto_offset_reset, on_event=on_event, on_step=on_step)
        try:
            await consumer.start(limit_s)
        except BaseException:
            await consumer.crash()
            raise
        return consumer

    async def start(self, limit_s: float = _OPEN_LIMIT_S) -> None:
        self._session.start()
        try:
            async with asyncio.timeout(limit_s):
                await self._connected.wait()
                if self._session.chroot and await self._session.exists("/") is False:
                    raise no_path(self._hosts, self._session.chroot)
                if await self._session.exists(BROKERS) is False:
                    raise no_cluster(self._hosts)
        except TimeoutError:
            raise no_answer(self._hosts, limit_s) from None
        self._has_started = True
        self._do(self.machine.start)

    async def __aenter__(self) -> "Self":
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """An exception means that the last records may not have been dealt with: they are not committed."""
        if kind is not None:
            self._handed_out = ()
        await self.close()

    # Reading.

    async def poll(self, limit_s: float = 1.0, most: int = _MOST_RECORDS) -> Sequence[ConsumedRecord]:
        """The next records; none if none come in time. Those of the last poll count as consumed.

        Raises ConsumerError for a partition that cannot be read, and what has broken the consumer.
        """
        self._note_consumed()
        deadline = self._loop.time() + limit_s
        while True:
            if self._broken is not None:
                raise self._broken
            if self._over.is_set():
                raise RuntimeError("The consumer was closed.")
            left_s = deadline - self._loop.time()
            if left_s <= 0:
                return ()
            reader = self._reader
            if reader is None:
                await self._change(left_s)
                continue
            records = await reader.poll(left_s, most)
            if reader is self._reader:
                self._handed_out, self._handed_out_by = records, reader
                self._note_beginnings(reader)
                if records:
                    return records

    def commit(self) -> None:
        """Begin to commit what has been consumed, for consumers that do not commit by themselves."""
        self._note_consumed()
        self._do(self.machine.commit)

    async def close(self, limit_s: float = _CLOSE_LIMIT_S) -> None:
        """Commit, if commits are automatic, and end the session; after the limit it ends anyway."""
        if self._over.is_set():
            return
        self._note_consumed()
        if self._has_started:
            self._do(self.machine.close)
            try:
                async with asyncio.timeout(limit_s):
                    await self._over.wait()
            except TimeoutError:
                pass
        await self.crash()

    async def crash(self) -> None:
        """End at once, as a process that is killed: ZooKeeper keeps the session until its timeout."""
        is_first = not self._over.is_set()
        self._over.set()
        self._changed.set()
        self._wake_at(None)
        if self._reader is not None:
            self._stop_reading()
        if is_first:
            self._spawn(self._session.abandon())
        waiting = [task for task in self._tasks if task is not asyncio.current_task()]
        if waiting:
            await asyncio.wait(waiting, timeout=_CLOSE_LIMIT_S)
        for task in waiting:
            task.cancel()

    # Its state.

    @property
    def consumer_id(self) -> str:
        return self.machine.consumer_id

    @property
    def owned(self) -> dict[TopicPartition, int]:
        """The partitions that it reads, with the next offset that the application will consume."""
        return self.machine.owned

    @property
    def steps(self) -> tuple[RecordedStep, ...]:
        return self.machine.history.steps

    # What the session tells.

    def session_connected(self, session: ZookeeperSession, session_id: int) -> None:
        if session is self._session:
            self._connected.set()
            self._do(lambda now: self.machine.connected(session_id, now))

    def session_disconnected(self, session: ZookeeperSession) -> None:
        if session is self._session:
            self._do(self.machine.disconnected)

    def session_expired(self, session: ZookeeperSession) -> None:
        if session is not self._session or self._over.is_set():
            return
        self._spawn(session.abandon())
        self._session = ZookeeperSession(self._hosts, self._config.session_timeout_ms, self)
        self._do(self.machine.session_expired)
        self._session.start()

    def session_watch_fired(self, session: ZookeeperSession, path: str) -> None:
        if session is self._session:
            self._do(lambda now: self.machine.watch_fired(path, now))

    # The driver.

    def _now(self) -> Instant:
        """Milliseconds since 1970 that never run backwards."""
        return int((self._origin + self._loop.time()) * 1000)

    def _do(self, event: Callable[[Instant], list[Effect]]) -> None:
        """Give an event to the machine, and carry out what follows."""
        if self._over.is_set():
            return
        try:
            effects = event(self._now())
            self._tell_steps()
            for effect in effects:
                self._carry_out(effect)
            self._wake_at(self.machine.wake_at)
        except Exception as error:  # Say, a node with a value that no Kafka writes.
            self._fail(error)

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Ask():
                self._spawn(self._ask(effect, self._session))
            case StartFetching(positions):
                self._reader = None
                if positions:
                    self._reader = PartitionReader(effect, self.machine.consumer_id, self._reset)
                self._changed.set()
            case StopFetching():
                self._stop_reading()
            case Tell(event):
                if self._on_event is not None:
                    self._on_event(event)
            case EndSession():
                self._spawn(self._end())

    async def _ask(self, asked: Ask, session: ZookeeperSession) -> None:
        connections = session.connections
        try:
            answers = await session.carry_out(asked.requests)
        except Exception as error:
            self._fail(error)
            return
        # The machine asks again what a lost connection has left without an answer.
        is_current = session is self._session and session.connections == connections
        if answers is not None and is_current:
            self._do(lambda now: self.machine.answered(asked.token, answers, now))

    async def _end(self) -> None:
        try:
            await self._session.end()
        finally:
            self._over.set()
            self._changed.set()

    def _stop_reading(self) -> None:
        if self._reader is not None:
            ending = self._reader.stop()
            self._tasks.add(ending)
            ending.add_done_callback(self._tasks.discard)
            self._reader = None

    def _note_consumed(self) -> None:
        """Records that were handed out before a rebalance do not count: they will be delivered again."""
        handed_out, self._handed_out = self._handed_out, ()
        if self._handed_out_by is not self._reader:
            return
        ends = {TopicPartition(record.topic, record.partition): record.offset + 1 for record in handed_out}
        for partition, next_offset in ends.items():
            self._do(partial(self._consumed, partition, next_offset))

    def _note_beginnings(self, reader: PartitionReader) -> None:
        """Where reading begins without a committed offset is committed, too.

        Otherwise a consumer that takes the partition over would begin at the end, behind records that came in
        between.
        """
        unread = reader.beginnings({TopicPartition(each.topic, each.partition) for each in self._handed_out})
        for partition, offset in self.machine.owned.items():
            if offset < 0 and partition in unread:
                self._do(partial(self._consumed, partition, unread[partition]))

    def _consumed(self, partition: TopicPartition, next_offset: int, now: Instant) -> list[Effect]:
        return self.machine.consumed(partition, next_offset, now)

    async def _change(self, limit_s: float) -> None:
        self._changed.clear()
        try:
            async with asyncio.timeout(limit_s):
                await self._changed.wait()
        except TimeoutError:
            pass

    def _tell_steps(self) -> None:
        history = self.machine.history
        if self._on_step is not None:
            for recorded in history.since(self._told_steps):
                self._on_step(recorded)
        self._told_steps = history.count

    def _wake_at(self, at: Instant | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if at is not None:
            # A millisecond late rather than early: then everything is due that the machine waits for.
            wait_s = max(0.0, (at + 1) / 1000 - self._origin - self._loop.time())
            self._timer = self._loop.call_later(wait_s, self._do, self.machine.woken)

    def _fail(self, error: Exception) -> None:
        """A consumer that cannot go on must not hold partitions: its session ends."""
        if self._broken is not None or self._over.is_set():
            return
        self._broken = error
        self._wake_at(None)
        self._stop_reading()
        self._spawn(self._end())

    def _spawn(self, work: "Coroutine[object, object, None]") -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
