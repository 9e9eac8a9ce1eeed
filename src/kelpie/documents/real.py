"""`kelpie real` with `--json`: real clusters on this machine."""

from collections.abc import Mapping
from typing import Literal

from kelpie.documents.declaring import TypedDict, document
from kelpie.real.cluster import RealCluster


@document
class RealNodeData(TypedDict):
    name: str
    """A broker's number, zookeeper or controller."""
    kind: str
    up: bool
    pid: int | None
    port: int
    data: str
    log: str


@document
class RealClusterData(TypedDict):
    name: str
    release: str | None
    bootstrap: str | None
    zookeeper: str | None
    """null: the cluster has none (KRaft)."""
    folder: str | None
    nodes: list[RealNodeData]
    failure: str | None
    """Why nothing more is known of it."""


@document
class RealClustersDocument(TypedDict):
    """Real clusters on this machine, as they are now."""

    version: Literal[1]
    clusters: list[RealClusterData]


def real_clusters_document(clusters: Mapping[str, RealCluster | str]) -> RealClustersDocument:
    """By name; a text says why a cluster cannot be shown."""
    return {"version": 1, "clusters": [_cluster(name, cluster) for name, cluster in clusters.items()]}


def _cluster(name: str, cluster: RealCluster | str) -> RealClusterData:
    if isinstance(cluster, str):
        nothing: RealClusterData = {
            "name": name,
            "release": None,
            "bootstrap": None,
            "zookeeper": None,
            "folder": None,
            "nodes": [],
            "failure": cluster,
        }
        return nothing
    return {
        "name": name,
        "release": cluster.release.version,
        "bootstrap": cluster.bootstrap_servers,
        "zookeeper": cluster.zookeeper_connect or None,
        "folder": str(cluster.root),
        "nodes": [
            {
                "name": node.name,
                "kind": node.kind,
                "up": node.up,
                "pid": node.process.pid if node.process is not None and node.up else None,
                "port": node.port,
                "data": str(node.data),
                "log": str(node.log),
            }
            for node in cluster.nodes.values()
        ],
        "failure": None,
    }
