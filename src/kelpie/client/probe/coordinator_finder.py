"""Finds a coordinator and does nothing else: the consumer's own lookup, within a time limit."""

import asyncio
import random

from kelpie.client.consumer.machine_driver import MachineDriver
from kelpie.client.memory import Memory
from kelpie.client.settings import Settings
from kelpie.consumer.broker_connections import BrokerConnections
from kelpie.consumer.config import ConsumerConfig
from kelpie.consumer.coordinator_lookup import CoordinatorLookup
from kelpie.consumer.effects import BrokerNode, Effects, Problem
from kelpie.consumer.metadata import ConsumerMetadata
from kelpie.consumer.pending_requests import Machine, PendingRequests
from kelpie.consumer.steps import ConsumerStep, StepKind
from kelpie.model.names import TopicPartition


class CoordinatorFinder(Machine):
    """Its metadata is of no topic: it is asked for the brokers only."""

    def __init__(self, settings: Settings, group_id: str) -> None:
        unread = TopicPartition("", 0)
        config = ConsumerConfig(
            group_id=group_id,
            partitions=(unread,),
            request_timeout_ms=max(1, int(settings.request_timeout_s * 1000)),
        )
        addresses = [(address.host, address.port) for address in settings.bootstrap]
        super().__init__(PendingRequests(config, BrokerConnections.at(config, addresses, random.randrange)))
        self._metadata = ConsumerMetadata(self._requests, frozenset())
        self._lookup = CoordinatorLookup(self._requests, self._metadata, group_id)
        self.problem: Problem | None = None

    @property
    def coordinator(self) -> BrokerNode | None:
        return self._lookup.coordinator

    @property
    def steps(self) -> tuple[ConsumerStep, ...]:
        return tuple(step for step in self._requests.history.steps if step.kind is StepKind.LOOKUP)

    @property
    def is_over(self) -> bool:
        return self.coordinator is not None or self.problem is not None

    def _advance(self, effects: Effects) -> Effects:
        if effects.problems:
            self.problem = effects.problems[0]
        if not self.is_over:
            self._metadata.advance(effects)
            self._lookup.ready(effects)
            due = (self._metadata.deadline(effects.now), self._lookup.deadline(effects.now))
            effects.wake_at = min((at for at in due if at is not None), default=None)
        return effects


async def find_coordinator(
    settings: Settings, memory: Memory, group_id: str, limit_s: float
) -> CoordinatorFinder:
    """Search until the coordinator is found, a problem ends the search, or the time is up."""
    finder = CoordinatorFinder(settings, group_id)
    defects: list[Exception] = []
    driver = MachineDriver(settings, finder, lambda _: None, defects.append, memory=memory)
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
