"""Claims in the tree of `incarnation`: read back as written, and matched by partition and time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelpie.attribution.members_tree import (
    Claims,
    Hint,
    MemberClaim,
    groups_of,
    hint_node,
    hint_value,
    member_node,
    member_value,
    read_claims,
)
from kelpie.model.names import TopicPartition
from tests.attribution.cluster import P0, P1, P2

NAMES = st.text(st.characters(exclude_categories=()))
TIMES = st.integers(0, 2**50)
PARTITIONS = st.frozensets(st.builds(TopicPartition, NAMES, st.integers(0, 99)), max_size=4)
MEMBER_CLAIMS = st.builds(
    MemberClaim,
    NAMES,
    st.integers(0, 99),
    TIMES,
    st.none() | PARTITIONS,
    TIMES,
    PARTITIONS,
    st.none() | TIMES,
    st.booleans(),
)


@given(st.dictionaries(NAMES, MEMBER_CLAIMS, max_size=3), st.lists(st.builds(Hint, NAMES, TIMES), max_size=3))
def test_claims_are_read_back_as_they_were_written(
    members: dict[str, MemberClaim], hints: list[Hint]
) -> None:
    """Member ids begin with client ids, so they may hold anything, "hint@1-2-3" too."""
    by_name = {member_node(claim.group, member, claim.epoch): claim for member, claim in members.items()}
    hint_names = {hint_node(1, 2, number): hint for number, hint in enumerate(hints)}
    children = {name: member_value(claim) for name, claim in by_name.items()}
    children |= {name: hint_value(hint) for name, hint in hint_names.items()}
    assert all("/" not in name for name in children)
    assert read_claims(children) == Claims(by_name, hint_names)


@pytest.mark.parametrize("value", [b"", b"{", b"[]", b"1", b"{}", b'{"group":"g"}', b"\xff", b"null"])
def test_children_in_another_form_are_left_out(value: bytes) -> None:
    """Others can write to ZooKeeper too. What they wrote is no claim, and no reason to fail."""
    assert read_claims({"m@1": value, "hint@1-1-1": value, "plain": value}) == Claims({}, {})


def members(*claims: MemberClaim) -> Claims:
    return Claims({f"g@m{number}@{claim.epoch}": claim for number, claim in enumerate(claims)}, {})


def test_a_claim_without_partitions_may_have_read_any() -> None:
    """While a group rebalances, its members may get any partition."""
    assert groups_of(members(MemberClaim("g", 1)), P0, 10) == {"g"}


def test_partitions_of_the_assignment_before_count_for_a_while() -> None:
    """The consumer reads them until it has its new ones; ten seconds later it has."""
    claim = MemberClaim("g", 1, partitions=frozenset({P1}), since=100_000, before=frozenset({P0}))
    assert groups_of(members(claim), P0, 99_000) == {"g"}
    assert groups_of(members(claim), P0, 109_000) == {"g"}
    assert groups_of(members(claim), P0, 111_000) == set()
    assert groups_of(members(claim), P2, 99_000) == set()


def test_a_member_counts_from_its_join_to_its_removal() -> None:
    """A fetch from before or after is another consumer's. Clocks may differ by a second."""
    claim = MemberClaim("g", 1, joined=50_000, partitions=frozenset({P0}), until=90_000)
    at_times = (48_000, 49_500, 70_000, 90_500, 92_000)
    labels = [bool(groups_of(members(claim), P0, at)) for at in at_times]
    assert labels == [False, True, True, True, False]


def test_a_member_that_was_removed_may_fetch_on_until_it_hears_of_it() -> None:
    """Alone, its claim explains nothing: it may be dead. But another group's claim is not certain then."""
    expired = MemberClaim("g", 1, partitions=frozenset({P0}), until=90_000)
    other = MemberClaim("h", 1, partitions=frozenset({P0}))
    again = MemberClaim("g", 1, joined=99_000, partitions=frozenset({P1}))
    assert groups_of(members(expired), P0, 95_000) == set()
    assert groups_of(members(expired, other), P0, 95_000) == {"g", "h"}
    assert groups_of(members(expired, again), P0, 95_000) == {"g"}
    assert groups_of(members(expired, again), P0, 101_000) == set()
    left = MemberClaim("g", 1, partitions=frozenset({P0}), until=90_000, has_left=True)
    assert groups_of(members(left, other), P0, 95_000) == {"h"}
    assert groups_of(members(left, again), P0, 95_000) == set()


def test_only_the_newest_coordinator_of_a_group_counts() -> None:
    """A former coordinator's child may not have been deleted yet. Another group's epochs do not matter."""
    old = MemberClaim("g", 1, partitions=frozenset({P0}))
    new = MemberClaim("g", 2, partitions=frozenset({P1}))
    other = MemberClaim("h", 1, partitions=frozenset({P0}))
    assert groups_of(members(old, new, other), P0, 10) == {"h"}
    assert groups_of(members(old, other), P0, 10) == {"g", "h"}


def test_a_hint_counts_where_no_member_of_its_group_is() -> None:
    """A member's own hint says nothing that its partitions do not say better."""
    h = {"h@1": MemberClaim("h", 1, partitions=frozenset({P0}))}
    g = {"g@1": MemberClaim("g", 1, partitions=frozenset({P1}))}
    hint = {"hint@1-1-1": Hint("g", 0)}
    assert groups_of(Claims({}, hint), P0, 10) == {"g"}
    assert groups_of(Claims(h, hint), P0, 10) == {"g", "h"}
    assert groups_of(Claims(h | g, hint), P0, 10) == {"h"}
    assert groups_of(Claims(g, hint), P0, 10) == set()
    assert groups_of(Claims({}, {"hint@1-1-1": Hint("g", 9_000)}), P0, 10) == set()
