"""Members come and go: generations, leaders, assignments, and what others see of it."""

import pytest

from tests.lab.personas import personas
from tests.lab.personas.cluster import TOPIC, Cluster
from tests.lab.personas.member import Member, assemble, settle, subscription


def completing(cluster: Cluster) -> str:
    return "AwaitingSync" if cluster.is_first else "CompletingRebalance"


def gone(cluster: Cluster) -> str:
    """What becomes of a group without members: before 0.10.1 it is no more."""
    return "Dead" if cluster.is_first else "Empty"


@personas()
def test_a_lone_member_goes_through_all_states(cluster: Cluster) -> None:
    """The life of a group in the words of DescribeGroups, which tools show to people."""
    one = Member(cluster)
    assert one.described().group_state == "Dead"
    joined = one.join()
    assert (joined.error_code, joined.generation_id, joined.leader) == (0, 1, one.id)
    assert [member.metadata for member in joined.members] == [subscription(TOPIC)]
    assert one.described().group_state == completing(cluster)
    assert one.sync({one.id: b"everything"}).assignment == b"everything"
    assert one.described().group_state == "Stable"
    assert one.heartbeat() == 0
    assert one.leave() == 0
    assert one.described().group_state == gone(cluster)
    assert one.heartbeat() == 25


@personas()
def test_a_second_member_makes_the_first_join_again(cluster: Cluster) -> None:
    """A heartbeat is how members hear of a rebalance; it ends when all have joined."""
    one, two = Member(cluster, "one"), Member(cluster, "two")
    assemble(one)
    waiting = two.start_join()
    one.wait_for_state("PreparingRebalance")
    assert one.heartbeat() == 27
    assert one.sync().error_code == 27
    assert not two.client.is_answered()
    first, second = one.join(), two.joined(waiting)
    assert first.generation_id == second.generation_id == 2
    assert first.leader == second.leader == one.id
    assert len(first.members) == 2
    assert second.members == []
    parked = two.start_sync()
    assert one.heartbeat() == (27 if cluster.is_first else 0), "KAFKA-10134"
    assert not two.client.is_answered()
    assert one.sync({one.id: b"a", two.id: b"b"}).assignment == b"a"
    assert two.client.receive(parked).assignment == b"b"
    assert [member.heartbeat() for member in (one, two)] == [0, 0]


@personas()
def test_three_members_become_two(cluster: Cluster) -> None:
    """Who leaves makes the others rebalance at once, and knows no generation any more."""
    one, two, three = (Member(cluster, name) for name in ("one", "two", "three"))
    assemble(one, two, three)
    assert one.generation == 3
    assert two.leave() == 0
    assert [member.heartbeat() for member in (one, two, three)] == [27, 27 if cluster.is_first else 25, 27]
    waiting = three.start_join()
    assert one.join().generation_id == 4
    assert three.joined(waiting).generation_id == 4
    settle(one, three)
    assert one.described().group_state == "Stable"
    assert two.heartbeat() == 25


@personas()
def test_a_follower_that_rejoins_unchanged_gets_the_current_generation(cluster: Cluster) -> None:
    """Its answer was lost; the others need not rebalance. The leader has a reason when it joins again."""
    one, two = Member(cluster, "one"), Member(cluster, "two")
    assemble(one, two)
    again = two.join()
    assert (again.generation_id, again.leader, again.members) == (2, one.id, [])
    assert one.heartbeat() == 0
    waiting = one.start_join()
    two.wait_for_state("PreparingRebalance")
    assert two.heartbeat() == 27
    assert two.join().generation_id == 3
    assert len(one.joined(waiting).members) == 2
    settle(one, two)


@personas()
def test_a_follower_with_other_topics_makes_all_rebalance(cluster: Cluster) -> None:
    """Its subscription is for the leader to know."""
    one, two = Member(cluster, "one"), Member(cluster, "two")
    assemble(one, two)
    two.protocols = (("range", subscription("other")),)
    waiting = two.start_join()
    one.wait_for_state("PreparingRebalance")
    told = one.join()
    assert sorted(member.metadata for member in told.members) == [subscription("other"), subscription(TOPIC)]
    assert two.joined(waiting).generation_id == 3


