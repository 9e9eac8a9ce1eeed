"""Hadoop 3.5: a NameNode and two DataNodes, and, if asked for, a ResourceManager and a NodeManager of YARN.

The classes are those of Hadoop's own test cluster in one jar, of the same release as the client in PySpark's
wheel. Two DataNodes, because with one a client waits half a second for nearly every small file: it asks the
NameNode whether the file is complete before the only DataNode has reported its block.
"""

import json
import subprocess
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from kelpie.real import fetch, java, ports, properties, releases
from kelpie.real.cluster_errors import RealError
from kelpie.real.fleet import START_LIMIT_S, Fleet, FleetNode, Kind

JARS = "hadoop-3.5.0"
_MAIN: Mapping[Kind, str] = {
    "namenode": "org.apache.hadoop.hdfs.server.namenode.NameNode",
    "datanode": "org.apache.hadoop.hdfs.server.datanode.DataNode",
    "resourcemanager": "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager",
    "nodemanager": "org.apache.hadoop.yarn.server.nodemanager.NodeManager",
}
_OF_PYSPARK = (
    *("hadoop-client-api", "hadoop-client-runtime", "slf4j-api", "jcl-over-slf4j"),
    *("log4j-slf4j2-impl", "log4j-api", "log4j-core", "log4j-1.2-api", "snappy-java"),
)
_HEAP_MB = 256
_ANSWER_S = 5.0
_NAME_NODE, _RESOURCE_MANAGER, _NODE_MANAGER = "namenode", "resourcemanager", "nodemanager"
_DATA_NODES = ("datanode-1", "datanode-2")
_STATE = "/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
_MEMORY_MB, _CORES = 6144, 4


