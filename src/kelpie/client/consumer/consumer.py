"""A consumer for asyncio: the machine of `kelpie.consumer` on real connections.

    async with Consumer(settings, "billing", ["orders"], auto_offset_reset="earliest") as consumer:
        for record in await consumer.poll(1.0):
            ...
        await consumer.commit()

It behaves as Kafka's own consumer does, so it can also show what goes wrong: an application that is slow
between polls does not call `poll`; `hold_heartbeats` is a process that hangs, and `crash` one that dies.
"""

import asyncio
import random
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kelpie.client.consumer.machine_driver import ConsumerTrace, MachineDriver
from kelpie.client.memory import Memory
from kelpie.client.settings import Settings
from kelpie.consumer import effects
from kelpie.consumer.config import ConsumerConfig, GroupProtocol, IsolationLevel
from kelpie.consumer.consumer_machine import ConsumerMachine
from kelpie.consumer.membership.membership import Identity
from kelpie.consumer.positions.reset_policy import ResetPolicy
from kelpie.consumer.steps import ConsumerStep
from kelpie.model.kelpie_error import KelpieError
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.questions.offset_commit import OffsetToCommit

if TYPE_CHECKING:
    from typing import Self

Change = effects.PartitionsAssigned | effects.PartitionsRevoked | effects.PartitionsLost
_Offsets = Mapping[TopicPartition, OffsetToCommit]
_CLOSE_LIMIT_S = 10.0


class ConsumerError(KelpieError):
    """An error that a consumer cannot mend by itself. `problem` says of what kind it is."""

    def __init__(self, problem: effects.Problem) -> None:
        super().__init__(problem.text)
        self.problem = problem


