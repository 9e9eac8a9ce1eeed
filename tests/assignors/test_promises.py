"""What each assignor promises, for random groups."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kelpie.assignors import ASSIGNORS, MemberSubscription, member_of, subscription
from kelpie.assignors.sticky import StickyUserData, previous
from kelpie.model.names import TopicPartition
from kelpie.wire import compiler, consumer_protocol
from kelpie.wire.consumer_protocol import Subscription
from kelpie.wire.structs import TopicPartitions
from tests.assignors.subscriptions import Group, groups, owners

_some = settings(max_examples=50)
_eager = st.sampled_from(["range", "roundrobin", "sticky"])


@given(name=_eager, group=groups(owning="anything"))
@_some
def test_every_partition_that_is_read_has_one_reader(name: str, group: Group) -> None:
    """A partition without a reader stands still; with two, records are done twice."""
    plan = ASSIGNORS[name].assign(group.members, group.counts)
    owned = owners(plan)
    assert owned.keys() == group.partitions
    topics = {member.member_id: member.topics for member in group.members}
    assert all(partition.topic in topics[owner] for partition, owner in owned.items())


@given(name=st.sampled_from(["sticky", "roundrobin"]), group=groups(equal=True, owning="anything"))
@_some
def test_equal_subscriptions_get_equal_shares(name: str, group: Group) -> None:
    """Nobody has more than one partition more than another."""
    shares = [len(own) for own in ASSIGNORS[name].assign(group.members, group.counts).values()]
    assert max(shares) - min(shares) <= 1


@given(name=st.sampled_from(["sticky", "cooperative-sticky"]), group=groups())
@_some
def test_nothing_moves_when_nothing_has_changed(name: str, group: Group) -> None:
    """A rebalance for no reason must not cost anybody its partitions."""
    first = ASSIGNORS[name].assign(group.members, group.counts)
    again = ASSIGNORS[name].assign(_after(group, first), group.counts)
    assert again == first


@given(group=groups(equal=True), data=st.data())
@_some
def test_only_what_a_leaver_had_moves(group: Group, data: st.DataObject) -> None:
    """The others keep all they had: that is what sticky is for."""
    before = ASSIGNORS["sticky"].assign(group.members, group.counts)
    stay = _after(group, before)
    stay.remove(data.draw(st.sampled_from(stay)))
    after = ASSIGNORS["sticky"].assign(stay, group.counts)
    assert all(set(before[member.member_id]) <= set(after[member.member_id]) for member in stay)


@given(group=groups(owning="anything"))
@_some
def test_cooperative_members_are_not_given_what_another_still_holds(group: Group) -> None:
    """The old owner must have let go before the new one begins."""
    plan = ASSIGNORS["cooperative-sticky"].assign(group.members, group.counts)
    owned = owners(plan)
    for member in group.members:
        for partition in plan[member.member_id]:
            others = [each for each in group.members if each is not member and partition in each.owned]
            rightful = partition in member.owned and all(
                each.generation < member.generation for each in others
            )
            assert not others or rightful
    assert owned.keys() <= group.partitions


@given(group=groups(owning="anything"))
@_some
def test_cooperative_rebalances_come_to_rest(group: Group) -> None:
    """Every partition has its reader after a round or two more, and then nothing changes."""
    assign = ASSIGNORS["cooperative-sticky"].assign
    members = group.members
    plans = []
    for generation in range(6, 11):
        plan = assign(members, group.counts)
        plans.append(plan)
        # A member keeps what it owned and was given, and takes what was added.
        members = tuple(
            MemberSubscription(
                each.member_id, each.topics, each.instance_id, tuple(plan[each.member_id]), generation
            )
            for each in members
        )
    assert owners(plans[3]).keys() == group.partitions
    assert plans[4] == plans[3]


def test_extra_partitions_of_range_go_to_the_first_members_of_every_topic() -> None:
    """The known weakness: two topics of three partitions give the first member four, the second two."""
    members = [MemberSubscription("b", ("s", "t")), MemberSubscription("a", ("s", "t"))]
    plan = ASSIGNORS["range"].assign(members, {"s": 3, "t": 3})
    assert {member: len(own) for member, own in plan.items()} == {"a": 4, "b": 2}


def test_static_members_come_first() -> None:
    """They keep their places when others come, whatever member id they have just been given."""
    members = [MemberSubscription("a", ("t",)), MemberSubscription("z", ("t",), instance_id="i")]
    plan = ASSIGNORS["range"].assign(members, {"t": 3})
    assert plan == {"z": [TopicPartition("t", 0), TopicPartition("t", 1)], "a": [TopicPartition("t", 2)]}


def test_member_ids_are_sorted_as_java_sorts_them() -> None:
    """A horse is above U+FFFF, where Java compares surrogates: it comes before U+FFEE."""
    members = [MemberSubscription("\uffee", ("t",)), MemberSubscription("\U0001f40e", ("t",))]
    plan = ASSIGNORS["range"].assign(members, {"t": 1})
    assert plan == {"\U0001f40e": [TopicPartition("t", 0)], "\uffee": []}


def test_later_generation_wins_a_disputed_partition() -> None:
    """A zombie comes back and claims what has been given to another since."""
    zombie = MemberSubscription("a", ("t",), owned=(TopicPartition("t", 0),), generation=4)
    owner = MemberSubscription("b", ("t",), owned=(TopicPartition("t", 0),), generation=5)
    plan = ASSIGNORS["sticky"].assign([zombie, owner], {"t": 1})
    assert plan == {"a": [], "b": [TopicPartition("t", 0)]}


def test_uneven_start_is_evened_out_along_a_chain() -> None:
    """`a` can only be relieved by `b` handing something on to `c`: single moves would not get there."""
    had = tuple(TopicPartition("s", number) for number in range(3))
    kept = tuple(TopicPartition("t", number) for number in range(2))
    members = [
        MemberSubscription("a", ("s",), owned=had, generation=1),
        MemberSubscription("b", ("s", "t"), owned=kept, generation=1),
        MemberSubscription("c", ("t",), generation=1),
    ]
    plan = ASSIGNORS["sticky"].assign(members, {"s": 3, "t": 2})
    assert sorted(map(len, plan.values())) == [1, 2, 2]


@pytest.mark.parametrize("blob", [None, b"", b"\xff\xff\xff", b"\0\0\0\x01"])
def test_unreadable_user_data_counts_as_nothing(blob: bytes | None) -> None:
    """Another client's mistake must not stop the group."""
    assert previous(blob) == ((), -1)


def test_user_data_of_older_members_is_read() -> None:
    """Before 2.3 sticky members sent no generation; cooperative ones before 3.4 only in the user data."""
    rows = [TopicPartitions(topic="t", partitions=[2])]
    old = compiler.encode(StickyUserData(previous_assignment=rows), 0)
    assert previous(old) == ((TopicPartition("t", 2),), -1)
    message = Subscription(topics=["t"], user_data=b"\0\0\0\x07", owned_partitions=rows)
    blob = consumer_protocol.encode(message, 1)
    member = member_of("cooperative-sticky", "m", None, blob)
    assert (member.owned, member.generation) == ((TopicPartition("t", 2),), 7)
    assert member_of("range", "m", None, subscription("range", ["t"], [], -1)).topics == ("t",)


def _after(group: Group, plan: dict[str, list[TopicPartition]]) -> list[MemberSubscription]:
    return [
        MemberSubscription(each.member_id, each.topics, each.instance_id, tuple(plan[each.member_id]), 1)
        for each in group.members
    ]
