"""Faults: what a test breaks in a cluster, how often it struck a request, and how it ends.

A fault lives on the loop of its cluster. It begins when it is made, and ends when it is lifted, when its
count is used up, or with the cluster. As a context manager it is lifted at the end of the block.
"""

import asyncio
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal, Protocol

from kelpie.errors import ErrorCode
from kelpie.lab.lab_errors import LabError
from kelpie.lab.matching import Filter, NamesOfTopics
from kelpie.model.time import Instant
from kelpie.wire.framing import RequestHeader

if TYPE_CHECKING:
    from typing import Self

MOST_OBSERVED = 100_000
MOST_REMEMBERED = 1_000


class Subject(Protocol):
    """A connection, as faults see it."""

    node_id: int
    client_id: str | None
    groups: set[str]

    def review(self) -> None: ...


class Fault:
    """A fault of a cluster until it is lifted."""

    def __init__(self, what: str, undo: Callable[[], None] | None = None) -> None:
        self.id = 0
        self.what = what
        self.hits = 0
        """How often it struck."""
        self.active = True
        self.registry: Faults | None = None
        self._undo = undo
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []

    def lift(self) -> None:
        """Ends it. Lifting what has ended is harmless."""
        self._end()

    def _end(self) -> None:
        if self.active:
            self.active = False
            if self.registry is not None:
                self.registry.ended(self)
            if self._undo is not None:
                self._undo()

    async def wait(self, hits: int = 1, limit_s: float = 30.0) -> None:
        """Return when it has struck that often. Raises TimeoutError when it does not in time."""
        if self.hits >= hits:
            return
        reached = asyncio.get_running_loop().create_future()
        self._waiters.append((hits, reached))
        try:
            await asyncio.wait_for(reached, limit_s)
        except TimeoutError:
            raise TimeoutError(
                f"{self} struck {self.hits} times within {limit_s} s; {hits} were waited for"
            ) from None
        finally:
            self._waiters = [waiter for waiter in self._waiters if waiter[1] is not reached]

    def strike(self, times: int = 1) -> None:
        self.hits += times
        for hits, reached in self._waiters:
            if self.hits >= hits and not reached.done():
                reached.set_result(None)

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        self.lift()

    def __str__(self) -> str:
        return f"fault {self.id} ({self.what})"


@dataclass(frozen=True, slots=True)
class Action:
    """What happens to a request: an error, a delay, no answer at all, or the end of its connection."""

    kind: Literal["error", "delay", "silence", "disconnect"]
    code: ErrorCode = ErrorCode.NONE
    delay_ms: int | None = None
    """None: until the fault is lifted."""
    after: bool = False
    """The broker does its work, and the fault strikes the answer."""

    def __str__(self) -> str:
        match self.kind:
            case "error":
                text = f"error {self.code} {ErrorCode(self.code).name}"
            case "delay":
                text = "held until lifted" if self.delay_ms is None else f"delay of {self.delay_ms} ms"
            case _:
                text = self.kind
        return f"{text} after the work is done" if self.after else text


class Circumstance(Fault):
    """Strikes each request that concerns it, as a fault of a broker or a partition does."""

    def __init__(
        self, what: str, wanted: Filter, name_of: NamesOfTopics, undo: Callable[[], None] | None = None
    ) -> None:
        super().__init__(what, undo)
        self._wanted = wanted
        self._name_of = name_of

    def concerns(self, node_id: int, header: RequestHeader, message: Any) -> bool:
        return self._wanted.matches(node_id, header, message, self._name_of)


class RequestFault(Circumstance):
    """Strikes requests that match a filter; `count` is how many at most."""

    def __init__(self, wanted: Filter, action: Action, count: int | None, name_of: NamesOfTopics) -> None:
        super().__init__(f"{action} for {wanted}", wanted, name_of)
        self.action = action
        self._left = count
        self._held: dict[Callable[[], None], asyncio.TimerHandle | None] = {}

    def strike(self, times: int = 1) -> None:
        super().strike(times)
        if self._left is not None:
            self._left -= times
            if self._left <= 0:
                self._end()  # What it holds already stays held for its time.

    def hold(self, release: Callable[[], None], delay_ms: int | None) -> None:
        """Keeps a request for the delay, or until the fault is lifted."""
        timer = None
        if delay_ms is not None:
            loop = asyncio.get_running_loop()
            timer = loop.call_later(delay_ms / 1000, self._release, release)
        self._held[release] = timer

    def lift(self) -> None:
        super().lift()
        for release in tuple(self._held):
            self._release(release)

    def forget(self) -> None:
        """The cluster ends: requests that are held are dropped."""
        for timer in self._held.values():
            if timer is not None:
                timer.cancel()
        self._held.clear()

    def _release(self, release: Callable[[], None]) -> None:
        timer = self._held.pop(release, None)
        if timer is not None:
            timer.cancel()
        release()


