"""One round on ZooKeeper: what Kafka keeps there of brokers, partitions and 0.8's consumers, as a dump."""

import importlib
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

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


class NoZooKeeper(Exception):
    """It could not be asked. The text says why."""


def dump(hosts: str, limit_s: float) -> Dump:
    """All nodes below what Kafka keeps. `hosts` as zookeeper.connect has them: "zk-1:2181,zk-2:2181/kafka".

    It blocks, for the time limit at most. Raises NoZooKeeper.
    """
    deadline = time.monotonic() + limit_s
    found = Dump()
    with _connected(hosts, limit_s) as client:
        missing = importlib.import_module("kazoo.exceptions").NoNodeError
        waiting = [root for root in ROOTS if client.exists(root) is not None]
        if "/brokers/ids" not in waiting:
            raise NoZooKeeper(
                f"ZooKeeper at {hosts} keeps no Kafka cluster at this path: /brokers/ids is not there. Does "
                "zookeeper.connect of the brokers end in a path (zk-1:2181/kafka)?"
            )
        while waiting:
            # Many at a time: each answer takes as long as the way there and back.
            now, waiting = waiting[:500], waiting[500:]
            if time.monotonic() > deadline:
                raise NoZooKeeper(f"ZooKeeper at {hosts} was not read within {limit_s:g} s.")
            if len(found.nodes) + len(waiting) > MOST_NODES:
                raise NoZooKeeper(f"ZooKeeper at {hosts} keeps more than {MOST_NODES:,} nodes for Kafka.")
            asked = [(path, client.get_async(path), client.get_children_async(path)) for path in now]
            for path, content, children in asked:
                left = max(0.1, deadline - time.monotonic())
                try:
                    data, stat = content.get(timeout=left)
                    names = children.get(timeout=left)
                except missing:
                    continue  # It was there a moment ago.
                text = data.decode("utf-8", "replace") if data else None
                found.nodes[path] = Node(text, stat.last_modified_transaction_id and stat.mtime)
                waiting += [f"{path}/{name}" for name in sorted(names)]
    found.cluster = _cluster_id(found)
    return found


def _cluster_id(found: Dump) -> str:
    """Since 0.10.1."""
    node = found.nodes.get("/cluster/id")
    if node is None or node.data is None:
        return ""
    told = importlib.import_module("json").loads(node.data)
    return str(told.get("id", "")) if isinstance(told, dict) else ""


@contextmanager
def _connected(hosts: str, limit_s: float) -> Iterator[Any]:
    try:
        kazoo = importlib.import_module("kazoo.client")
        timeouts = importlib.import_module("kazoo.handlers.threading")
    except ImportError:
        raise NoZooKeeper(
            "Kelpie speaks to ZooKeeper through the library kazoo, which is not installed: pip install "
            "'kelpie-kafka[zookeeper]'."
        ) from None
    # Everything worth saying is said by us; kazoo reports each attempt.
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    try:
        client = kazoo.KazooClient(hosts, timeout=min(limit_s, 10.0), read_only=True)
    except ValueError as error:
        raise NoZooKeeper(f"{hosts!r} is no address of ZooKeeper: {error}. Write HOST:PORT[/PATH].") from None
    refused = importlib.import_module("kazoo.exceptions").KazooException
    try:
        client.start(timeout=min(limit_s, 10.0))
        yield client
    except timeouts.KazooTimeoutError:
        raise NoZooKeeper(f"ZooKeeper at {hosts} did not answer in time.") from None
    except refused as error:
        said = str(error) or type(error).__name__
        raise NoZooKeeper(f"ZooKeeper at {hosts} refused or went away: {said}.") from None
    finally:
        client.stop()
        client.close()
