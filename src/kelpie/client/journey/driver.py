"""Carries out what a consumer's machine decides: connections, requests, timers.

One connection to each place, opened when it is first needed, and closed when it broke or a request on it was
not answered in time: what comes after such a request would wait behind it. Whatever becomes of a request goes
back to the machine, which decides what follows.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from kelpie.client.address import Address
from kelpie.client.client_errors import ClientError, TimedOut, Unreadable
from kelpie.client.connection import Connection
from kelpie.client.journey.failures import failure_of
from kelpie.client.journey.trace import Trace
from kelpie.client.memory import Memory
from kelpie.client.settings import Settings
from kelpie.consumer import Ask, Event, Outcome, Place
from kelpie.consumer.machine import Machine
from kelpie.model.time import Instant


class Driver:
    """`tell` gets every event; `defect` what must never happen, an exception of the machine itself."""

    def __init__(
        self,
        settings: Settings,
        machine: Machine,
        tell: Callable[[Event], None],
        defect: Callable[[Exception], None],
        *,
        memory: Memory | None = None,
        wall: Callable[[], float] = time.time,
        trace: Trace | None = None,
    ) -> None:
        self._settings = settings
        self._machine = machine
        self._tell = tell
        self._defect = defect
        self._trace = trace
        self._memory = memory or Memory()
        self._loop = asyncio.get_running_loop()
        self._origin = wall() - self._loop.time()
        self._opening: dict[Place, asyncio.Task[Connection]] = {}
        self._asking: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._ended = False

    def now(self) -> Instant:
        """Milliseconds since 1970 that never run backwards."""
        return int((self._origin + self._loop.time()) * 1000)

    def do(self, event: Callable[[Instant], Outcome]) -> None:
        """Let something happen to the machine, and carry out what follows."""
        if self._ended:
            return
        try:
            now = self.now()
            outcome = event(now)
            if self._trace is not None:
                self._follow(self._trace, outcome, now)
            for ask in outcome.asks:
                task = asyncio.create_task(self._ask(ask))
                self._asking.add(task)
                task.add_done_callback(self._asking.discard)
            self._wake_at(outcome.wake_at)
            for told in outcome.events:
                self._tell(told)
        except Exception as error:  # Nothing here may raise: then it is a mistake of ours, and must be seen.
            self._defect(error)

    async def end(self) -> None:
        """Close all connections, and leave everything where it is."""
        self._ended = True
        self._wake_at(None)
        tasks = [*self._asking, *self._opening.values()]
        connections = [task.result() for task in self._opening.values() if task.done() and _succeeded(task)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(connection.close() for connection in connections))
        self._opening.clear()

    def _wake_at(self, at: Instant | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if at is not None:
            # A millisecond late rather than early: what is due must be due when the machine looks.
            wait_s = max(0.0, (at + 1) / 1000 - self._origin - self._loop.time())
            self._timer = self._loop.call_later(wait_s, self.do, self._machine.woken)

    async def _ask(self, ask: Ask) -> None:
        try:
            answer = await self._answer(ask)
        except ClientError as error:
            failure = failure_of(error)
            if isinstance(error, TimedOut | Unreadable):
                await self._forget(ask.place)
            self.do(lambda now: self._machine.unanswered(ask.token, failure, now))
        except Exception as error:  # A question that cannot be written, or an answer that nobody foresaw.
            self._defect(error)
        else:
            if self._trace is not None and not self._ended:
                self._trace.answered(ask, answer, self.now())
            self.do(lambda now: self._machine.answered(ask.token, answer, now))

    @staticmethod
    def _follow(trace: Trace, outcome: Outcome, now: Instant) -> None:
        for event in outcome.events:
            trace.happened(event, now)
        for ask in outcome.asks:
            trace.sent(ask, now)

    async def _answer(self, ask: Ask) -> Any:
        limit_s = ask.limit_ms / 1000
        begun = self._loop.time()
        try:
            async with asyncio.timeout(limit_s):
                connection = await self._connection(ask.place)
        except TimeoutError:
            reason = f"{ask.place} could not be connected to within {limit_s:g} s."
            raise TimedOut(reason, Address(ask.place.host, ask.place.port)) from None
        return await connection.put(ask.question, max(0.05, limit_s - (self._loop.time() - begun)))

    async def _connection(self, place: Place) -> Connection:
        opening = self._opening.get(place)
        if opening is not None and opening.done():
            usable = _succeeded(opening) and opening.result().is_open
            if not usable or opening.result().session_is_ending:
                opening = None
        if opening is None:
            address = Address(place.host, place.port)
            opening = asyncio.create_task(Connection.open(address, self._settings, memory=self._memory))
            self._opening[place] = opening
        return await asyncio.shield(opening)

    async def _forget(self, place: Place) -> None:
        opening = self._opening.get(place)
        if opening is not None and opening.done():
            del self._opening[place]
            if _succeeded(opening):
                await opening.result().close()


def _succeeded(task: "asyncio.Task[Connection]") -> bool:
    return not task.cancelled() and task.exception() is None