@dataclass(frozen=True, slots=True)
class Observed:
    """A request as a broker got it."""

    at: Instant
    node_id: int
    header: RequestHeader
    request: Any


class Observation(Circumstance):
    """Collects the requests that match a filter, and lets them pass."""

    def __init__(self, wanted: Filter, name_of: NamesOfTopics) -> None:
        super().__init__(f"observe {wanted}", wanted, name_of)
        self.requests: list[Observed] = []

    def note(self, observed: Observed) -> None:
        if len(self.requests) >= MOST_OBSERVED:
            del self.requests[: MOST_OBSERVED // 10]
        self.requests.append(observed)
        self.strike()


class Stall(Fault):
    """Connections on which nothing is read or written: what a garbage collection looks like from outside.

    It strikes once for each connection that it holds.
    """

    def __init__(self, wanted: Filter, undo: Callable[[], None]) -> None:
        if wanted.api is not None or wanted.topic is not None:
            raise LabError("A stall holds whole connections: choose them by node, client or group.")
        super().__init__(f"stall of {'all connections' if wanted == Filter() else wanted}", undo)
        self._wanted = wanted
        self._struck: weakref.WeakSet[Subject] = weakref.WeakSet()

    def holds(self, connection: Subject) -> bool:
        # A stall of one group holds each connection that has named the group, now or later.
        wanted = self._wanted
        if wanted.node is not None and connection.node_id != wanted.node:
            return False
        if wanted.client is not None and not fnmatchcase(connection.client_id or "", wanted.client):
            return False
        if wanted.group is not None and not any(
            fnmatchcase(group, wanted.group) for group in connection.groups
        ):
            return False
        if connection not in self._struck:
            self._struck.add(connection)
            self.strike()
        return True


class Faults:
    """All faults of a cluster."""

    def __init__(self, now: Callable[[], Instant], name_of: NamesOfTopics) -> None:
        self.name_of = name_of
        self.all: dict[int, Fault] = {}
        """By id, those that have ended too."""
        self.watching: list[Circumstance] = []
        self.stalls: list[Stall] = []
        self._by_error: list[tuple[int, Fault]] = []
        self._now = now
        self._next_id = 1

    def add(self, fault: Fault) -> None:
        fault.id = self._next_id
        fault.registry = self
        self._next_id += 1
        self.all[fault.id] = fault
        if isinstance(fault, Circumstance):
            self.watching.append(fault)
        elif isinstance(fault, Stall):
            self.stalls.append(fault)

    def ended(self, fault: Fault) -> None:
        """It strikes no more. Its count of hits can still be read, unless there are very many faults."""
        if len(self.all) > MOST_REMEMBERED:
            oldest = next((old.id for old in self if not old.active), fault.id)
            self.all.pop(oldest, None)
        if fault in self.watching:
            self.watching.remove(fault)
        if fault in self.stalls:
            self.stalls.remove(fault)
        self._by_error = [entry for entry in self._by_error if entry[1] is not fault]

    def count_errors(self, code: int, fault: Fault) -> None:
        """The fault strikes whenever a response carries this error."""
        self._by_error.append((code, fault))

    def strike(self, connection: Subject, header: RequestHeader, message: Any) -> RequestFault | None:
        """The first fault that hits this request, if any. Observations always collect the request."""
        struck: RequestFault | None = None
        for fault in tuple(self.watching):
            if struck is not None and isinstance(fault, RequestFault):
                continue
            if not fault.concerns(connection.node_id, header, message):
                continue
            if isinstance(fault, Observation):
                fault.note(Observed(self._now(), connection.node_id, header, message))
            else:
                fault.strike()
                if isinstance(fault, RequestFault):
                    struck = fault
        return struck

    def answered(self, errors: list[int]) -> None:
        for code, fault in self._by_error:
            if code in errors:
                fault.strike()

    def is_stalled(self, connection: Subject) -> bool:
        # Every stall is asked, so that each counts the connections that it holds.
        return sum(stall.holds(connection) for stall in self.stalls) > 0

    def close(self) -> None:
        for fault in self:
            fault.active = False
            if isinstance(fault, RequestFault):
                fault.forget()
        self.watching.clear()
        self.stalls.clear()

    def __iter__(self) -> Iterator[Fault]:
        return iter(tuple(self.all.values()))
