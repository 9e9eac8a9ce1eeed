"""One round of questions to a cluster: which brokers answer, the rows so far, which brokers are silent.

A broker that does not answer in time is not asked again in the same round. So a dead broker costs one time
limit, however many questions there are. A survey gives it a second chance: once in a round, what it did not
answer in time is asked again within one more time limit. A pause of its garbage collector then costs seconds,
and not all that the broker knows; a broker that is stuck costs two or three limits. Requests that change
something are never sent twice.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from kelpie.client.client_errors import ClientError, TimedOut, Unsupported
from kelpie.client.connection import Connection
from kelpie.client.nodes import Nodes
from kelpie.client.versions import BrokerVersions
from kelpie.errors import ErrorCode
from kelpie.model.names import PartitionNames
from kelpie.model.time import Instant
from kelpie.observations import Observations, Unasked
from kelpie.questions.question import Question
from kelpie.wire.api.metadata import MetadataResponseTopic

Answer = TypeVar("Answer")
T = TypeVar("T")
AT_ONCE = 100
"""So many brokers are connected to at a time: each takes a file of the few that a process may have open."""
GROUPS_PER_REQUEST = 2000
PARTITIONS_PER_REQUEST = 5000

Clock = Callable[[], Instant]
TimedAnswer = tuple[Any, Instant]


def wall_clock() -> Instant:
    return time.time_ns() // 1_000_000


class Asking:
    """One round. Rows go to `seen` and `changes`; what could not be asked goes to `seen.unasked`."""

    def __init__(
        self,
        nodes: Nodes,
        clock: Clock = wall_clock,
        *,
        groups_per_request: int = GROUPS_PER_REQUEST,
        partitions_per_request: int = PARTITIONS_PER_REQUEST,
        second_chance: bool = False,
        by_group: bool = False,
    ) -> None:
        """`second_chance`: what a broker did not answer in time is asked again, for one more time limit.

        `by_group`: committed offsets become one row for each group (`Observations.group_offsets`).
        """
        self.nodes = nodes
        self.clock = clock
        self.groups_per_request = groups_per_request
        self.partitions_per_request = partitions_per_request
        self.seen = Observations()
        self.changes: list[Any] = []
        """A PartitionChange for each partition that was to change, a CoordinatorAnswer for each group."""
        self.versions: dict[int, BrokerVersions] = {}
        """Of the brokers that were reached."""
        self.all_topics: dict[int, dict[str, MetadataResponseTopic]] = {}
        """By broker, where a broker had to be asked for all topics (before Kafka 2.1)."""
        self.lasting: set[str] = set()
        """Names of groups and partitions that would fail again: the release does not know the request."""
        self.by_group = by_group
        self.names = PartitionNames()
        self._silent: dict[int, ClientError] = {}
        self._second_chance = second_chance
        self._chances_end: dict[int, float] = {}
        """By broker that did not answer in time once: until when it is asked again, by the loop's clock."""

    @property
    def reached(self) -> tuple[int, ...]:
        """The brokers that still answer."""
        return tuple(node for node in self.versions if node not in self._silent)

    def source(self, node_id: int) -> str:
        return self.nodes.name_of(node_id)

    async def meet(self) -> None:
        """Connects to all brokers that the cluster lists. A broker that fails is silent in this round."""

        async def connect(node_id: int) -> None:
            try:
                await self.connect(node_id)
            except ClientError as error:
                self.missing(node_id, error)

        await each(list(self.nodes.brokers), connect, AT_ONCE)

    async def connect(self, node_id: int) -> Connection:
        """The connection to a broker, within the limit of one request. Raises ClientError."""
        limit_s = self.nodes.settings.request_timeout_s
        try:
            connection = await self._connected(node_id, limit_s)
        except TimedOut:
            left_s = self._left_s(node_id)
            if left_s <= 0:
                raise
            self.nodes.forget_failures([node_id])
            connection = await self._connected(node_id, left_s)
        self.versions[node_id] = connection.versions
        return connection

    async def _connected(self, node_id: int, limit_s: float) -> Connection:
        try:
            async with asyncio.timeout(limit_s):
                return await self.nodes.connection(node_id)
        except TimeoutError:
            address = self.nodes.brokers[node_id].address
            raise TimedOut(f"{address} was not ready within {limit_s:g} s.", address) from None

    def _left_s(self, node_id: int) -> float:
        """Of the time for which a broker is asked again that has just not answered in time."""
        if not self._second_chance:
            return 0.0
        now = asyncio.get_running_loop().time()
        limit_s = self.nodes.settings.request_timeout_s
        return self._chances_end.setdefault(node_id, now + limit_s) - now

    async def ask(
        self, node_id: int, request: Any, version: int | None = None, limit_s: float | None = None
    ) -> TimedAnswer:
        """An answer, and when it came. Raises ClientError."""
        silent = self._silent.get(node_id)
        if silent is not None:
            raise silent.with_traceback(None)
        try:
            response = await self._ask(node_id, request, version, limit_s)
        except Unsupported:
            raise
        except ClientError as error:
            self._silent.setdefault(node_id, error)
            raise
        return response, self.clock()

    async def _ask(self, node_id: int, request: Any, version: int | None, limit_s: float | None) -> Any:
        try:
            return await self.nodes.ask(node_id, request, version, limit_s)
        except TimedOut as error:
            left_s = self._left_s(node_id)
            if left_s <= 0 or node_id in self._silent:
                raise
            try:
                return await self.nodes.ask(node_id, request, version, left_s)
            except TimedOut:
                raise error from None  # Its text has the whole limit.

    async def put(self, node_id: int, question: Question[Answer]) -> tuple[Answer, Instant]:
        """The answer to a question, and when it came. Raises ClientError."""
        version = self.versions[node_id].pick_for(question)
        response, at = await self.ask(node_id, question.request(version), version)
        return (await self.nodes.connection(node_id)).read(question, response, version), at

    def why_not(self, node_id: int) -> str:
        """Why a broker cannot be asked."""
        failure = self._silent.get(node_id)
        if failure is not None:
            return failure.reason
        is_listed = node_id in self.versions
        return "" if is_listed else f"broker {node_id} is not among those that the cluster lists"

    def missing(self, node_id: int, failure: ClientError) -> None:
        """This broker could not be reached at all."""
        self.versions.pop(node_id, None)
        self._silent.setdefault(node_id, failure)

    def moved(self, node_id: int) -> None:
        """The broker has another address than the one that was tried."""
        self._silent.pop(node_id, None)
        self.nodes.forget_failures([node_id])

    def unasked(self, kind: str, names: Iterable[object], reason: str, source: str = "") -> None:
        at = self.clock()
        self.seen.unasked += [Unasked(kind, str(name), reason, at, source) for name in names]

    def answered(
        self, asked: Sequence[str], entries: Iterable[T], group_of: Callable[[T], str], source: str, why: str
    ) -> list[T]:
        """The entries of an answer about the groups that were asked for, each once.

        A group that the answer leaves out becomes an Unasked row; one that was not asked for is not believed.
        """
        left = dict.fromkeys(asked)
        taken = []
        for entry in entries:
            group = group_of(entry)
            if group in left:
                del left[group]
                taken.append(entry)
        self.unasked("group", left, f"{why} Its answer leaves the group out.", source)
        return taken

    @contextmanager
    def noting(self, kind: str, names: Iterable[object], source: str = "", why: str = "") -> Iterator[None]:
        """A failure inside becomes an Unasked row for each name. `why` goes before its reason."""
        try:
            yield
        except ClientError as error:
            self.unasked(kind, names, f"{why} {error.reason}".lstrip(), source)
            if isinstance(error, Unsupported):
                self.lasting.update(map(str, names))


def chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[at : at + size] for at in range(0, len(items), size))


async def each(jobs: Iterator[T] | Sequence[T], work: Callable[[T], Awaitable[None]], width: int = 1) -> None:
    """Works on all jobs, on `width` of them at a time."""
    left = iter(jobs)

    async def go() -> None:
        for job in left:
            await work(job)

    workers = min(width, len(jobs)) if isinstance(jobs, Sequence) else width
    await together(*(go() for _ in range(workers)))


async def together(*parts: Awaitable[None]) -> None:
    """All at once. An exception of one part is raised when all parts have ended."""
    outcomes = await asyncio.gather(*parts, return_exceptions=True)
    for outcome in outcomes:
        if outcome is not None:
            raise outcome


def error_of(code: int) -> ErrorCode:
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