@personas()
def test_joining_again_before_the_sync_repeats_the_answer(cluster: Cluster) -> None:
    """A client that lost the answer to its join sends it again; leader and follower get theirs."""
    one, two = Member(cluster, "one"), Member(cluster, "two")
    assemble(one)
    waiting = two.start_join()
    one.wait_for_state("PreparingRebalance")
    one.join()
    two.joined(waiting)
    assert two.join().generation_id == 2
    assert len(one.join().members) == 2
    settle(one, two)


@personas()
def test_a_new_member_ends_the_wait_for_the_assignment(cluster: Cluster) -> None:
    """Who waits for a leader's assignment is sent back to join when the group changes meanwhile."""
    one, two, three = (Member(cluster, name) for name in ("one", "two", "three"))
    assemble(one)
    waiting = two.start_join()
    one.wait_for_state("PreparingRebalance")
    one.join()
    two.joined(waiting)
    parked = two.start_sync()
    waiting = three.start_join()
    assert two.client.receive(parked).error_code == 27
    others = [(member, member.start_join()) for member in (one, two)]
    assert {member.joined(sent).generation_id for member, sent in [*others, (three, waiting)]} == {3}
    settle(one, two, three)


@personas()
def test_the_protocol_that_all_support_is_chosen(cluster: Cluster) -> None:
    """Each votes for its first; one that a member lacks is no candidate."""
    one = Member(cluster, "one", protocols=(("sticky", subscription("s")), ("range", subscription("r1"))))
    two = Member(cluster, "two", protocols=(("range", subscription("r2")),))
    assemble(one)
    assert one.described().protocol_data == "sticky"
    waiting = two.start_join()
    one.wait_for_state("PreparingRebalance")
    joined = one.join()
    assert joined.protocol_name == "range"
    assert sorted(member.metadata for member in joined.members) == [subscription("r1"), subscription("r2")]
    assert two.joined(waiting).protocol_name == "range"


@personas()
def test_a_member_without_heartbeats_is_removed(cluster: Cluster) -> None:
    """The session of a crashed member ends, and those who live take over."""
    one, two = Member(cluster, "one"), Member(cluster, "two", session_ms=600, rebalance_ms=600)
    assemble(one, two)
    one.wait_for_state("PreparingRebalance")
    assert one.heartbeat() == 27
    assert one.join().generation_id == 3
    settle(one)
    assert two.heartbeat() == 25
    assert two.commit(1) == 25


@personas()
def test_the_last_session_that_ends_empties_the_group(cluster: Cluster) -> None:
    """Nobody says goodbye when everything crashes."""
    one = Member(cluster, session_ms=600, rebalance_ms=600)
    assemble(one)
    one.wait_for_state(gone(cluster))
    assert one.heartbeat() == 25
    again = Member(cluster)
    assert again.join().generation_id == (1 if cluster.is_first else 3), "a group that died begins anew"


@personas()
def test_who_does_not_rejoin_in_time_is_left_behind(cluster: Cluster) -> None:
    """A rebalance waits no longer than its members' time to rejoin, though their sessions last.

    In 0.9 the longest session is that time. If the other one's ends at the same moment, 0.9 goes wrong: it
    begins a rebalance for a member that is gone already.
    """
    one = Member(cluster, "one", session_ms=600 if cluster.is_first else 10_000, rebalance_ms=600)
    two = Member(cluster, "two", session_ms=900 if cluster.is_first else 10_000, rebalance_ms=600)
    assemble(one)
    waiting = two.start_join()
    assert two.joined(waiting).leader == two.id
    settle(two)
    assert two.generation == 2
    assert one.heartbeat() == 25


@personas("2.8", "3.9")
@pytest.mark.parametrize("join", [0, 1, 3, 4, 5])
def test_older_clients_are_served_as_in_their_time(cluster: Cluster, join: int) -> None:
    """A client speaks the versions it was built with, and the broker still answers them."""
    versions = {
        "Join": join,
        "Sync": min(join, 3),
        "Heartbeat": min(join, 3),
        "Leave": min(join, 3),
        "Describe": min(join, 4),
        "Commit": 2 + join,
        "FetchOffsets": 1 + join,
    }
    one, two = (Member(cluster, name, versions=versions) for name in ("one", "two"))
    assemble(one, two)
    assert one.commit(7) == 0
    assert one.committed() == (7, 0)
    assert two.leave() == 0
    assert one.heartbeat() == 27
    assert one.leave() == 0
    assert one.described().group_state == "Empty"
    assert one.committed() == (7, 0)
