"""A cluster as a client sees it: bootstrap addresses, the brokers they name, one connection to each.

All bootstrap addresses are tried at once and the first that answers wins, so dead ones cost nothing.
Connections to brokers are opened when they are first needed, each once, however many ask at the same time. A
connection that did not come about is remembered, so a dead broker costs one time limit, once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from kelpie.client.address import Address
from kelpie.client.client_errors import ClientError, NoBroker, Unreachable, Unsupported
from kelpie.client.connection import Connection, Counters
from kelpie.client.memory import Memory
from kelpie.client.opening import open_connection
from kelpie.client.other_servers import recognised
from kelpie.client.settings import Settings
from kelpie.client.versions import BrokerVersions
from kelpie.questions.metadata import AskMetadata
from kelpie.questions.question import Question
from kelpie.wire.api.metadata import MetadataResponse

if TYPE_CHECKING:
    from typing import Self

Answer = TypeVar("Answer")
_BROKERS_ONLY = AskMetadata(()).request(0)
MOST_BROKERS = 1000
"""Of one cluster. A broker can name as many others as it likes, at any address; no cluster has more."""


@dataclass(frozen=True, slots=True)
class AnnouncedBroker:
    """A broker, as the cluster announces it."""

    node_id: int
    address: Address
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class Introduction:
    """What a bootstrap address answered first. An empty list of topics means all of them to Kafka 0.9."""

    connection: Connection
    metadata: MetadataResponse


class Nodes:
    """`async with await Nodes.open(settings) as nodes: await nodes.ask(1, ListGroupsRequest())`."""

    def __init__(
        self, settings: Settings, *, counters: Counters | None = None, memory: Memory | None = None
    ) -> None:
        self.settings = settings
        self.counters = counters if counters is not None else Counters()
        self.memory = memory if memory is not None else Memory()
        self.brokers: dict[int, AnnouncedBroker] = {}
        """By node id: those that the cluster listed when it was last asked."""
        self.left_out: set[int] = set()
        """Node ids that brokers named beyond MOST_BROKERS: nothing is asked of them."""
        self.cluster_id: str | None = None
        self.controller_id: int | None = None
        self._connections: dict[int, Connection] = {}
        self._strangers: list[Connection] = []
        self._replaced: list[Connection] = []
        self._opening: dict[int, asyncio.Task[Connection]] = {}
        self._failures: dict[int, ClientError] = {}
        self._introductions: dict[Address, asyncio.Task[Introduction]] = {}

    @classmethod
    async def open(
        cls, settings: Settings, *, counters: Counters | None = None, memory: Memory | None = None
    ) -> "Nodes":
        """Returns as soon as one bootstrap address answers. Raises NoBroker if none does."""
        nodes = cls(settings, counters=counters, memory=memory)
        try:
            await nodes._bootstrap()
        except BaseException:
            await nodes.close()
            raise
        return nodes

    async def ask(
        self, node_id: int, request: Any, version: int | None = None, limit_s: float | None = None
    ) -> Any:
        """One broker's answer. Raises ClientError."""
        connection = await self.connection(node_id)
        return await connection.ask(request, version, limit_s)

    async def put(self, node_id: int, question: Question[Answer], limit_s: float | None = None) -> Answer:
        """One broker's answer to a question. Raises ClientError."""
        return await (await self.connection(node_id)).put(question, limit_s)

    async def ask_any(self, request: Any, version: int | None = None) -> Any:
        """The answer of whichever broker gives one: connected ones first, then the others, one by one."""
        return await self._any(lambda connection: connection.ask(request, version))

    async def put_any(self, question: Question[Answer]) -> Answer:
        """The same, for a question."""
        return await self._any(lambda connection: connection.put(question))

    async def _any(self, ask: Callable[[Connection], Awaitable[Answer]]) -> Answer:
        failures: list[ClientError] = []
        for connection in [*self._strangers, *self._connections.values()]:
            if connection.is_open:
                try:
                    return await ask(connection)
                except ClientError as error:
                    failures.append(error)
        asked = {failure.address for failure in failures}
        for broker in sorted(self.brokers.values(), key=lambda broker: broker.node_id in self._failures):
            if broker.address not in asked:
                try:
                    return await ask(await self.connection(broker.node_id))
                except ClientError as error:
                    failures.append(error)
        raise _none_of("brokers", failures)

    async def connection(self, node_id: int) -> Connection:
        """The connection to a broker, opened if need be; what failed stays failed. Raises ClientError."""
        known = self._connections.get(node_id)
        if known is not None and known.is_open and not known.session_is_ending:
            return known
        failure = self._failures.get(node_id)
        if failure is not None:
            raise failure.with_traceback(None)
        opening = self._opening.get(node_id)
        if opening is None:
            opening = self._opening[node_id] = asyncio.create_task(self._connect(node_id))
            opening.add_done_callback(lambda task: self._opened(node_id, task))
        return await asyncio.shield(opening)

    def name_of(self, node_id: int) -> str:
        """A broker in words: "broker 2 (10.0.0.2:9092)"."""
        broker = self.brokers.get(node_id)
        return f"broker {node_id}" if broker is None else f"broker {node_id:d} ({broker.address})"

    async def versions(self, node_id: int) -> BrokerVersions:
        return (await self.connection(node_id)).versions

    async def introductions(self) -> dict[Address, Introduction | ClientError]:
        """The outcome of each bootstrap address; waits for those that are still being tried."""
        await asyncio.wait(self._introductions.values())
        return {address: _failure(task) or task.result() for address, task in self._introductions.items()}

    def introduced(self) -> list[Introduction]:
        """Those of them that have answered so far."""
        tasks = self._introductions.values()
        return [task.result() for task in tasks if task.done() and task.exception() is None]

    def forget_failures(self, node_ids: Iterable[int] | None = None) -> None:
        """Lets brokers be tried again that could not be reached; all of them if none is named."""
        for node_id in list(self._failures) if node_ids is None else node_ids:
            self._failures.pop(node_id, None)

    async def refresh(self) -> MetadataResponse:
        """Asks any broker for the list of brokers, and uses it from now on."""
        response: MetadataResponse = await self.ask_any(_BROKERS_ONLY)
        await self.learn(response)
        return response

    async def learn(self, metadata: MetadataResponse) -> None:
        """Uses this list of brokers from now on. A broker with a new address is connected to again."""
        moved = []
        brokers = {
            entry.node_id: AnnouncedBroker(entry.node_id, Address(entry.host, entry.port), entry.rack)
            for entry in islice(metadata.brokers, MOST_BROKERS)
        }
        self.left_out = {entry.node_id for entry in metadata.brokers} - brokers.keys()
        for node_id, broker in brokers.items():
            before = self.brokers.get(node_id)
            if before is not None and before.address != broker.address:
                self._failures.pop(node_id, None)
                moved.append(self._connections.pop(node_id, None))
        self.brokers = brokers
        self.cluster_id = metadata.cluster_id or self.cluster_id
        self.controller_id = metadata.controller_id if metadata.controller_id >= 0 else None
        for connection in moved:
            if connection is not None:
                await connection.close()

    def announce(self, broker: AnnouncedBroker) -> AnnouncedBroker | None:
        """Adds a broker that another one names, unless it is known. Returns None if there are too many."""
        if broker.node_id not in self.brokers and len(self.brokers) >= MOST_BROKERS:
            self.left_out.add(broker.node_id)
            return None
        return self.brokers.setdefault(broker.node_id, broker)

    async def close(self) -> None:
        """Ends all connections, and all attempts at some."""
        attempts: list[asyncio.Task[Any]] = [*self._introductions.values(), *self._opening.values()]
        for attempt in attempts:
            attempt.cancel()
        connections = [*self._connections.values(), *self._strangers, *self._replaced]
        for attempt in attempts:
            with suppress(ClientError, asyncio.CancelledError):
                outcome = await attempt
                connections.append(outcome.connection if isinstance(outcome, Introduction) else outcome)
        await asyncio.gather(*(connection.close() for connection in dict.fromkeys(connections)))
        self._connections.clear()
        self._strangers.clear()
        self._replaced.clear()
        # A failure holds functions that it went through, and they hold these nodes.
        self._failures.clear()
        self._introductions.clear()

    async def __aenter__(self) -> "Self":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _bootstrap(self) -> None:
        self._introductions = {
            address: asyncio.create_task(self._introduce(address)) for address in self.settings.bootstrap
        }
        pending: set[asyncio.Task[Introduction]] = set(self._introductions.values())
        while pending:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            won = [task.result() for task in done if task.exception() is None]
            if won:
                await self.learn(won[0].metadata)
                for introduction in won:
                    self._adopt(introduction)
                for task in pending:
                    task.add_done_callback(self._introduced_late)
                return
        failures = [failure for task in self._introductions.values() if (failure := _failure(task))]
        if self.settings.network is None:
            failures = await asyncio.gather(*map(recognised, failures))
        raise _none_of("bootstrap addresses", failures)

    async def _introduce(self, address: Address) -> Introduction:
        connection = await open_connection(address, self.settings, counters=self.counters, memory=self.memory)
        try:
            return Introduction(connection, await connection.ask(_BROKERS_ONLY))
        except BaseException as error:
            if isinstance(error, ClientError) and error.address is None:
                error.address = address
            await connection.close()
            raise

    def _introduced_late(self, task: asyncio.Task[Introduction]) -> None:
        if not task.cancelled() and task.exception() is None:
            self._adopt(task.result())

    def _adopt(self, introduction: Introduction) -> None:
        """A bootstrap address that a broker announces as its own is a connection to that broker."""
        connection = introduction.connection
        for broker in self.brokers.values():
            if broker.address == connection.address:
                if broker.node_id not in self._connections:
                    self._connections[broker.node_id] = connection
                    self._failures.pop(broker.node_id, None)
                    return
                break
        self._strangers.append(connection)

    async def _connect(self, node_id: int) -> Connection:
        broker = self.brokers.get(node_id)
        if broker is None:
            listed = ", ".join(map(str, sorted(self.brokers))) or "none"
            raise Unreachable(
                f"Broker {node_id} is not among those that the cluster lists ({listed}): it is down."
            )
        introduction = self._introductions.get(broker.address)
        if introduction is not None and not introduction.done():
            await asyncio.wait({introduction})
            known = self._connections.get(node_id)
            if known is not None and known.is_open:
                return known
            if failure := _failure(introduction):
                raise failure
        return await open_connection(
            broker.address, self.settings, counters=self.counters, memory=self.memory
        )

    def _opened(self, node_id: int, task: asyncio.Task[Connection]) -> None:
        self._opening.pop(node_id, None)
        if task.cancelled():
            return
        error = task.exception()
        if isinstance(error, ClientError):
            self._failures[node_id] = error
        elif error is None:
            before = self._connections.get(node_id)
            self._connections[node_id] = task.result()
            if before is not None and before is not task.result():
                self._replaced.append(before)  # An answer may still come on it.


def _failure(task: "asyncio.Task[Introduction]") -> ClientError | None:
    error = task.exception()
    if error is not None and not isinstance(error, ClientError):
        raise error
    return error


def _none_of(what: str, failures: list[ClientError]) -> ClientError:
    reasons = list(dict.fromkeys(failure.reason for failure in failures))
    alike = len(reasons) == 1 or (failures and all(isinstance(failure, Unsupported) for failure in failures))
    if alike:
        return failures[0]
    reason = f"None of the {len(failures)} {what} could be asked. {' '.join(reasons)}".strip()
    return NoBroker(reason, causes=failures)
