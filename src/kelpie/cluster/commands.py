"""Commands to paste, with the address of this cluster in them. Names are quoted for a shell."""

from kelpie.cluster.view import ClusterView
from kelpie.model.quoting import quoted


def kelpie(command: str, cluster: ClusterView, *words: object) -> str:
    """A command of Kelpie: kelpie("reset", cluster, "billing", "--to-earliest")."""
    return _line("kelpie", command, "-b", _address(cluster), *words)


def kafka(tool: str, cluster: ClusterView, *words: object) -> str:
    """A command of Kafka's own tools."""
    return _line(f"{tool}.sh", "--bootstrap-server", _address(cluster), *words)


def mappings(action: str, cluster: ClusterView) -> str:
    """`kelpie mappings check` or `repair`."""
    return _line("kelpie", "mappings", action, "--zookeeper", _zookeeper(cluster), "-b", _address(cluster))


def _address(cluster: ClusterView) -> str:
    return cluster.bootstrap or "BROKER:9092"


def _zookeeper(cluster: ClusterView) -> str:
    return cluster.zookeeper or "ZOOKEEPER:2181"


def _line(*words: object) -> str:
    return " ".join(quoted(str(word)) for word in words)