class RealHadoop(Fleet):
    """HDFS on free ports of loopback, with `yarn` also a cluster that runs Spark's applications."""

    def __init__(self, *, yarn: bool = False, announce: Callable[[str], None] | None = None) -> None:
        super().__init__()
        self._yarn = yarn
        self._announce = announce
        self._classpath = ""
        self._pages: dict[str, int] = {}
        """Ports of web pages, by node."""

    @property
    def title(self) -> str:
        return "Hadoop 3.5.0"

    @property
    def ports_chosen(self) -> bool:
        return False

    @property
    def has_yarn(self) -> bool:
        return self._yarn

    @property
    def url(self) -> str:
        """The root of the file system: hdfs://host:port."""
        return f"hdfs://{ports.HOST}:{self.find(_NAME_NODE).port}"

    @property
    def configuration(self) -> Path:
        """The folder that HADOOP_CONF_DIR names."""
        return self.root / "conf"

    def _plan(self) -> None:
        jars = fetch.libraries(JARS, releases.pinned(JARS), title="Hadoop 3.5.0", announce=self._announce)
        self._classpath = ":".join(
            [str(self.configuration), f"{jars}/*", *map(str, java.of_pyspark("Hadoop", _OF_PYSPARK))]
        )
        kinds: dict[str, Kind] = {_NAME_NODE: "namenode", **dict.fromkeys(_DATA_NODES, "datanode")}
        if self._yarn:
            kinds |= {_RESOURCE_MANAGER: "resourcemanager", _NODE_MANAGER: "nodemanager"}
        free = iter(ports.free(2 * len(kinds)))
        self.nodes = {
            name: FleetNode(name, kind, next(free), self.root / name) for name, kind in kinds.items()
        }
        self._pages = {name: next(free) for name in kinds}
        for node in self.nodes.values():
            node.folder.mkdir()
        self.configuration.mkdir()
        # With these empty folders, nodes do not unpack their web pages, and start in half the time.
        for page in ("hdfs", "datanode", "cluster", "node"):
            (self.configuration / "webapps" / page).mkdir(parents=True)
        (self.configuration / "log4j2.properties").write_text(properties.log4j2("info", "System.out"))
        files = {"core-site": self._core(), "hdfs-site": self._hdfs()}
        if self._yarn:
            files["yarn-site"] = self._resources()
        for name, settings in files.items():
            (self.configuration / f"{name}.xml").write_text(_xml(settings))

    def _core(self) -> dict[str, str]:
        return {
            "fs.defaultFS": f"hdfs://{ports.HOST}:{self.nodes[_NAME_NODE].port}",
            "hadoop.tmp.dir": str(self.root / "tmp"),
            # A DataNode that comes before the NameNode asks again soon.
            "ipc.client.connect.retry.interval": "200",
            "ipc.client.connect.max.retries": "150",
        }

    def _hdfs(self) -> dict[str, str]:
        return {
            "dfs.namenode.name.dir": str(self.nodes[_NAME_NODE].data),
            "dfs.namenode.http-address": self._page(_NAME_NODE),
            "dfs.datanode.address": f"{ports.HOST}:0",
            "dfs.datanode.ipc.address": f"{ports.HOST}:0",
            "dfs.permissions.enabled": "false",
            # Without it, HDFS is read-only for half a minute after a restart.
            "dfs.namenode.safemode.extension": "0",
            "dfs.replication": str(len(_DATA_NODES)),
        }

    def _resources(self) -> dict[str, str]:
        manager, worker = "yarn.resourcemanager", "yarn.nodemanager"
        further = ports.free(5)
        addresses = dict(
            zip(
                (
                    f"{manager}.scheduler.address",
                    f"{manager}.resource-tracker.address",
                    f"{manager}.admin.address",
                    f"{worker}.localizer.address",
                    f"{worker}.collector-service.address",
                ),
                (f"{ports.HOST}:{port}" for port in further),
                strict=True,
            )
        )
        folder = self.nodes[_NODE_MANAGER].folder
        return {
            **addresses,
            f"{manager}.address": f"{ports.HOST}:{self.nodes[_RESOURCE_MANAGER].port}",
            f"{manager}.webapp.address": self._page(_RESOURCE_MANAGER),
            f"{manager}.scheduler.class": (
                "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fifo.FifoScheduler"
            ),
            f"{worker}.address": f"{ports.HOST}:{self.nodes[_NODE_MANAGER].port}",
            f"{worker}.webapp.address": self._page(_NODE_MANAGER),
            f"{worker}.resource.memory-mb": str(_MEMORY_MB),
            f"{worker}.resource.cpu-vcores": str(_CORES),
            f"{worker}.vmem-check-enabled": "false",
            f"{worker}.local-dirs": str(folder / "local"),
            f"{worker}.log-dirs": str(folder / "logs"),
            # A disk that others have filled must not make the only node unusable.
            f"{worker}.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",
            "yarn.scheduler.minimum-allocation-mb": "128",
        }

    def _page(self, name: str) -> str:
        return f"{ports.HOST}:{self._pages[name]}"

    def _launch(self) -> None:
        node = self.nodes[_NAME_NODE]
        formatted = subprocess.run(
            [*self._command(node), "-format", "-nonInteractive"],
            cwd=node.folder,
            env=java.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=START_LIMIT_S,
            check=False,
        )
        if formatted.returncode:
            said = (formatted.stdout + formatted.stderr)[-2000:].decode(errors="replace")
            raise RealError(f"{self.title}: the folder of the NameNode cannot be formatted:\n{said}")
        for each in self.nodes.values():
            self._spawn(each)
        self._wait_ready(self.nodes.values())

    def _command(self, node: FleetNode) -> Sequence[str]:
        logging = f"-Dlog4j2.configurationFile={(self.configuration / 'log4j2.properties').as_uri()}"
        options = (logging, f"-Djava.io.tmpdir={node.folder}")
        command = java.command(self._classpath, _MAIN[node.kind], heap_mb=_HEAP_MB, options=options)
        if node.kind == "datanode":
            command += ["-D", f"dfs.datanode.data.dir={node.data}"]
            command += ["-D", f"dfs.datanode.http.address={self._page(node.name)}"]
        return command

    def _before_start(self, node: FleetNode) -> None:
        """A node starts at once."""

    def _complaint(self, node: FleetNode) -> str | None:
        try:
            if node.kind in ("namenode", "datanode"):
                (state,) = _asked(self._pages[_NAME_NODE], _STATE)["beans"]
                if state["FSState"] != "Operational":
                    return f"HDFS is {state['FSState']}"
                up = sum(self.nodes[name].up for name in _DATA_NODES)
                alive = state["NumLiveDataNodes"]
                return None if alive >= up else f"the NameNode knows {alive} of {up} DataNodes"
            metrics = _asked(self._pages[_RESOURCE_MANAGER], "/ws/v1/cluster/metrics")["clusterMetrics"]
            return None if metrics["activeNodes"] else "the ResourceManager knows no NodeManager"
        except (OSError, ValueError, KeyError) as error:
            return f"it does not answer ({error})"


def _asked(port: int, path: str) -> dict[str, Any]:
    """What a node's web server answers."""
    with urllib.request.urlopen(f"http://{ports.HOST}:{port}{path}", timeout=_ANSWER_S) as answer:
        document: dict[str, Any] = json.load(answer)
        return document


def _xml(settings: Mapping[str, str]) -> str:
    lines = [
        f"  <property><name>{escape(name)}</name><value>{escape(value)}</value></property>"
        for name, value in settings.items()
    ]
    return "\n".join(["<configuration>", *lines, "</configuration>", ""])
