"""Carries out what a machine of `kelpie.consumer` decides: connections, requests, timers.

Each node gets one connection, opened when it is first needed. The driver closes it when a request was not
answered in time: later requests would wait behind that one; and when nothing was asked on it for
connections.max.idle.ms, as the Java client does. The result of every request goes back to the machine, which
decides what follows.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from kelpie.client import client_errors
from kelpie.client.address import Address
from kelpie.client.client_errors import ClientError, TimedOut, Unreadable
from kelpie.client.connection import Connection
from kelpie.client.memory import Memory
from kelpie.client.opening import open_connection
from kelpie.client.settings import Settings
from kelpie.consumer.effects import BrokerNode, Effects, Event, Failure, FailureKind, OutgoingRequest
from kelpie.consumer.pending_requests import Machine
from kelpie.model.time import Instant

_LEAST_ANSWER_S = 0.05
_KINDS = {
    client_errors.TimedOut: FailureKind.TIMED_OUT,
    client_errors.Closed: FailureKind.DISCONNECTED,
    client_errors.Unsupported: FailureKind.UNSUPPORTED,
    client_errors.Unreadable: FailureKind.UNREADABLE,
    client_errors.NotAuthenticated: FailureKind.REFUSED,
    client_errors.TlsFailed: FailureKind.REFUSED,
}


class ConsumerTrace(Protocol):
    """Follows what a consumer does while it does it."""

    def sent(self, request: OutgoingRequest, now: Instant) -> None:
        """A request leaves."""

    def answered(self, request: OutgoingRequest, answer: Any, now: Instant) -> None:
        """The answer to a request; the consumer has not acted on it yet."""

    def happened(self, event: Event, now: Instant) -> None:
        """Partitions come or go, a poll or a commit ends."""


class MachineDriver:
    """`on_event` gets every event; `on_defect` an exception of the machine itself, which is a bug."""

    def __init__(
        self,
        settings: Settings,
        machine: Machine,
        on_event: Callable[[Event], None],
        on_defect: Callable[[Exception], None],
        *,
        memory: Memory | None = None,
        wall: Callable[[], float] = time.time,
        trace: ConsumerTrace | None = None,
        idle_s: float | None = None,
    ) -> None:
        """`idle_s`: after so long without a request, a connection is closed; None: it stays."""
        self._settings = settings
        self._machine = machine
        self._on_event = on_event
        self._on_defect = on_defect
        self._trace = trace
        self._memory = memory or Memory()
        self._loop = asyncio.get_running_loop()
        self._origin = wall() - self._loop.time()
        self._opening: dict[BrokerNode, asyncio.Task[Connection]] = {}
        self._sending: set[asyncio.Task[None]] = set()
        self._idle_s = idle_s
        self._under_way: Counter[BrokerNode] = Counter()
        self._idle: dict[BrokerNode, asyncio.TimerHandle] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._ended = False

    def now(self) -> Instant:
        """Milliseconds since 1970 that never run backwards."""
        return int((self._origin + self._loop.time()) * 1000)

    def do(self, event: Callable[[Instant], Effects]) -> None:
        """Give an event to the machine, and carry out its effects."""
        if self._ended:
            return
        try:
            effects = event(self.now())
            if self._trace is not None:
                for each in effects.events:
                    self._trace.happened(each, effects.now)
                for request in effects.requests:
                    self._trace.sent(request, effects.now)
            for request in effects.requests:
                task = asyncio.create_task(self._send(request))
                self._sending.add(task)
                task.add_done_callback(self._sending.discard)
            self._wake_at(effects.wake_at)
            for each in effects.events:
                self._on_event(each)
        except Exception as error:  # Machines do not raise: this is a bug, and must be seen.
            self._on_defect(error)

    async def end(self) -> None:
        """Close all connections, and stop at once."""
        self._ended = True
        self._wake_at(None)
        for timer in self._idle.values():
            timer.cancel()
        tasks = [*self._sending, *self._opening.values()]
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
            # A millisecond late rather than early: then everything is due that the machine waits for.
            wait_s = max(0.0, (at + 1) / 1000 - self._origin - self._loop.time())
            self._timer = self._loop.call_later(wait_s, self.do, self._machine.woken)

    async def _send(self, request: OutgoingRequest) -> None:
        try:
            with self._in_use(request.node):
                answer = await self._answer(request)
        except ClientError as error:
            failure = Failure(_KINDS.get(type(error), FailureKind.UNREACHABLE), error.reason)
            if isinstance(error, TimedOut | Unreadable):
                await self._disconnect(request.node)
            self.do(lambda now: self._machine.unanswered(request.token, failure, now))
        except Exception as error:  # A request that cannot be encoded, or an answer that nothing expects.
            self._on_defect(error)
        else:
            if self._trace is not None and not self._ended:
                self._trace.answered(request, answer, self.now())
            self.do(lambda now: self._machine.answered(request.token, answer, now))

    async def _answer(self, request: OutgoingRequest) -> Any:
        timeout_s = request.timeout_ms / 1000
        begun = self._loop.time()
        try:
            async with asyncio.timeout(timeout_s):
                connection = await self._connection(request.node)
        except TimeoutError:
            reason = f"{request.node} could not be connected to within {timeout_s:g} s."
            raise TimedOut(reason, Address(request.node.host, request.node.port)) from None
        remaining_s = timeout_s - (self._loop.time() - begun)
        return await connection.put(request.question, max(_LEAST_ANSWER_S, remaining_s))

    @contextmanager
    def _in_use(self, node: BrokerNode) -> Iterator[None]:
        """When the last request to a node has ended, its connection begins to be idle."""
        timer = self._idle.pop(node, None)
        if timer is not None:
            timer.cancel()
        self._under_way[node] += 1
        try:
            yield
        finally:
            self._under_way[node] -= 1
            if not self._under_way[node] and self._idle_s is not None and not self._ended:
                self._idle[node] = self._loop.call_later(self._idle_s, self._idle_for_too_long, node)

    def _idle_for_too_long(self, node: BrokerNode) -> None:
        del self._idle[node]
        task = asyncio.create_task(self._disconnect(node))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _connection(self, node: BrokerNode) -> Connection:
        opening = self._opening.get(node)
        if opening is not None and opening.done():
            usable = _succeeded(opening) and opening.result().is_open
            if not usable or opening.result().session_is_ending:
                opening = None
        if opening is None:
            address = Address(node.host, node.port)
            opening = asyncio.create_task(open_connection(address, self._settings, memory=self._memory))
            self._opening[node] = opening
        return await asyncio.shield(opening)

    async def _disconnect(self, node: BrokerNode) -> None:
        opening = self._opening.get(node)
        if opening is not None and opening.done():
            del self._opening[node]
            if _succeeded(opening):
                await opening.result().close()


def _succeeded(task: "asyncio.Task[Connection]") -> bool:
    return not task.cancelled() and task.exception() is None
