"""The store in memory follows ZooKeeper's rules; the plans rely on them."""

from kelpie.attribution.requests import Create, Delete, Put, Read, ReadChildren
from kelpie.attribution.store import MemoryStore


def test_a_version_counts_changes_and_begins_anew_with_the_node() -> None:
    """So a version alone does not tell two incarnations of a node apart."""
    store = MemoryStore()
    for value in (b"1", b"2", b"3"):
        store.carry_out(Put(1, "/a/b", value))
    assert store.version("/a/b") == 2
    store.carry_out(Delete(1, "/a/b"))
    assert store.version("/a/b") is None
    store.carry_out(Put(1, "/a/b", b"4"))
    assert store.version("/a/b") == 0


def test_a_request_with_a_version_spares_a_node_that_has_changed() -> None:
    """What a repair read may have been rewritten in the meantime."""
    store = MemoryStore()
    store.carry_out(Put(1, "/a", b"1"))
    store.carry_out(Put(1, "/a", b"2"))
    store.carry_out(Delete(1, "/a", 0))
    store.carry_out(Put(1, "/a", b"0", 0))
    assert store.carry_out(Read(1, "/a")) == b"2"
    store.carry_out(Put(1, "/a", b"3", 1))
    store.carry_out(Put(1, "/b", b"3", 1))
    assert store.listing("") == {"/a": b"3"}


def test_create_leaves_a_node_that_exists() -> None:
    """A broker that wrote first keeps its value."""
    store = MemoryStore()
    store.carry_out(Create(1, "/a", b"1"))
    store.carry_out(Create(2, "/a", b"2"))
    assert store.carry_out(Read(1, "/a")) == b"1"


def test_a_node_with_children_is_not_deleted() -> None:
    """A client id with "/" lies below another node."""
    store = MemoryStore()
    store.carry_out(Put(1, "/tree/team/app", b"g"))
    store.carry_out(Delete(1, "/tree/team"))
    assert store.carry_out(ReadChildren(1, "/tree")) == {"team": b""}
    store.carry_out(Delete(1, "/tree/team/app"))
    store.carry_out(Delete(1, "/tree/team"))
    assert store.carry_out(ReadChildren(1, "/tree")) == {}
    assert store.carry_out(ReadChildren(1, "/nothing")) == {}
