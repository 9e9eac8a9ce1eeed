"""The catalogue: the releases of Kafka, and what differs between them. `tools.txt` lists their console tools.

A release's jars are pinned in `jars/VERSION.txt`, each with its checksum. Pinned, because resolving them
through their POMs takes Ivy a minute, a plain download five seconds; and because the same jars then run
everywhere. A list holds what Ivy resolves for the artifacts named in its first line (configurations runtime
and master, POMs on), minus Connect and its web server (Jersey, Jetty, HK2, JAXB), which `kafka-tools` asks
for and only `connect-plugin-path` uses, and minus annotations and native libraries that nothing here loads.

Up to 3.9 the releases run with ZooKeeper, whose own jar is among theirs; 4.x runs with KRaft.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kelpie.real.cluster_errors import ClusterRefused

_LISTS = Path(__file__).parent / "jars"
_TOOLS = Path(__file__).parent / "tools.txt"

_CLASS = re.compile(r"\w+(\.\w+)+")

# Options that name an address. Some tools take a list of broker ids by the same name as others the brokers'
# addresses; an address has a port.
_ADDRESS = re.compile(
    r" (--bootstrap-server|--bootstrap-controller|--zookeeper|-server)[ =]| --broker-list[ =]\S*:"
)


@dataclass(frozen=True, slots=True)
class Jar:
    organisation: str
    name: str
    revision: str
    sha256: str
    classifier: str = ""
    """Which of several jars of the same name and revision: "jar-with-dependencies"."""

    @property
    def file_name(self) -> str:
        return f"{self.name}-{self.revision}{f'-{self.classifier}' if self.classifier else ''}.jar"

    def __str__(self) -> str:
        return ":".join(filter(None, (self.organisation, self.name, self.revision, self.classifier)))


@dataclass(frozen=True, slots=True)
class Tool:
    """One of Kafka's console tools: its class, and the option that takes the address of the cluster."""

    main: str
    connect: str | None = None


@dataclass(frozen=True)
class Release:
    version: str
    quorum: Literal["kraft", "zookeeper"]
    logging: Literal["log4j", "log4j2"]
    # Before 0.9 a broker had one address, host.name and port, instead of listeners.
    listeners: bool = True
    # Before 0.9 a broker first learned of the other brokers when the first topic was created.
    knows_brokers_without_topics: bool = True

    @functools.cached_property
    def jars(self) -> tuple[Jar, ...]:
        return pinned(self.version)

    @functools.cached_property
    def tools(self) -> dict[str, Tool]:
        """By the name of the script."""
        tools = {}
        for name, versions, connect, main in map(str.split, _lines(_TOOLS)):
            if self.version in versions.split(","):
                tools[name] = Tool(main, None if connect == "-" else connect)
        return tools

    @property
    def zookeeper(self) -> str | None:
        """The version of ZooKeeper that comes with it."""
        return next((jar.revision for jar in self.jars if jar.name == "zookeeper"), None)


def find(version: str) -> Release:
    try:
        return RELEASES[version]
    except KeyError:
        raise ClusterRefused(
            f"There is no Kafka {version!r} in the catalogue. Known: {', '.join(RELEASES)}."
        ) from None


def pinned(title: str, folder: Path = _LISTS) -> tuple[Jar, ...]:
    """The jars of one list."""
    jars = []
    for line in _lines(folder / f"{title}.txt"):
        sha256, coordinates = line.split()
        organisation, name, revision, *classifier = coordinates.split(":")
        jars.append(Jar(organisation, name, revision, sha256, *classifier))
    return tuple(jars)


def _lines(file: Path) -> list[str]:
    return [line for line in file.read_text().splitlines() if line and not line.startswith("#")]


RELEASES: Mapping[str, Release] = {
    release.version: release
    for release in (
        Release("4.3.1", "kraft", "log4j2"),
        Release("3.9.2", "zookeeper", "log4j"),
        Release("2.8.2", "zookeeper", "log4j"),
        Release("0.9.0.1", "zookeeper", "log4j"),
        Release("0.8.2.2", "zookeeper", "log4j", listeners=False, knows_brokers_without_topics=False),
    )
}


def resolve_tool(
    release: Release, name: str, arguments: Sequence[str], *, bootstrap: str, zookeeper: str | None
) -> tuple[str, list[str]]:
    """The class and the arguments to run it with: the cluster's address is added unless one is given."""
    tool = _tool(release, name)
    connect = tool.connect
    if connect == "--zookeeper" and "--new-consumer" in arguments:
        connect = "--bootstrap-server"  # 0.9 has both kinds of consumers.
    if connect is None or _ADDRESS.search(" ".join(["", *arguments])):
        return tool.main, list(arguments)
    address = zookeeper if connect in ("--zookeeper", "-server") else bootstrap
    return tool.main, [connect, address or "", *arguments]


def _tool(release: Release, name: str) -> Tool:
    known = release.tools.get(name.removesuffix(".sh"))
    if known is not None:
        return known
    if _CLASS.fullmatch(name) and not name.endswith(".sh"):
        return Tool(name)
    raise ClusterRefused(
        f"Kafka {release.version} has no tool {name!r}. It has {', '.join(sorted(release.tools))}; "
        "a full class name works too."
    )
