"""Trees of nodes read in few requests, from a real ZooKeeper, new and old."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from kelpie.client.zookeeper import ZooKeeperError, connected
from kelpie.client.zookeeper_nodes import TreeNode, TreeReader
from kelpie.real.cluster import RealCluster
from kelpie.real.zookeeper import RealZooKeeper
from tests.client.zookeeper_client import create_nodes, kazoo_client

pytestmark = pytest.mark.real
LIMIT_S = 30.0
ODD_NAMES = [
    "10.0.0.7-",
    "10.0.0.7-a b",
    '10.0.0.7-we"ird',
    "10.0.0.7-back\\slash",
    "0-ü",
    "[2001-日本",
    "a..b",
]


def read(hosts: str, root: str, requests: Counter[int] | None = None) -> dict[str, TreeNode] | None:
    with connected(hosts, LIMIT_S, of_kafka=False) as client:
        if requests is not None:
            call = client._call

            def counting(request: Any, answer: Any) -> None:
                requests[request.type] += 1
                call(request, answer)

            client._call = counting
        return TreeReader(client, hosts, LIMIT_S).tree(root)


def test_a_tree_of_thousands_takes_a_handful_of_requests(real_zookeeper: RealZooKeeper) -> None:
    """Listing, then 2,000 nodes a request; below a chroot, with odd and nested names."""
    names = [f"10.0.0.{number % 250}-app-{number}" for number in range(4_500)] + ODD_NAMES
    nodes = {"/pulsar": b"", "/pulsar/map": b""} | {f"/pulsar/map/{name}": name.encode() for name in names}
    nodes |= {"/pulsar/map/h-team": b"", "/pulsar/map/h-team/app": b"g", "/pulsar/map/h-team/app/x": b"\xff"}
    requests: Counter[int] = Counter()
    with kazoo_client(real_zookeeper.connect) as client:
        create_nodes(client, nodes)
        client.set("/pulsar/map/0-ü", b"second")
        tree = read(f"{real_zookeeper.connect}/pulsar", "/map", requests)
    assert tree is not None
    expected = {path.removeprefix("/pulsar"): value for path, value in nodes.items() if path > "/pulsar/map"}
    assert {path: node.value for path, node in tree.items()} == expected | {"/map/0-ü": b"second"}
    assert tree["/map/0-ü"].version == 1
    assert tree["/map/h-team"].children == 1
    assert tree["/map/0-ü"].modified > 1_700_000_000_000
    assert requests.total() <= 10


def test_a_tree_that_does_not_exist_is_none_and_an_empty_one_is_empty(real_zookeeper: RealZooKeeper) -> None:
    """A missing root says that nothing writes mappings; an empty one that none is left."""
    with kazoo_client(real_zookeeper.connect) as client:
        assert read(real_zookeeper.connect, "/map") is None
        client.create("/map", b"")
        assert read(real_zookeeper.connect, "/map") == {}


def test_a_node_that_vanishes_while_it_is_read_is_left_out(real_zookeeper: RealZooKeeper) -> None:
    """Brokers delete nodes at any time."""
    with kazoo_client(real_zookeeper.connect) as client:
        create_nodes(client, {"/map": b"", "/map/a": b"1", "/map/b": b"2"})
        reader = TreeReader(client, real_zookeeper.connect, LIMIT_S)
        for paths in (["/map/a", "/map/gone", "/map/b"], ["/map/gone"], []):
            assert set(reader.nodes(paths)) == set(paths) - {"/map/gone"}


@pytest.mark.parametrize("version", ["0.9.0.1", "2.8.2"])
def test_a_server_before_3_6_is_read_with_a_request_for_each_node(
    real_kafka: Callable[..., RealCluster], version: str
) -> None:
    """ZooKeeper 3.4 and 3.5, which these releases bring, know no multiRead and close the connection."""
    cluster = real_kafka(version)
    hosts = str(cluster.zookeeper_connect)
    with kazoo_client(hosts) as client:
        create_nodes(client, {"/map": b"", "/map/a": b"1", "/map/ü": b"2", "/map/ü/x": b"3"})
        try:
            requests: Counter[int] = Counter()
            tree = read(hosts, "/map", requests)
        finally:
            client.delete("/map", recursive=True)
    assert tree is not None
    assert {path: node.value for path, node in tree.items()} == {
        "/map/a": b"1", "/map/ü": b"2", "/map/ü/x": b"3"
    }  # fmt: skip
    assert requests[22] == 1, "multiRead is tried once"


def test_a_server_that_stops_answering_costs_the_time_limit(real_zookeeper: RealZooKeeper) -> None:
    """Its connection stays open, and it says nothing: the worst kind of dead."""
    with kazoo_client(real_zookeeper.connect) as client:
        create_nodes(client, {"/map": b"", "/map/a": b"1"})

    def read_while_it_sleeps() -> None:
        with connected(real_zookeeper.connect, 1.0, of_kafka=False) as client:
            real_zookeeper.pause("zookeeper")
            TreeReader(client, real_zookeeper.connect, 1.0).tree("/map")

    with pytest.raises(ZooKeeperError, match=r"did not answer within 1 s|refused or went away"):
        read_while_it_sleeps()
    with (
        pytest.raises(ZooKeeperError, match=r"did not answer within 0.5 s"),
        connected(real_zookeeper.connect, 0.5, of_kafka=False),
    ):
        pass
    real_zookeeper.resume("zookeeper")


@pytest.mark.parametrize("path", ["/nowhere", "/a/b"])
def test_a_chroot_that_does_not_exist_is_named(real_zookeeper: RealZooKeeper, path: str) -> None:
    """It is the likeliest mistake in HOST:PORT/PATH."""
    with (
        pytest.raises(ZooKeeperError, match=f"has no node {path}"),
        connected(f"{real_zookeeper.connect}{path}", LIMIT_S, of_kafka=False),
    ):
        pass
