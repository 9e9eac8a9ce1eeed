"""The lab for code without an event loop: the same cluster, on a loop in a thread of its own.

Every method has the name and the arguments of its twin. It runs on the loop, and returns when it is done.
"""

from collections.abc import Awaitable, Callable
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, Unpack, cast, overload

from kelpie.client.loop_thread import LoopThread
from kelpie.lab.cluster import Cluster
from kelpie.lab.cluster_options import ClusterOptions
from kelpie.lab.faults import Fault, Observation, Observed
from kelpie.lab.lab_errors import LabError

if TYPE_CHECKING:
    from typing import Self

P = ParamSpec("P")
T = TypeVar("T")


class SyncFault:
    """A fault, seen from a thread without the loop."""

    def __init__(self, fault: Fault, thread: LoopThread) -> None:
        self._fault = fault
        self._thread = thread

    @property
    def id(self) -> int:
        return self._fault.id

    @property
    def hits(self) -> int:
        """How often it struck."""
        return self._fault.hits

    @property
    def active(self) -> bool:
        return self._fault.active

    @property
    def requests(self) -> list[Observed]:
        """What an observation has collected so far; empty for other faults."""
        fault = self._fault
        return list(fault.requests) if isinstance(fault, Observation) else []

    def lift(self) -> None:
        """Ends it. Lifting twice, or after the cluster has closed, is harmless."""
        if self._thread.runs:
            self._thread.run(self._fault.lift)

    def wait(self, hits: int = 1, limit_s: float = 30.0) -> None:
        """Return when it has struck that often. Raises TimeoutError when it does not in time."""
        if not self._thread.runs:
            raise LabError("The cluster is closed.")
        self._thread.run(lambda: self._fault.wait(hits, limit_s))

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        self.lift()

    def __str__(self) -> str:
        return str(self._fault)


def _plain(method: "Callable[Concatenate[Cluster, P], T]") -> "Callable[Concatenate[SyncCluster, P], T]":
    """A method that returns plain data."""

    @wraps(method)
    def synchronous(self: "SyncCluster", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.call(lambda: method(self.twin, *args, **kwargs))

    return synchronous


def _awaited(
    method: "Callable[Concatenate[Cluster, P], Awaitable[T]]",
) -> "Callable[Concatenate[SyncCluster, P], T]":
    """A coroutine that returns plain data: `call` awaits it."""
    return _plain(cast("Callable[Concatenate[Cluster, P], T]", method))


def _fault(
    method: "Callable[Concatenate[Cluster, P], Fault | Awaitable[Fault]]",
) -> "Callable[Concatenate[SyncCluster, P], SyncFault]":
    """A method or coroutine that returns a fault."""

    @wraps(method)
    def synchronous(self: "SyncCluster", /, *args: P.args, **kwargs: P.kwargs) -> SyncFault:
        fault: Any = self.call(lambda: method(self.twin, *args, **kwargs))
        return self.wrapped(fault)

    return synchronous


class SyncCluster:
    """A cluster for code without an event loop. Its arguments are those of `Cluster`."""

    def __init__(self, brokers: int = 3, **options: Unpack[ClusterOptions]) -> None:
        self.twin = self._new_twin(brokers, **options)
        """The cluster itself; only the loop's thread may touch it."""
        self._thread = LoopThread("kelpie-lab")

    _new_twin: Callable[..., Cluster] = staticmethod(Cluster)

    def __enter__(self) -> "Self":
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread.runs:
            try:
                self._thread.run(lambda: self.twin.__aexit__(kind, error, trace))
            finally:
                self._thread.stop()

    def open(self) -> "Self":
        """Start all brokers. Raises LabError, and leaves nothing behind then."""
        if self._thread.runs:
            raise LabError("The cluster is open already.")
        self._thread.start()
        try:
            self._thread.run(self.twin.open)
        except BaseException:
            self._thread.stop()
            raise
        return self

    def close(self) -> None:
        """Ends everything. Closing twice is harmless."""
        if self._thread.runs:
            try:
                self._thread.run(self.twin.close)
            finally:
                self._thread.stop()

    @property
    def bootstrap_servers(self) -> str:
        return self.twin.bootstrap_servers

    @property
    def node_ids(self) -> tuple[int, ...]:
        return self.twin.node_ids

    @property
    def control_address(self) -> str | None:
        """Where the control API is, as the beginning of a URL."""
        return self.twin.control_address

    @property
    def faults(self) -> list[SyncFault]:
        """All that were caused, those that have ended too."""
        return self.call(lambda: [self.wrapped(fault) for fault in self.twin.faults])

    is_alive = _plain(Cluster.is_alive)
    describe = _plain(Cluster.describe)
    metrics = _plain(Cluster.metrics)
    scrape = _plain(Cluster.scrape)
    mappings = _awaited(Cluster.mappings)
    create_topic = _plain(Cluster.create_topic)
    wait_until = _awaited(Cluster.wait_until)
    wait_for_group = _awaited(Cluster.wait_for_group)

    kill = _fault(Cluster.kill)
    stop = _fault(Cluster.stop)
    start = _awaited(Cluster.start)
    restart = _awaited(Cluster.restart)
    isolate = _fault(Cluster.isolate)
    rejoin = _plain(Cluster.rejoin)
    wall_off = _fault(Cluster.wall_off)
    freeze_metadata = _fault(Cluster.freeze_metadata)
    thaw_metadata = _plain(Cluster.thaw_metadata)
    lag = _fault(Cluster.lag)
    shrink_isr = _fault(Cluster.shrink_isr)
    make_leaderless = _fault(Cluster.make_leaderless)
    elect = _plain(Cluster.elect)
    slow_load = _fault(Cluster.slow_load)
    lose_offsets = _fault(Cluster.lose_offsets)
    expire_offsets = _fault(Cluster.expire_offsets)
    stall = _fault(Cluster.stall)
    fail = _fault(Cluster.fail)
    delay = _fault(Cluster.delay)
    silence = _fault(Cluster.silence)
    disconnect = _fault(Cluster.disconnect)
    observe = _fault(Cluster.observe)
    hold_mappings = _fault(Cluster.hold_mappings)
    refuse_mappings = _fault(Cluster.refuse_mappings)
    strike = _fault(Cluster.strike)

    @overload
    def call(self, work: Callable[[], Awaitable[T]]) -> T: ...

    @overload
    def call(self, work: Callable[[], T]) -> T: ...

    def call(self, work: Callable[[], Any]) -> Any:
        """Runs something on the loop of the cluster."""
        if not self._thread.runs:
            raise LabError("The cluster is not open.")
        return self._thread.run(work)

    def wrapped(self, fault: Fault) -> SyncFault:
        return SyncFault(fault, self._thread)
