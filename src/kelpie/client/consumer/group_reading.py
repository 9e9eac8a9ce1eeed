"""Reading as a member of a group, for a program that only wants records: commits go by themselves.

Records are committed when the next poll begins, or in the end. Those that the caller did not get to, because
it asked for fewer or an exception ended it, are not.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kelpie.client.consumer.consumer import Change, Consumer
from kelpie.client.memory import Memory
from kelpie.client.settings import Settings
from kelpie.consumer.effects import ConsumedRecord
from kelpie.consumer.positions.reset_policy import ResetPolicy
from kelpie.consumer.steps import ConsumerStep
from kelpie.model.names import TopicPartition

if TYPE_CHECKING:
    from typing import Self

_SESSION_MS = 10_000
"""Kafka 0.9 allows 30 s at most."""


class GroupReading:
    """`on_step` hears of each step of the consumer, `on_change` of partitions that come and go."""

    def __init__(
        self,
        settings: Settings,
        group: str,
        topics: Sequence[str],
        *,
        reset: ResetPolicy,
        memory: Memory | None = None,
        on_step: Callable[[ConsumerStep], None] | None = None,
        on_change: Callable[[Change], None] | None = None,
    ) -> None:
        """Raises BadConfig."""
        self._consumer = Consumer(
            settings,
            group,
            topics,
            memory=memory,
            on_change=self._changed,
            auto_offset_reset=reset,
            enable_auto_commit=True,
            session_timeout_ms=_SESSION_MS,
        )
        self._on_step = on_step
        self._on_change = on_change
        self._told_until = 0
        self._waiting: list[ConsumedRecord] = []
        """Delivered by the consumer, and not asked for yet."""
        self._handed_out: list[ConsumedRecord] = []

    async def __aenter__(self) -> "Self":
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        unread = [*(self._handed_out if kind is not None else ()), *self._waiting]
        firsts: dict[TopicPartition, int] = {}
        for record in unread:
            firsts.setdefault(TopicPartition(record.topic, record.partition), record.offset)
        for partition, offset in firsts.items():
            if partition in self._consumer.assignment:
                self._consumer.seek(partition, offset)
        await self._consumer.close()
        self._tell_steps()

    async def poll(self, limit_s: float, most: int) -> Sequence[ConsumedRecord]:
        """The next records, as many as asked for at most. Raises ConsumerError."""
        self._handed_out = []
        if not self._waiting:
            try:
                self._waiting = await self._consumer.poll(limit_s)
            finally:
                self._tell_steps()
        self._handed_out, self._waiting = self._waiting[:most], self._waiting[most:]
        return self._handed_out

    def _changed(self, change: Change) -> None:
        self._tell_steps()  # What led to it is told first.
        if self._on_change is not None:
            self._on_change(change)

    def _tell_steps(self) -> None:
        """A step that happens again is counted in the first one, and not told again."""
        new = [step for step in self._consumer.steps if step.at > self._told_until]
        for step in new:
            self._told_until = max(self._told_until, step.at)
            if self._on_step is not None:
                self._on_step(step)