class Consumer:
    """Options are the fields of `ConsumerConfig`; policies, levels and protocols may be given by name.

    `partitions` instead of `topics` reads them without joining the group. `on_change` is called when
    partitions come and go. `memory` holds what other connections know of the cluster. `wall` is the
    time in seconds since 1970; `trace` follows requests, answers and events; `rng` draws the
    first broker and the member id. Raises BadConfig, a ValueError, for what cannot be.
    """

    def __init__(
        self,
        settings: Settings,
        group: str | None = None,
        topics: Sequence[str] = (),
        *,
        partitions: Iterable[TopicPartition] = (),
        on_change: Callable[[Change], None] | None = None,
        memory: Memory | None = None,
        wall: Callable[[], float] = time.time,
        trace: ConsumerTrace | None = None,
        rng: random.Random | None = None,
        **options: Any,
    ) -> None:
        self.config = ConsumerConfig(
            group_id=group,
            topics=tuple(topics),
            partitions=tuple(partitions),
            **{"client_id": settings.client_id, **_from_names(options)},
        )
        rng = rng or random.Random()
        self.machine = ConsumerMachine(
            self.config,
            [(address.host, address.port) for address in settings.bootstrap],
            draw=rng.randrange,
            new_id=lambda: str(uuid.UUID(int=rng.getrandbits(128), version=4)),
        )
        self._settings = replace(settings, client_id=self.config.client_id)
        self._memory = memory
        self._wall = wall
        self._trace = trace
        self._on_change = on_change
        self._polled: asyncio.Future[list[effects.ConsumedRecord]] | None = None
        self._unclaimed: list[effects.ConsumedRecord] = []
        """Records for a poll that was cancelled: the next one gets them."""
        self._commits: dict[int, asyncio.Future[_Offsets]] = {}
        self._closed = asyncio.Event()
        self._broken: Exception | None = None
        self._driver: MachineDriver | None = None

    async def __aenter__(self) -> "Self":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # Reading.

    async def poll(self, limit_s: float = 1.0) -> list[effects.ConsumedRecord]:
        """The next records; none if none come in time. Raises ConsumerError."""
        driver = self._running()
        if self._polled is not None:
            raise RuntimeError("A consumer can be polled by one caller at a time.")
        if self._unclaimed:
            records, self._unclaimed = self._unclaimed, []
            owned = set(self.assignment)  # It may have lost partitions since.
            return [record for record in records if TopicPartition(record.topic, record.partition) in owned]
        polled: asyncio.Future[list[effects.ConsumedRecord]] = asyncio.get_running_loop().create_future()
        self._polled = polled
        try:
            driver.do(self.machine.poll)
            # Not a time limit around an await: it would cancel the future, and records that come in the same
            # moment would be lost with it.
            await asyncio.wait({polled}, timeout=limit_s)
            return polled.result() if polled.done() else []
        except asyncio.CancelledError:
            if polled.done() and polled.exception() is None:
                self._unclaimed += polled.result()
            raise
        finally:
            self._polled = None
            if self.machine.is_polling:
                driver.do(self.machine.poll_ended)

    async def commit(
        self,
        offsets: Mapping[TopicPartition, int] | None = None,
        limit_s: float = 10.0,
        *,
        metadata: str = "",
    ) -> dict[TopicPartition, int]:
        """Commit these offsets, or all positions; returns what was committed. Raises ConsumerError.

        `metadata`: a text that is kept beside each of these offsets.
        """
        driver = self._running()
        wanted = None
        if offsets is not None:
            wanted = {
                partition: OffsetToCommit(offset, metadata=metadata) for partition, offset in offsets.items()
            }
        done: asyncio.Future[_Offsets] = asyncio.get_running_loop().create_future()

        def begin(now: Instant) -> effects.Effects:
            commit_id, following = self.machine.commit(now, wanted, int(limit_s * 1000))
            self._commits[commit_id] = done
            return following

        driver.do(begin)
        committed = await done
        return {partition: each.offset for partition, each in committed.items()}

    async def close(self, limit_s: float = _CLOSE_LIMIT_S) -> None:
        """Commit, if commits are automatic, leave the group, and end; after the limit it ends anyway."""
        if self._driver is None or self._closed.is_set():
            return
        self._driver.do(self.machine.close)
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                await self._closed.wait()
        await self.crash()

    async def crash(self) -> None:
        """End at once, as a process that is killed. The group is not left."""
        self._closed.set()
        if self._driver is not None:
            await self._driver.end()
        self._fail(RuntimeError("The consumer was closed."))

    # Interventions.

    def hold_heartbeats(self) -> None:
        """Send no heartbeats, as a process that hangs; `release_heartbeats` ends it."""
        self._running().do(self.machine.mute_heartbeats)

    def release_heartbeats(self) -> None:
        self._running().do(lambda now: self.machine.mute_heartbeats(now, muted=False))

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self._running().do(lambda now: self.machine.seek(partition, offset, now))

    def pause(self, *partitions: TopicPartition) -> None:
        self._running().do(lambda now: self.machine.pause(partitions, now))

    def resume(self, *partitions: TopicPartition) -> None:
        self._running().do(lambda now: self.machine.pause(partitions, now, paused=False))

    # Its state.

    @property
    def assignment(self) -> tuple[TopicPartition, ...]:
        return self.machine.assignment.partitions

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The next offset to read, of each partition that has one."""
        positions = self.machine.assignment.positions()
        return {partition: position.offset for partition, position in positions.items()}

    @property
    def identity(self) -> Identity:
        """Member id and generation (or epoch), as the coordinator knows them."""
        return self.machine.membership.identity

    @property
    def is_joined(self) -> bool:
        """Whether it is a member of its group and has taken on its assignment."""
        return self.machine.membership.is_joined

    @property
    def coordinator(self) -> effects.BrokerNode | None:
        return self.machine.coordinator

    @property
    def steps(self) -> tuple[ConsumerStep, ...]:
        """What it has done, step by step."""
        return self.machine.steps

    # The driver.

    def _running(self) -> MachineDriver:
        if self._broken is not None:
            raise self._broken
        if self._closed.is_set():
            raise RuntimeError("The consumer was closed.")
        if self._driver is None:
            self._driver = MachineDriver(
                self._settings,
                self.machine,
                self._on_event,
                self._fail,
                memory=self._memory,
                wall=self._wall,
                trace=self._trace,
                idle_s=self.config.connections_max_idle_ms / 1000,
            )
        return self._driver

    def _on_event(self, event: effects.Event) -> None:
        match event:
            case effects.RecordsDelivered(records):
                _settle(self._polled, list(records))
            case effects.ProblemRaised(problem):
                _settle(self._polled, ConsumerError(problem))
            case effects.OffsetsCommitted(commit_id, offsets):
                _settle(self._commits.pop(commit_id, None), offsets)
            case effects.CommitFailed(commit_id, problem):
                _settle(self._commits.pop(commit_id, None), ConsumerError(problem))
            case effects.ConsumerClosed():
                self._closed.set()
            case effects.PartitionsAssigned() | effects.PartitionsRevoked() | effects.PartitionsLost():
                if self._on_change is not None:
                    self._on_change(event)

    def _fail(self, error: Exception) -> None:
        self._broken = self._broken or error
        for waiting in [self._polled, *self._commits.values()]:
            _settle(waiting, error)
        self._commits.clear()


def _settle(waiting: "asyncio.Future[Any] | None", result: object) -> None:
    """Give a result, or an exception, to the call that waits for it, if it still waits."""
    if waiting is None or waiting.done():
        return
    if isinstance(result, Exception):
        waiting.set_exception(result)
    else:
        waiting.set_result(result)


def _from_names(options: dict[str, Any]) -> dict[str, Any]:
    parsed = dict(options)
    if isinstance(parsed.get("auto_offset_reset"), str):
        parsed["auto_offset_reset"] = ResetPolicy.parse(parsed["auto_offset_reset"])
    if isinstance(parsed.get("isolation_level"), str):
        parsed["isolation_level"] = IsolationLevel[parsed["isolation_level"].upper()]
    if isinstance(parsed.get("group_protocol"), str):
        parsed["group_protocol"] = GroupProtocol(parsed["group_protocol"])
    if isinstance(parsed.get("assignors"), list):
        parsed["assignors"] = tuple(parsed["assignors"])
    return parsed
