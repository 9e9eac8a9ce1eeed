"""A kazoo client of a test's own, to write what Kelpie reads and to read what Kelpie wrote."""

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any


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
