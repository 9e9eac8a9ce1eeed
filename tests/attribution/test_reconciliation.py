"""Members against the mapping tree: every difference, what looks like one and is none, and what mends it."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelpie.attribution.addresses import KOP_ROOT, ClientAddress
from kelpie.attribution.reconciliation import (
    MappedMember,
    Reconciliation,
    ReconciliationCounts,
    reconcile,
)
from kelpie.attribution.requests import Create, Delete, Put
from kelpie.model.names import TopicPartition

GRACE = 60_000
HOST = "10.0.0.7"


def member(
    group: str, client_id: str = "app-1", host: str = HOST, partitions: Iterable[int] = ()
) -> MappedMember:
    assigned = tuple(TopicPartition("orders", number) for number in partitions)
    return MappedMember(group, f"{client_id}-id", ClientAddress(host, client_id), assigned)


def node(client_id: str = "app-1", host: str = HOST) -> str:
    return f"{KOP_ROOT}/{host}-{client_id}"


def compare(
    members: list[MappedMember], listing: dict[str, str], groups: set[str] | None = None
) -> Reconciliation:
    return reconcile(members, listing, {}, 0, 0, groups=groups)


def test_a_tree_that_agrees_has_no_difference() -> None:
    """Two members of one group behind one address share a node, which is right for both."""
    members = [member("billing"), member("billing"), member("audit", "app-2")]
    reconciliation = compare(members, {node(): "billing", node("app-2"): "audit"})
    assert reconciliation.is_clean
    assert reconciliation.correct == 2
    assert reconciliation.requests(1) == ()


def test_a_missing_node_is_created_and_never_set() -> None:
    """A broker that writes the node meanwhile knows better: what exists stays."""
    reconciliation = compare([member("billing")], {})
    (missing,) = reconciliation.missing
    assert (missing.path, missing.group) == (node(), "billing")
    assert reconciliation.requests(3) == (Create(3, node(), b"billing"),)


def test_a_node_with_an_empty_value_is_set_because_it_exists() -> None:
    """Real KoP leaves "…-team" empty above "…-team/app"; a client id "team" must still get its mapping."""
    listing = {node("team"): "", node("team/app"): "audit"}
    members = [member("billing", "team"), member("audit", "team/app")]
    reconciliation = compare(members, listing)
    assert reconciliation.requests(3, {node("team"): 4}) == (Put(3, node("team"), b"billing", 4),)
    assert reconciliation.correct == 1
    assert compare([member("audit", "team/app")], listing).is_clean


def test_a_wrong_group_is_corrected_at_the_version_that_was_read() -> None:
    """Plan 3 of the document looks for absence only, and leaves a wrong group for ever."""
    reconciliation = compare([member("billing")], {node(): "old"}, {"billing", "old"})
    (wrong,) = reconciliation.wrong
    assert (wrong.group, wrong.mapped) == ("billing", "old")
    assert reconciliation.requests(3, {node(): 7}) == (Put(3, node(), b"billing", 7),)
    assert reconciliation.requests(3) == (Put(3, node(), b"billing"),)


def test_a_node_whose_group_is_not_known_is_not_judged() -> None:
    """Its members were not asked: one of them may have this very address."""
    members = [member("billing")]
    listing = {node(): "elsewhere", node("app-9"): "elsewhere"}
    reconciliation = compare(members, listing, {"billing"})
    assert reconciliation.unjudged == ((node(), "elsewhere"), (node("app-9"), "elsewhere"))
    assert reconciliation.requests(3) == ()
    assert compare(members, listing).unjudged == reconciliation.unjudged


@pytest.mark.parametrize("mapped", ["billing", "audit", "other", None])
def test_two_groups_at_one_address_are_ambiguous_and_nothing_is_guessed(mapped: str | None) -> None:
    """Whatever the node says: a value would be right for one of them only."""
    members = [member("billing", partitions=[0, 1]), member("audit", partitions=[1, 2])]
    listing = {} if mapped is None else {node(): mapped}
    reconciliation = compare(members, listing, {"billing", "audit", "other"})
    (ambiguous,) = reconciliation.ambiguous
    assert ambiguous.groups == ("audit", "billing")
    assert ambiguous.mapped == mapped
    assert ambiguous.shared == (TopicPartition("orders", 1),)
    assert reconciliation.requests(3) == ()
    assert [*reconciliation.missing, *reconciliation.wrong, *reconciliation.leaked] == []


def test_ipv6_clients_of_one_network_share_a_node_as_in_kop() -> None:
    """KoP cuts at the first colon, so two hosts are one address; Java 14 and newer write a bracket first."""
    members = [member("billing", host="2001:db8::1"), member("audit", host="2001:db8::2")]
    (ambiguous,) = compare(members, {}).ambiguous
    assert ambiguous.path == f"{KOP_ROOT}/2001-app-1"
    bracket = compare([member("billing", host="[2001:db8::1]:5000")], {f"{KOP_ROOT}/[2001-app-1": "billing"})
    assert bracket.is_clean


def test_a_leaked_node_is_deleted_only_after_the_grace_time() -> None:
    """A member that was away for a moment joins again without FindCoordinator, and needs its node."""
    listing = {node(): "billing", node("gone"): "billing"}
    first = reconcile([member("billing")], listing, {}, 1_000, GRACE)
    (leaked,) = first.leaked
    assert (leaked.path, leaked.since, leaked.is_due) == (node("gone"), 1_000, False)
    assert first.requests(3) == ()
    early = reconcile([member("billing")], listing, first.leaked_since, 1_000 + GRACE - 1, GRACE)
    assert early.requests(3) == ()
    due = reconcile([member("billing")], listing, early.leaked_since, 1_000 + GRACE, GRACE)
    assert due.requests(3, {node("gone"): 2}) == (Delete(3, node("gone"), 2),)


def test_a_member_that_returns_ends_the_grace_time() -> None:
    """When it leaves again, the time begins anew."""
    listing = {node(): "billing"}
    groups = {"billing"}
    first = reconcile([], listing, {}, 0, GRACE, groups=groups)
    back = reconcile([member("billing")], listing, first.leaked_since, GRACE, GRACE, groups=groups)
    assert back.is_clean
    assert back.leaked_since == {}
    again = reconcile([], listing, back.leaked_since, GRACE + 1, GRACE, groups=groups)
    assert again.requests(3) == ()


def test_a_client_seen_with_two_addresses_keeps_both_nodes() -> None:
    """NAT: the coordinator sees one host, the broker that answered FindCoordinator another."""
    listing = {node(host="192.168.1.1"): "billing", node("app-2"): "billing"}
    members = [member("billing"), member("billing", "app-3")]
    reconciliation = compare(members, {**listing, node("app-3"): "billing"})
    kept, leaked = sorted(reconciliation.leaked, key=lambda row: not row.elsewhere)
    assert (kept.path, kept.elsewhere) == (node(host="192.168.1.1"), (members[0],))
    assert leaked.path == node("app-2")
    assert reconciliation.requests(3) == (Create(3, node(), b"billing"), Delete(3, node("app-2")))


def test_a_leaked_node_with_children_is_emptied() -> None:
    """ZooKeeper deletes no node that has children; an empty value is no mapping."""
    listing = {node("team"): "billing", node("team/app"): "billing"}
    reconciliation = compare([member("billing", "team/app")], listing)
    assert reconciliation.requests(3, {node("team"): 1}) == (Put(3, node("team"), b"", 1),)


@pytest.mark.parametrize("client_id", ["a\nb", "a//b", "/", "a/", "a/../b", "😀", "\x7f"])
def test_a_client_id_that_zookeeper_refuses_is_unmappable(client_id: str) -> None:
    """It can have no node, so none is missing."""
    reconciliation = compare([member("billing", client_id)], {})
    assert [row.client.client_id for row in reconciliation.unmappable] == [client_id]
    assert reconciliation.missing == ()
    assert not reconciliation.is_clean


@pytest.mark.parametrize(
    "client_id", ["", "-", 'we"ird', "back\\slash", "grün", "x..y", "..", "a/b", "a-b-c", " "]
)
def test_odd_client_ids_have_their_node(client_id: str) -> None:
    """As real KoP wrote them; an empty client id is a name like any other."""
    members = [member('gr"üp', client_id)]
    (request,) = compare(members, {}).requests(3)
    assert request == Create(3, node(client_id), 'gr"üp'.encode())
    assert compare(members, {node(client_id): 'gr"üp'}).is_clean


def test_counts_add_up_over_rounds() -> None:
    """They are what a broker exports of its reconciliation."""
    counts = ReconciliationCounts()
    members = [member("billing"), member("audit", "app-2"), member("a", "x"), member("b", "x")]
    counts.add(compare(members, {node("app-2"): "a", node("gone"): "a"}))
    counts.add(compare(members, {node(): "billing", node("app-2"): "audit"}))
    assert counts == ReconciliationCounts(rounds=2, created=1, corrected=1, deleted=1, ambiguous=2)


NAMES = st.sampled_from(["", "a", "b", "a/b", "a//", "-", "ü"])
HOSTS = st.sampled_from(["10.0.0.7", "10.0.0.8", "2001:db8::1"])
GROUPS = st.sampled_from(["g", "h", "i"])


@given(
    st.lists(st.builds(member, GROUPS, NAMES, HOSTS)),
    st.dictionaries(st.builds(node, NAMES, HOSTS), st.sampled_from(["", "g", "h", "i", "unknown"])),
)
def test_mended_once_a_tree_needs_no_second_mending(
    members: list[MappedMember], listing: dict[str, str]
) -> None:
    """Whatever the tree: carrying out the requests leaves ambiguous, unmappable and unknown nodes only."""
    groups = {"g", "h", "i"}
    first = compare(members, listing, groups)
    mended = dict(listing)
    for request in first.requests(1):
        if isinstance(request, Delete):
            del mended[request.path]
        else:
            assert isinstance(request, Put) or request.path not in mended
            mended[request.path] = request.value.decode()
    second = compare(members, mended, groups)
    assert [*second.missing, *second.wrong] == []
    assert {row.path for row in second.leaked} <= {row.path for row in first.leaked if row.elsewhere}
    assert second.ambiguous == first.ambiguous
    assert second.unjudged == first.unjudged
