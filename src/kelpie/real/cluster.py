"""A real Kafka cluster on loopback: any release of the catalogue, one or several brokers.

Brokers are the nodes "1", "2", … Up to 3.9 there is a node "zookeeper" beside them. With KRaft a lone broker
is its own controller; as soon as there are several, the controller is a node "controller" of its own, so
that brokers can be killed without losing the quorum.
"""

import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kelpie.real import (
    class_archive,
    fetch,
    java,
    kraft_storage,
    metadata_probe,
    ports,
    properties,
    releases,
    zookeeper,
)
from kelpie.real.cluster_errors import ClusterRefused, RealError
from kelpie.real.fleet import Fleet, FleetNode
from kelpie.real.process import Jvm

MOST_BROKERS = 16
_HEAP_MB = 512
_EXPIRY_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class ToolResult:
    status: int
    stdout: str
    stderr: str


class RealCluster(Fleet):
    """`with RealCluster("0.9.0.1", brokers=3) as cluster:`. Raises `Unavailable` where it cannot be had.

    `listeners` are further ones, by the name of their security protocol (SASL_PLAINTEXT, SSL, SASL_SSL); what
    they need goes into `config`. The brokers themselves, and clients by default, use PLAINTEXT.

    `archive_classes`: before it is used, make what later starts of this release are quicker with, once.
    """

    def __init__(
        self,
        version: str = "4.3.1",
        brokers: int = 1,
        *,
        config: Mapping[str, object] | None = None,
        port: int | None = None,
        root: Path | None = None,
        jvm_options: Sequence[str] = (),
        listeners: Sequence[str] = (),
        announce: Callable[[str], None] | None = None,
        archive_classes: bool = False,
    ) -> None:
        super().__init__(root)
        self.release = releases.find(version)
        if not 1 <= brokers <= MOST_BROKERS:
            raise ClusterRefused(f"A cluster has 1 to {MOST_BROKERS} brokers, not {brokers}.")
        self.size = brokers
        self.settings = properties.checked(config or {})
        self.jvm_options = tuple(jvm_options)
        self.further_listeners = tuple(listeners)
        self._first_port = port
        self._announce = announce
        self._archives_classes = archive_classes
        self._cluster_id = kraft_storage.random_id()
        self._opening = True

    @property
    def title(self) -> str:
        return f"Kafka {self.release.version}"

    @property
    def ports_chosen(self) -> bool:
        return self._first_port is not None

    @property
    def brokers(self) -> list[FleetNode]:
        return [node for node in self.nodes.values() if node.kind == "broker"]

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{ports.HOST}:{node.port}" for node in self.brokers)

    def addresses(self, listener: str) -> str:
        """Bootstrap servers of one of the further listeners."""
        return ",".join(f"{ports.HOST}:{node.listeners[listener]}" for node in self.brokers)

    @property
    def zookeeper_connect(self) -> str | None:
        node = self.nodes.get("zookeeper")
        return f"{ports.HOST}:{node.port}" if node else None

    def adopt(self, root: Path, nodes: Sequence[FleetNode]) -> None:
        """Take over a cluster that an earlier command has opened."""
        self._root = root
        self.nodes = {node.name: node for node in nodes}
        self._opening = False

    def tool(self, name: str, *arguments: str, stdin: str = "", limit_s: float = 60.0) -> ToolResult:
        """Run one of the release's own console tools to its end: `tool("kafka-topics", "--list")`.

        By the name of its script or by its class. The cluster's address is added unless one is given.
        """
        process, folder = self._run_tool(name, arguments, stdin)
        try:
            ended = process.wait(limit_s)
            stdout, stderr = (
                (folder / stream).read_text(errors="replace") for stream in ("stdout", "stderr")
            )
            if not ended:
                raise RealError(
                    f"{name} of {self.title} did not end within {limit_s:.0f} s. It said:\n"
                    f"{process.tail()}\n{stderr[-1000:]}"
                )
            return ToolResult(process.status or 0, stdout, stderr)
        finally:
            process.kill()
            shutil.rmtree(folder, ignore_errors=True)

    def spawn_tool(self, name: str, *arguments: str, stdin: str = "") -> Jvm:
        """Start a tool and leave it running, say a consumer. `said()` is its standard output so far."""
        return self._run_tool(name, arguments, stdin)[0]

    def tool_command(self, name: str, arguments: Sequence[str]) -> list[str]:
        main, arguments = releases.resolve_tool(
            self.release,
            name,
            arguments,
            bootstrap=self.bootstrap_servers,
            zookeeper=self.zookeeper_connect,
        )
        return [*self._java(main, heap_mb=256, logging="tools"), *arguments]

    def _run_tool(self, name: str, arguments: Sequence[str], stdin: str) -> tuple[Jvm, Path]:
        command = self.tool_command(name, arguments)
        folder = Path(tempfile.mkdtemp(prefix="tool-", dir=self.root))
        (folder / "stdin").write_text(stdin)
        process = Jvm.spawn(
            command,
            folder=folder,
            log=folder / "stdout",
            errors=folder / "stderr",
            stdin=folder / "stdin",
            keeper=self._guarded(),
        )
        self._side.append(process)
        return process, folder

    def _plan(self) -> None:
        self._libraries()
        self._write_logging()
        numbers = self._choose_ports()
        if self.release.quorum == "kraft":
            self._plan_kraft(numbers)
        else:
            self._plan_zookeeper(numbers)

    def _choose_ports(self) -> list[int]:
        """Those of the brokers, and one more."""
        if self._first_port is None:
            return ports.free(self.size + 1)
        chosen = list(range(self._first_port, self._first_port + self.size))
        ports.require(chosen)
        other = next(port for port in ports.free(self.size + 1) if port not in chosen)
        return [*chosen, other]

    def _plan_kraft(self, numbers: Sequence[int]) -> None:
        *broker_ports, controller_port = numbers
        alone = self.size == 1
        controller_id = 1 if alone else properties.CONTROLLER_ID
        quorum = f"{controller_id}@{ports.HOST}:{controller_port}"
        if not alone:
            node = self._add(FleetNode("controller", "controller", controller_port, self.root / "controller"))
            listeners = {"CONTROLLER": controller_port}
            self._configure(node, properties.kraft(controller_id, "controller", listeners, node.data, quorum))
        for number, port in enumerate(broker_ports, start=1):
            node = self._add_broker(number, port)
            listeners = {"PLAINTEXT": port} | node.listeners
            listeners |= {"CONTROLLER": controller_port} if alone else {}
            roles = "broker,controller" if alone else "broker"
            self._configure(node, properties.kraft(number, roles, listeners, node.data, quorum))

    def _plan_zookeeper(self, numbers: Sequence[int]) -> None:
        *broker_ports, keeper_port = numbers
        keeper = self._add(FleetNode("zookeeper", "zookeeper", keeper_port, self.root / "zookeeper"))
        keeper.config.write_text(properties.text(properties.zookeeper(keeper_port, keeper.data)))
        connect = {"zookeeper.connect": f"{ports.HOST}:{keeper_port}"}
        for number, port in enumerate(broker_ports, start=1):
            node = self._add_broker(number, port)
            settings = properties.broker(self.release, number, port, node.data, node.listeners)
            self._configure(node, settings | connect)

    def _add_broker(self, number: int, port: int) -> FleetNode:
        further = self.further_listeners
        chosen = dict(zip(further, ports.free(len(further)) if further else (), strict=True))
        folder = self.root / str(number)
        return self._add(FleetNode(str(number), "broker", port, folder, listeners=chosen))

    def _add(self, node: FleetNode) -> FleetNode:
        node.folder.mkdir()
        self.nodes[node.name] = node
        return node

    def _configure(self, node: FleetNode, settings: Mapping[str, object]) -> None:
        values = {**properties.defaults(self.release, self.size), **self.settings, **settings}
        node.config.write_text(properties.text(values))

    def _launch(self) -> None:
        if self.release.quorum == "kraft":
            self._format()
        else:
            self._spawn(self.nodes["zookeeper"])
            self._wait_ready([self.nodes["zookeeper"]])
        for node in self.nodes.values():
            if node.process is None:
                self._spawn(node)
        self._wait_ready(self.nodes.values())
        self._opening = False
        if self._archives_classes and class_archive.is_missing(self._libraries()):
            self.tool("kafka-topics", "--list")  # What tools load is listed, too.
            class_archive.make(self._libraries(), self.root)

    def _format(self) -> None:
        """KRaft wants its data folders formatted. Kafka's tool does it once for each release."""
        first = self.nodes.get("controller") or self.nodes["1"]
        for node in self.brokers:
            if node is not first:
                kraft_storage.identify(node.data, self._cluster_id, int(node.name))
        known = kraft_storage.first_records(self._libraries())
        if known is not None:
            node_id = 1 if first.kind == "broker" else properties.CONTROLLER_ID
            kraft_storage.identify(first.data, self._cluster_id, node_id)
            kraft_storage.begin(first.data, known)
            return
        result = self.tool("kafka-storage", "format", "-t", self._cluster_id, "-c", str(first.config))
        if result.status:
            raise RealError(f"{self.title} could not format {first.data}:\n{result.stdout}{result.stderr}")
        kraft_storage.keep_first_records(first.data, self._libraries())

    def _libraries(self) -> Path:
        return fetch.libraries(self.release.version, self.release.jars, announce=self._announce)

    def _write_logging(self) -> None:
        text = properties.log4j2 if self.release.logging == "log4j2" else properties.log4j
        self._logging_file("server").write_text(text("INFO", "System.out"))
        self._logging_file("tools").write_text(text("WARN", "System.err"))

    def _logging_file(self, purpose: str) -> Path:
        return self.root / f"{purpose}-{self.release.logging}.properties"

    def _java(self, main: str, *, heap_mb: int, logging: str, options: Sequence[str] = ()) -> list[str]:
        prop = "log4j2.configurationFile" if self.release.logging == "log4j2" else "log4j.configuration"
        return java.command(
            f"{self._libraries()}/*",
            main,
            heap_mb=heap_mb,
            options=(
                *self._class_options(),
                f"-D{prop}={self._logging_file(logging).as_uri()}",
                f"-Djava.io.tmpdir={self.root}",  # Codecs unpack libraries; a killed JVM leaves them there.
                *options,
            ),
        )

    def _class_options(self) -> Sequence[str]:
        options = class_archive.options(self._libraries())
        if not options and self._archives_classes and self._opening:
            return class_archive.recording(self.root)
        return options

    def _command(self, node: FleetNode) -> Sequence[str]:
        if node.kind == "zookeeper":
            command = self._java(
                zookeeper.MAIN, heap_mb=zookeeper.HEAP_MB, logging="server", options=zookeeper.OPTIONS
            )
        else:
            command = self._java("kafka.Kafka", heap_mb=_HEAP_MB, logging="server", options=self.jvm_options)
        return [*command, str(node.config)]

    def _before_start(self, node: FleetNode) -> None:
        """A killed broker's registration lives as long as its session; until then the old releases refuse to
        start ("A broker is already registered"). With KRaft a broker knows how to wait by itself.
        """
        keeper = self.nodes.get("zookeeper")
        if node.kind != "broker" or keeper is None or not keeper.up:
            return
        deadline = time.monotonic() + _EXPIRY_LIMIT_S
        while _registration(node) in zookeeper.sessions(keeper.port):
            if time.monotonic() > deadline:
                raise RealError(
                    f"{node} cannot start: ZooKeeper has held the session of its last run for "
                    f"{_EXPIRY_LIMIT_S:.0f} s. Is zookeeper.session.timeout.ms longer than that?"
                )
            time.sleep(0.05)

    def _complaint(self, node: FleetNode) -> str | None:
        if node.kind == "zookeeper":
            return zookeeper.complaint(node.port)
        if node.kind == "controller":
            return None  # Without it no broker is ever ready, and it answers brokers only.
        try:
            known = self._known_brokers(node, timeout_s=2.0)
        except OSError as error:
            return f"port {node.port} does not answer ({error})"
        expected = {int(other.name): other.port for other in self.brokers}
        if not self._opening:
            expected = {int(node.name): node.port}
        missing = [str(broker) for broker, port in expected.items() if known.get(broker) != port]
        if missing:
            return f"it does not know of broker {', '.join(missing)} yet"
        return None if self._opening else self._unknown_to_others(node)

    def _known_brokers(self, node: FleetNode, timeout_s: float) -> dict[int, int]:
        """The brokers a broker lists, with their ports."""
        known = metadata_probe.brokers(node.port, timeout_s)
        if known or self.release.knows_brokers_without_topics:
            return known
        # The broker answers, but does not list brokers. They are registered in ZooKeeper, which it reads too.
        registered = zookeeper.sessions(self.nodes["zookeeper"].port)
        return {int(other.name): other.port for other in self.brokers if _registration(other) in registered}

    def _unknown_to_others(self, node: FleetNode) -> str | None:
        """Names a broker that answers and does not know this one yet. Brokers that do not answer are skipped:
        they may be part of the experiment.
        """
        for other in self.brokers:
            if other is node or not other.up:
                continue
            try:
                known = self._known_brokers(other, timeout_s=1.0)
            except OSError:
                continue
            if int(node.name) not in known:
                return f"{other} does not know of it yet"
        return None


def _registration(broker: FleetNode) -> str:
    return f"/brokers/ids/{broker.name}"
