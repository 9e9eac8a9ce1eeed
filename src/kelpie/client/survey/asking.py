"""What all parts of a survey share: whom to ask, where to put the rows, who has fallen silent.

A broker that does not answer in time is not asked again in the same survey. So it costs one time limit, once,
however much there would be to ask.
"""

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from kelpie.client.failures import ClientError, Unsupported
from kelpie.client.nodes import Nodes
from kelpie.client.survey.options import SurveyOptions
from kelpie.client.versions import BrokerVersions
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.observations import Observations, Unasked

T = TypeVar("T")
_COLLECT_EVERY = 1_000_000
"""How many objects more than before may be there until Python looks for garbage."""

Clock = Callable[[], Instant]
Answer = tuple[Any, Instant]


class Asking:
    """One survey under way."""

    def __init__(self, nodes: Nodes, options: SurveyOptions, clock: Clock) -> None:
        self.nodes = nodes
        self.options = options
        self.clock = clock
        self.seen = Observations()
        self.versions: dict[int, BrokerVersions] = {}
        """Of the brokers that were reached."""
        self._silent: dict[int, ClientError] = {}

    @property
    def reached(self) -> tuple[int, ...]:
        """The brokers that still answer."""
        return tuple(node for node in self.versions if node not in self._silent)

    def source(self, node_id: int) -> str:
        broker = self.nodes.brokers.get(node_id)
        return f"broker {node_id}" if broker is None else f"broker {node_id} ({broker.address})"

    async def ask(self, node_id: int, request: Any, version: int | None = None) -> Answer:
        """An answer, and when it came. Raises ClientError."""
        silent = self._silent.get(node_id)
        if silent is not None:
            raise silent.with_traceback(None)
        try:
            response = await self.nodes.ask(node_id, request, version)
        except Unsupported:
            raise
        except ClientError as error:
            self._silent.setdefault(node_id, error)
            raise
        return response, self.clock()

    def why_not(self, node_id: int) -> str:
        """Why a broker cannot be asked."""
        failure = self._silent.get(node_id)
        if failure is not None:
            return failure.reason
        return (
            "" if node_id in self.versions else f"broker {node_id} is not among those that the cluster lists"
        )

    def missing(self, node_id: int, failure: ClientError) -> None:
        """This broker could not be reached at all."""
        self._silent.setdefault(node_id, failure)

    def found_again(self, node_id: int) -> None:
        """It has another address than the one that was tried."""
        self._silent.pop(node_id, None)
        self.nodes.forget_failures([node_id])

    def unasked(self, kind: str, names: Sequence[str], reason: str, source: str = "") -> None:
        at = self.clock()
        self.seen.unasked += [Unasked(kind, name, reason, at, source) for name in names]


def chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[at : at + size] for at in range(0, len(items), size))


async def each(jobs: Iterator[T] | Sequence[T], work: Callable[[T], Awaitable[None]], width: int = 1) -> None:
    """Works on all jobs, on `width` of them at a time. The next one is begun when one is done."""
    left = iter(jobs)

    async def go() -> None:
        for job in left:
            await work(job)

    await together(*(go() for _ in range(width)))


async def together(*parts: Awaitable[None]) -> None:
    """All at once. What goes wrong in one by our own fault is raised when all have ended."""
    outcomes = await asyncio.gather(*parts, return_exceptions=True)
    for outcome in outcomes:
        if outcome is not None:
            raise outcome


@contextmanager
def few_collections() -> Iterator[None]:
    """Rows are made by the hundred thousand, and none of them is garbage: looking for it doubles the time."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], _COLLECT_EVERY), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def error_of(code: int) -> ErrorCode:
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
