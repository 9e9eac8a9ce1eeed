"""One round on ZooKeeper: what Kafka keeps there of brokers, partitions and 0.8's consumers, as a dump."""

import json

from kelpie.client.zookeeper import connected
from kelpie.client.zookeeper_nodes import TreeReader
from kelpie.evidence.zookeeper_dumps import Dump

ROOTS = (
    "/brokers/ids",
    "/brokers/topics",
    "/consumers",
    "/controller",
    "/controller_epoch",
    "/admin",
    "/cluster",
)
_MOST_SECONDS = 10.0
"""For connecting, and for one answer."""


def dump(hosts: str, limit_s: float) -> Dump:
    """All nodes below what Kafka keeps. `hosts` as zookeeper.connect has them: "zk-1:2181,zk-2:2181/kafka".

    It blocks, for the time limit at most. Raises ZooKeeperError.
    """
    with connected(hosts, min(limit_s, _MOST_SECONDS), read_only=True) as client:
        nodes = TreeReader(client, hosts, limit_s).trees(ROOTS)
    dumped = Dump({path: node.as_text() for path, node in nodes.items()})
    dumped.complete, dumped.cluster = True, _cluster_id(dumped)
    return dumped


def _cluster_id(dumped: Dump) -> str:
    """Since 0.10.1."""
    node = dumped.nodes.get("/cluster/id")
    if node is None or node.data is None:
        return ""
    content = json.loads(node.data)
    return str(content.get("id", "")) if isinstance(content, dict) else ""
