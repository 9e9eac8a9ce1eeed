"""A kazoo client of a test's own, to write what Kelpie reads and to read what Kelpie wrote."""

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kelpie.client.zookeeper_nodes import TreeReader


@contextmanager
def kazoo_client(hosts: str) -> Iterator[Any]:
    retry = {"max_tries": -1, "max_delay": 1.0}
    client = importlib.import_module("kazoo.client").KazooClient(hosts, connection_retry=retry)
    client.start(timeout=30)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def create_nodes(client: Any, nodes: Mapping[str, bytes]) -> None:
    """Many in one request: a request for each takes a second for each thousand."""
    paths = sorted(nodes)
    for start in range(0, len(paths), 500):
        transaction = client.transaction()
        for path in paths[start : start + 500]:
            transaction.create(path, nodes[path])
        failed = [result for result in transaction.commit() if isinstance(result, Exception)]
        assert failed == []


def delete_all_nodes(client: Any, hosts: str) -> None:
    """Of a server of ZooKeeper 3.6 or newer. Many in one request, too; leaves first.

    A node of a session that ends meanwhile makes its request fail: what is left is deleted one by one.
    """
    roots = [f"/{name}" for name in client.get_children("/") if name != "zookeeper"]
    paths = sorted(TreeReader(client, hosts, limit_s=60).trees(roots), reverse=True)
    for start in range(0, len(paths), 500):
        transaction = client.transaction()
        for path in paths[start : start + 500]:
            transaction.delete(path)
        transaction.commit()
    for root in roots:
        if client.exists(root):
            client.delete(root, recursive=True)
