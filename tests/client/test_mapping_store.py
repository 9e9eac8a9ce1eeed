"""The requests of brokers carried out in a real ZooKeeper, as KoP's metadata store does."""

import random
from collections.abc import Iterator

import pytest

from kelpie.attribution.requests import Create, Delete, Put, Read, ReadChildren, Request
from kelpie.attribution.store import MemoryStore
from kelpie.client.mapping_store import ZooKeeperStore, opened
from kelpie.client.zookeeper import ZooKeeperError
from kelpie.real.zookeeper import RealZooKeeper

pytestmark = pytest.mark.real
ROOT = "/client_group_id"
NODE = f"{ROOT}/10.0.0.7-app-1"


@pytest.fixture
def store(real_zookeeper: RealZooKeeper) -> Iterator[ZooKeeperStore]:
    with opened(real_zookeeper.connect) as store:
        yield store


def version(store: ZooKeeperStore, path: str = NODE) -> int | None:
    node = (store.tree(ROOT) or {}).get(path)
    return node.version if node is not None else None


def test_put_creates_what_is_missing_and_counts_versions_on(store: ZooKeeperStore) -> None:
    """A refresh bumps the version, which is what makes a versioned delete safe."""
    assert store.carry_out(Read(1, NODE)) is None
    assert store.carry_out(Put(1, NODE, b"billing")) is None
    assert version(store) == 0
    store.carry_out(Put(1, NODE, b"billing"))
    assert version(store) == 1
    assert store.carry_out(Read(2, NODE)) == b"billing"


def test_create_leaves_a_node_that_exists(store: ZooKeeperStore) -> None:
    """Another broker's value stays."""
    assert store.write([Create(1, NODE, b"billing")]) == [True]
    assert store.write([Create(2, NODE, b"audit")]) == [False]
    assert store.carry_out(Read(1, NODE)) == b"billing"


def test_versioned_requests_spare_a_node_that_has_changed(store: ZooKeeperStore) -> None:
    """The document: "no way to know which delete belongs to which write". The version knows."""
    store.carry_out(Put(1, NODE, b"billing"))
    store.carry_out(Put(1, NODE, b"audit"))
    assert store.write([Delete(1, NODE, 0)]) == [False]
    assert store.write([Put(1, NODE, b"late", 0)]) == [False]
    assert store.carry_out(Read(1, NODE)) == b"audit"
    assert store.write([Put(1, NODE, b"new", 1)]) == [True]
    assert store.write([Delete(1, NODE, 2)]) == [True]
    assert store.write([Delete(1, NODE, 2)]) == [False]
    assert store.write([Put(1, NODE, b"gone", 2)]) == [False]
    assert store.carry_out(Read(1, NODE)) is None


def test_a_delete_without_version_takes_whatever_is_there(store: ZooKeeperStore) -> None:
    """So KoP loses mappings. A node that does not exist is no error."""
    store.carry_out(Put(1, NODE, b"billing"))
    store.carry_out(Put(2, NODE, b"billing"))
    store.carry_out(Delete(1, NODE))
    assert store.carry_out(Read(1, NODE)) is None
    assert store.carry_out(Delete(1, NODE)) is None


def test_nested_nodes_of_a_client_id_with_a_slash(store: ZooKeeperStore) -> None:
    """The nodes above it come into being empty, and are not deleted while it is there."""
    store.carry_out(Put(1, f"{ROOT}/10.0.0.7-team/app/1", b"g"))
    tree = store.tree(ROOT)
    assert tree is not None
    assert {path: node.value for path, node in tree.items()} == {
        f"{ROOT}/10.0.0.7-team": b"",
        f"{ROOT}/10.0.0.7-team/app": b"",
        f"{ROOT}/10.0.0.7-team/app/1": b"g",
    }
    assert store.write([Delete(1, f"{ROOT}/10.0.0.7-team")]) == [False]
    store.carry_out(Delete(1, f"{ROOT}/10.0.0.7-team/app/1"))
    assert store.write([Delete(1, f"{ROOT}/10.0.0.7-team/app")]) == [True]


def test_children_come_with_their_values(store: ZooKeeperStore) -> None:
    """The tree of `incarnation` has one child for each life of a member."""
    address = "/client_group_members/10.0.0.7-app"
    assert store.carry_out(ReadChildren(1, address)) == {}
    children = {f"member-{number}@{number}": f"{number}".encode() for number in range(3)}
    for name, value in children.items():
        store.carry_out(Create(1, f"{address}/{name}", value))
    assert store.carry_out(ReadChildren(1, address)) == children
    store.carry_out(Delete(1, f"{address}/member-0@0"))
    store.carry_out(Delete(1, f"{address}/member-1@1"))
    assert store.carry_out(ReadChildren(1, address)) == {"member-2@2": b"2"}


def test_many_writes_are_told_apart(store: ZooKeeperStore) -> None:
    """More than are under way at a time; each answer belongs to its own request."""
    paths = [f"{ROOT}/10.0.0.7-app-{number}" for number in range(1_200)]
    assert store.write([Put(1, path, b"g") for path in paths]) == [True] * len(paths)
    mixed = [Delete(1, path, number % 2) for number, path in enumerate(paths)]
    assert store.write(mixed) == [number % 2 == 0 for number in range(len(paths))]
    assert len(store.tree(ROOT) or {}) == 600


def test_memory_and_zookeeper_answer_alike(store: ZooKeeperStore) -> None:
    """What the simulator proves with the store in memory holds for the real one."""
    memory, chance = MemoryStore(), random.Random(7)
    paths = [f"{ROOT}/{name}" for name in ("a", "a/b", "a/b/c", "ü")]
    for number in range(400):
        path, value = chance.choice(paths), str(number).encode()
        version = chance.choice([None, 0, 1, 2])
        requests: list[Request] = [
            Put(1, path, value, version),
            Create(1, path, value),
            Delete(1, path, version),
        ]
        request = chance.choice([*requests, Read(1, path), ReadChildren(1, chance.choice([ROOT, path]))])
        assert store.carry_out(request) == memory.carry_out(request), request
    tree = store.tree(ROOT)
    assert tree is not None
    assert {path: node.value for path, node in tree.items()} == memory.listing(ROOT)
    assert {path: node.version for path, node in tree.items()} == {
        path: memory.version(path) for path in tree
    }


def test_a_server_that_dies_is_told_within_the_limit(real_zookeeper: RealZooKeeper) -> None:
    """No wait is without a limit, whatever the server does."""

    def write_to_the_dead() -> None:
        with opened(real_zookeeper.connect, 1.0) as store:
            store.carry_out(Put(1, NODE, b"billing"))
            real_zookeeper.kill("zookeeper")
            store.carry_out(Put(1, NODE, b"audit"))

    with pytest.raises(ZooKeeperError, match=r"did not answer|went away"):
        write_to_the_dead()
