"""Looking for a coordinator, and nothing else: the consumer's own lookup, for as long as patience lasts."""

import asyncio
import random

from kelpie.client.journey.driver import Driver
from kelpie.client.memory import Memory
from kelpie.client.settings import Settings
from kelpie.consumer import ConsumerConfig, Event, Outcome, Place, Problem, Step, What
from kelpie.consumer.desk import Desk, Turn
from kelpie.consumer.lookup import Lookup
from kelpie.consumer.machine import Machine
from kelpie.consumer.metadata import Metadata
from kelpie.consumer.nodes import Nodes
from kelpie.model.names import TopicPartition


class Finder(Machine):
    """The machine. Its metadata are of no topic: they only tell of brokers."""

    def __init__(self, settings: Settings, group_id: str) -> None:
        unread = TopicPartition("", 0)
        config = ConsumerConfig(
            group_id=group_id,
            partitions=(unread,),
            request_timeout_ms=max(1, int(settings.request_timeout_s * 1000)),
        )
        addresses = [(address.host, address.port) for address in settings.bootstrap]
        super().__init__(Desk(config, Nodes.at(config, addresses, random.randrange)))
        self._metadata = Metadata(self._desk, frozenset())
        self._lookup = Lookup(self._desk, self._metadata, group_id)
        self.problem: Problem | None = None

    @property
    def found(self) -> Place | None:
        return self._lookup.coordinator

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(step for step in self._desk.journal.steps if step.what is What.LOOKUP)

    @property
    def is_over(self) -> bool:
        return self.found is not None or self.problem is not None

    def _end(self, turn: Turn) -> Outcome:
        if turn.problems:
            self.problem = turn.problems[0]
        if self.is_over:
            return turn.outcome(None)
        self._metadata.advance(turn)
        self._lookup.ready(turn)
        due = (self._metadata.deadline(turn.now), self._lookup.deadline(turn.now))
        return turn.outcome(min((at for at in due if at is not None), default=None))


async def find(settings: Settings, memory: Memory, group_id: str, limit_s: float) -> Finder:
    """Look until it is found, hopeless, or the time is up; the finder says which."""
    finder = Finder(settings, group_id)
    defects: list[Exception] = []
    driver = Driver(settings, finder, _ignore, defects.append, memory=memory)
    driver.do(finder.woken)
    try:
        async with asyncio.timeout(limit_s):
            while not finder.is_over and not defects:
                await asyncio.sleep(0.01)
    except TimeoutError:
        pass
    finally:
        await driver.end()
    if defects:
        raise defects[0]
    return finder


def _ignore(event: Event) -> None:
    """There is nobody to tell."""
