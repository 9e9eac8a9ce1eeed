"""Kafka's own console tools, by the name of their script or by their class."""

import re
from collections.abc import Sequence

from kelpie.real.cluster_errors import ClusterRefused
from kelpie.real.releases import Release, Tool

_CLASS = re.compile(r"\w+(\.\w+)+")

# Whoever gives one of these means another address than ours. Some tools take a list of broker ids by the same
# name as others the brokers' addresses; an address has a port.
_ADDRESS = re.compile(
    r" (--bootstrap-server|--bootstrap-controller|--zookeeper|-server)[ =]| --broker-list[ =]\S*:"
)


def resolve(
    release: Release, name: str, arguments: Sequence[str], *, bootstrap: str, zookeeper: str | None
) -> tuple[str, list[str]]:
    """The class and the arguments to run it with: the cluster's address is added unless one is given."""
    tool = _find(release, name)
    connect = tool.connect
    if connect == "--zookeeper" and "--new-consumer" in arguments:
        connect = "--bootstrap-server"  # 0.9 knew both worlds.
    if connect is None or _ADDRESS.search(" ".join(["", *arguments])):
        return tool.main, list(arguments)
    address = zookeeper if connect in ("--zookeeper", "-server") else bootstrap
    return tool.main, [connect, address or "", *arguments]


def _find(release: Release, name: str) -> Tool:
    known = release.tools.get(name.removesuffix(".sh"))
    if known is not None:
        return known
    if _CLASS.fullmatch(name) and not name.endswith(".sh"):
        return Tool(name)
    raise ClusterRefused(
        f"Kafka {release.version} has no tool {name!r}. It has {', '.join(sorted(release.tools))}; "
        "a full class name works too."
    )
