"""Some servers with one folder and one guardian: what a Kafka cluster and a lone ZooKeeper have in common."""

import shutil
import signal
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from kelpie.real.cluster_errors import ClusterRefused, NodeDied, RealError
from kelpie.real.keeper import Keeper
from kelpie.real.process import Jvm

Kind = Literal[
    "zookeeper", "controller", "broker", "namenode", "datanode", "resourcemanager", "nodemanager", "s3"
]

# A busy machine with few cores needs more than the 2 to 10 s that an idle one takes.
START_LIMIT_S = 120.0
_STOP_LIMIT_S = 60.0
_LOOK_S = 0.1
_ATTEMPTS = 3
# After these lines the server does not start any more, but its process lives: 0.9 hangs in its shutdown, and
# ZooKeeper's other threads outlive its main thread.
_FATAL = ("Fatal error during KafkaServer", "Thread[main,5,main] died")


@dataclass(slots=True)
class FleetNode:
    name: str
    kind: Kind
    port: int
    folder: Path
    process: Jvm | None = None
    listeners: dict[str, int] = field(default_factory=dict)
    """Ports of further listeners, by name."""

    @property
    def up(self) -> bool:
        return self.process is not None and self.process.alive

    @property
    def config(self) -> Path:
        return self.folder / "server.properties"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    def __str__(self) -> str:
        return self.name if self.kind == self.name else f"{self.kind} {self.name}"


class Fleet(ABC):
    """Open it, or use it as a context manager; close it. Nodes are named; a broker's name is its id."""

    def __init__(self, root: Path | None = None) -> None:
        self._chosen_root = root
        self._root: Path | None = None
        self._keeper: Keeper | None = None
        self.nodes: dict[str, FleetNode] = {}
        # Tools that were started beside the nodes, and end with them.
        self._side: list[Jvm] = []

    @abstractmethod
    def _plan(self) -> None:
        """Choose ports, fill `nodes`, write configurations."""

    @abstractmethod
    def _launch(self) -> None:
        """Start all nodes and wait until they serve."""

    @abstractmethod
    def _command(self, node: FleetNode) -> Sequence[str]: ...

    @abstractmethod
    def _complaint(self, node: FleetNode) -> str | None:
        """Why a node does not serve yet."""

    @abstractmethod
    def _before_start(self, node: FleetNode) -> None:
        """Wait until nothing is left of its last run that would make a start fail."""

    @property
    @abstractmethod
    def title(self) -> str: ...

    @property
    @abstractmethod
    def ports_chosen(self) -> bool:
        """A person chose the ports, so another try would not help."""

    @property
    def root(self) -> Path:
        if self._root is None:
            raise RealError(f"{self.title} is not open.")
        return self._root

    def open(self) -> Self:
        if self._root is not None:
            raise RealError(f"{self.title} is already open.")
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._open()
            except NodeDied as died:
                self.close()
                # Between the choice of a port and its use, another process may take it.
                if not died.port_taken or self.ports_chosen or attempt == _ATTEMPTS:
                    raise
            except BaseException:
                self.close()
                raise
            else:
                break
        return self

    def _open(self) -> None:
        self._keeper = Keeper()
        if self._chosen_root is None:
            self._root = Path(tempfile.mkdtemp(prefix="kelpie-real-"))
        else:
            # close() removes it: it must not hold anything that was there before.
            self._chosen_root.mkdir(mode=0o700, parents=True, exist_ok=False)
            self._root = self._chosen_root
        self._keeper.own(self._root)
        self._plan()
        self._launch()

    def close(self) -> None:
        """End all nodes and remove their folder, at once: nothing is worth a clean shutdown."""
        processes = [*self._side, *(node.process for node in self.nodes.values() if node.process)]
        for process in processes:
            process.signal(signal.SIGKILL)
        for process in processes:
            process.kill()
        self._side = []
        self.nodes = {}
        if self._root is not None:
            shutil.rmtree(self._root, ignore_errors=True)
            self._root = None
        if self._keeper is not None:
            self._keeper.clean()
            self._keeper = None

    def detach(self) -> None:
        """Let everything live on without us."""
        for node in self.nodes.values():
            if node.process:
                node.process.let_go()
        if self._keeper is not None:
            self._keeper.release()
            self._keeper = None

    def kill(self, name: str | int) -> None:
        """End a node as a crash would (SIGKILL)."""
        self._running(name).kill()

    def stop(self, name: str | int) -> None:
        """End a node as its operator would (SIGTERM): a broker first hands over its leaderships."""
        process = self._running(name)
        process.signal(signal.SIGTERM)
        if not process.wait(_STOP_LIMIT_S):
            raise RealError(
                f"{self.find(name)} was asked to stop {_STOP_LIMIT_S:.0f} s ago and still runs. "
                f"Kill it if it must end. The end of its log:\n{process.tail()}"
            )

    def pause(self, name: str | int) -> None:
        """Freeze a node (SIGSTOP): its connections stay, and nothing answers."""
        self._running(name).pause()

    def resume(self, name: str | int) -> None:
        self._running(name).signal(signal.SIGCONT)

    def start(self, name: str | int, *, wait: bool = True) -> None:
        """Start a node that is down: same port, same data, same configuration file.

        Without `wait` it may go on failing, as in an incident where what it needs is down as well.
        """
        node = self.find(name)
        if node.up:
            raise ClusterRefused(f"{node} is already up.")
        if wait:
            self._before_start(node)
        self._spawn(node)
        if not wait:
            return
        try:
            self._wait_ready([node])
        except BaseException:
            if node.process:
                node.process.kill()
            raise

    def find(self, name: str | int) -> FleetNode:
        try:
            return self.nodes[str(name)]
        except KeyError:
            raise ClusterRefused(f"There is no node {str(name)!r}. Nodes: {', '.join(self.nodes)}.") from None

    def _running(self, name: str | int) -> Jvm:
        node = self.find(name)
        if node.process is None or not node.up:
            raise ClusterRefused(f"{node} is not up.")
        return node.process

    def _guarded(self) -> Keeper:
        if self._keeper is None:
            self._keeper = Keeper()
        return self._keeper

    def _spawn(self, node: FleetNode) -> None:
        node.process = Jvm.spawn(
            self._command(node), folder=node.folder, log=node.log, keeper=self._guarded()
        )

    def _wait_ready(self, nodes: Iterable[FleetNode], limit_s: float = START_LIMIT_S) -> None:
        watched = list(nodes)
        pending = watched
        deadline = time.monotonic() + limit_s
        while pending:
            complaints = {}
            for node in watched:
                self._require_alive(node)
            for node in pending:
                if complaint := self._complaint(node):
                    complaints[node.name] = complaint
            pending = [node for node in pending if node.name in complaints]
            if pending and time.monotonic() > deadline:
                first = pending[0]
                assert first.process is not None
                raise RealError(
                    f"{self.title}: {first} does not serve after {limit_s:.0f} s: {complaints[first.name]}. "
                    f"The end of its log:\n{first.process.tail()}"
                )
            if pending:
                time.sleep(_LOOK_S)

    def _require_alive(self, node: FleetNode) -> None:
        process = node.process
        assert process is not None
        alive = process.alive
        output = process.said()
        if not alive or any(words in output for words in _FATAL):
            raise NodeDied(
                f"{self.title}: {node} {'failed' if alive else 'ended'} at its start"
                f"{'' if alive else f' (status {process.status})'}. The end of its log:\n{process.tail()}",
                port_taken="Address already in use" in output,
            )

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
