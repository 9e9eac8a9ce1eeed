"""ZooKeeper: as a server of its own, from the jars in PySpark's wheel, and as a node beside old Kafkas."""

import socket
from collections.abc import Sequence

from kelpie.real import java, ports, properties
from kelpie.real.fleet import Fleet, FleetNode

MAIN = "org.apache.zookeeper.server.ZooKeeperServerMain"
# Its log is set aside in chunks of 64 MB by default, and synced on every write.
OPTIONS = ("-Dzookeeper.preAllocSize=1024", "-Dzookeeper.forceSync=no")
HEAP_MB = 128

_JARS = (
    *("zookeeper", "zookeeper-jute", "metrics-core", "snappy-java"),
    *("slf4j-api", "log4j-slf4j2-impl", "log4j-api", "log4j-core"),
)


def four_letters(port: int, word: str, timeout_s: float = 2.0) -> str:
    """Ask a server one of ZooKeeper's four-letter words. Raises OSError if it does not answer."""
    with socket.create_connection((ports.HOST, port), timeout=timeout_s) as connection:
        connection.sendall(word.encode())
        parts = []
        while part := connection.recv(65_536):
            parts.append(part)
    return b"".join(parts).decode(errors="replace")


def complaint(port: int) -> str | None:
    try:
        # Unlike ruok, srvr is answered properly only once requests are served.
        answer = four_letters(port, "srvr")
    except OSError as error:
        return f"port {port} does not answer ({error})"
    return None if "Mode:" in answer else f"port {port} answers {answer.strip()[:80]!r}"


def sessions(port: int) -> list[str]:
    """The paths of all ephemeral nodes, which say whose sessions are alive."""
    return [line.strip() for line in four_letters(port, "dump").splitlines() if line.startswith("\t/")]


class RealZooKeeper(Fleet):
    """ZooKeeper 3.9, one server, on a free port of loopback. Needs no download: PySpark carries it."""

    def __init__(self) -> None:
        super().__init__()
        self._classpath = ""

    @property
    def title(self) -> str:
        return "ZooKeeper 3.9"

    @property
    def ports_chosen(self) -> bool:
        return False

    @property
    def port(self) -> int:
        return self.find("zookeeper").port

    @property
    def connect(self) -> str:
        """The address for clients: host:port."""
        return f"{ports.HOST}:{self.port}"

    def _plan(self) -> None:
        self._classpath = ":".join(map(str, java.of_pyspark("ZooKeeper", _JARS)))
        node = FleetNode("zookeeper", "zookeeper", ports.free(1)[0], self.root / "zookeeper")
        node.folder.mkdir()
        node.config.write_text(properties.text(properties.zookeeper(node.port, node.data)))
        (self.root / "log4j2.properties").write_text(properties.log4j2("info", "System.out"))
        self.nodes = {node.name: node}

    def _launch(self) -> None:
        node = self.nodes["zookeeper"]
        self._spawn(node)
        self._wait_ready([node])

    def _command(self, node: FleetNode) -> Sequence[str]:
        logging = f"-Dlog4j2.configurationFile={(self.root / 'log4j2.properties').as_uri()}"
        options = (*OPTIONS, logging)
        return [*java.command(self._classpath, MAIN, heap_mb=HEAP_MB, options=options), str(node.config)]

    def _before_start(self, node: FleetNode) -> None:
        """A ZooKeeper starts at once."""

    def _complaint(self, node: FleetNode) -> str | None:
        return complaint(node.port)
