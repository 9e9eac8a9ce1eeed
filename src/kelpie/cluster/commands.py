"""Commands to paste, with the address of this cluster in them."""

from kelpie.cluster.view import ClusterView
from kelpie.model.quoting import quoted


def connecting(cluster: ClusterView) -> str:
    """The option that leads a command to this cluster, with a blank after it."""
    return f"-b {quoted(cluster.bootstrap or 'BROKER:9092')} "
