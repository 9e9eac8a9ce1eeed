"""Commands to paste, with the address of this cluster in them."""

import shlex

from kelpie.cluster.view import ClusterView
from kelpie.model.quoting import quoted


def address(cluster: ClusterView) -> str:
    """What follows -b or --bootstrap-server."""
    return cluster.bootstrap or "BROKER:9092"


def connecting(cluster: ClusterView) -> str:
    """The option that leads a command to this cluster, with a blank after it."""
    return f"-b {quoted(address(cluster))} "


def kelpie(command: str, cluster: ClusterView, *words: str) -> str:
    """A command of Kelpie: kelpie("reset", cluster, "billing", "--to-earliest")."""
    return shlex.join(["kelpie", command, "-b", address(cluster), *words])


def kafka(tool: str, cluster: ClusterView, *words: str) -> str:
    """A command of Kafka's own tools."""
    return shlex.join([f"{tool}.sh", "--bootstrap-server", address(cluster), *words])
