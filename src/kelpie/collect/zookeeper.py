"""One round on ZooKeeper: what Kafka keeps there of brokers, partitions and 0.8's consumers, as a dump."""

import json
import time

from kelpie.client.zookeeper import ZooKeeperError, connected, kazoo_exceptions
from kelpie.evidence.zookeeper_dumps import Dump, Node

ROOTS = (
    "/brokers/ids",
    "/brokers/topics",
    "/consumers",
    "/controller",
    "/controller_epoch",
    "/admin",
    "/cluster",
)
MOST_NODES = 1_000_000
_MOST_SECONDS = 10.0
"""For one answer."""


def dump(hosts: str, limit_s: float) -> Dump:
    """All nodes below what Kafka keeps. `hosts` as zookeeper.connect has them: "zk-1:2181,zk-2:2181/kafka".

    It blocks, for the time limit at most. Raises ZooKeeperError.
    """
    deadline = time.monotonic() + limit_s
    dumped = Dump()
    with connected(hosts, min(limit_s, _MOST_SECONDS), read_only=True) as client:
        missing = kazoo_exceptions().NoNodeError
        waiting = [root for root in ROOTS if client.exists(root) is not None]
        while waiting:
            # Many at a time: each answer takes as long as the way there and back.
            now, waiting = waiting[:500], waiting[500:]
            if time.monotonic() > deadline:
                raise ZooKeeperError(f"ZooKeeper at {hosts} was not read within {limit_s:g} s.")
            if len(dumped.nodes) + len(waiting) > MOST_NODES:
                raise ZooKeeperError(f"ZooKeeper at {hosts} keeps more than {MOST_NODES:,} nodes for Kafka.")
            asked = [(path, client.get_async(path), client.get_children_async(path)) for path in now]
            for path, content, children in asked:
                left = max(0.1, deadline - time.monotonic())
                try:
                    data, stat = content.get(timeout=left)
                    names = children.get(timeout=left)
                except missing:
                    continue  # It was there a moment ago.
                text = data.decode("utf-8", "replace") if data else None
                dumped.nodes[path] = Node(text, stat.last_modified_transaction_id and stat.mtime)
                waiting += [f"{path}/{name}" for name in sorted(names)]
    dumped.cluster = _cluster_id(dumped)
    return dumped


def _cluster_id(dumped: Dump) -> str:
    """Since 0.10.1."""
    node = dumped.nodes.get("/cluster/id")
    if node is None or node.data is None:
        return ""
    content = json.loads(node.data)
    return str(content.get("id", "")) if isinstance(content, dict) else ""
