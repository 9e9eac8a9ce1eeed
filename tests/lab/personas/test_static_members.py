"""What came after 0.9: ids that are given out (KIP-394), static members (KIP-345), leaving in batches."""

import pytest

from kelpie.wire.api.leave_group import LeaveGroupRequest, MemberIdentity
from tests.lab.personas import personas
from tests.lab.personas.cluster import Cluster
from tests.lab.personas.member import MEMBER_ID_REQUIRED, Member, assemble, settle, subscription


@personas("2.8", "3.9")
def test_a_first_join_is_answered_with_an_id(cluster: Cluster) -> None:
    """KIP-394: a client that gives up and comes again must not leave members behind."""
    one = Member(cluster)
    first = one.client.ask(one.join_request(), one.versions["Join"])
    assert first.error_code == MEMBER_ID_REQUIRED
    assert one.described().members == []
    assert one.heartbeat(member_id=first.member_id, generation_id=0) == 25
    assert one.leave(first.member_id) == 0, "who was given an id may give it back"
    assert one.join(member_id=first.member_id).error_code == 25


@personas("2.8", "3.9")
def test_a_pending_id_holds_up_the_rebalance(cluster: Cluster) -> None:
    """Whoever has been promised a place is waited for."""
    one, two = Member(cluster, "one"), Member(cluster, "two")
    assemble(one)
    given = two.client.ask(two.join_request(), two.versions["Join"]).member_id
    waiting = one.start_join()
    two.wait_for_state("PreparingRebalance")
    assert not one.client.is_answered()
    sent = two.start_join(member_id=given)
    assert one.joined(waiting).generation_id == two.joined(sent).generation_id == 2
    settle(one, two)


@personas("2.8", "3.9")
def test_a_static_follower_returns_without_a_rebalance(cluster: Cluster) -> None:
    """KIP-345: a restart within the session costs the others nothing."""
    one, two = Member(cluster, "one", instance="a"), Member(cluster, "two", instance="b")
    assemble(one, two)
    old = two.id
    again = Member(cluster, "again", instance="b")
    joined = again.join()
    assert (joined.error_code, joined.generation_id, joined.leader) == (0, 2, one.id)
    assert again.id != old
    assert again.sync().assignment == b"two"
    assert [one.heartbeat(), again.heartbeat(), two.heartbeat()] == [0, 0, 82]
    assert two.sync().error_code == two.join().error_code == two.commit(1) == two.leave() == 82
    assert again.described().group_state == "Stable"


@personas("2.8", "3.9")
def test_a_static_leader_returns_without_a_rebalance(cluster: Cluster) -> None:
    """It must not assign again: 2.8 names its old id as the leader, 3.9 tells it so (KIP-814)."""
    one, two = Member(cluster, "one", instance="a"), Member(cluster, "two", instance="b")
    assemble(one, two)
    old = one.id
    again = Member(cluster, "again", instance="a")
    joined = again.join()
    assert joined.generation_id == 2
    if cluster.persona == "2.8":
        assert (joined.leader, joined.members) == (old, [])
    else:
        assert (joined.leader, joined.skip_assignment, len(joined.members)) == (again.id, True, 2)
    assert again.sync().assignment == b"one"
    assert two.heartbeat() == 0


@personas("2.8", "3.9")
def test_a_static_member_with_other_topics_in_a_stable_group(cluster: Cluster) -> None:
    """Its protocol stays, so nobody rebalances; in 2.8 and 3.9 alike."""
    one, two = Member(cluster, "one", instance="a"), Member(cluster, "two", instance="b")
    assemble(one, two)
    changed = Member(cluster, "again", instance="b", protocols=(("range", subscription("other")),))
    assert changed.join().generation_id == 2
    assert one.heartbeat() == 0
    one.described()


@personas("2.8", "3.9")
def test_wrong_instances(cluster: Cluster) -> None:
    """An instance id that is not the member's, or not the group's."""
    one, two = Member(cluster, "one", instance="a"), Member(cluster, "two", instance="b")
    assemble(one, two)
    for instance in ("b", "c", None):
        heard = [
            one.heartbeat(group_instance_id=instance),
            one.sync(group_instance_id=instance).error_code,
            one.commit(1, group_instance_id=instance),
        ]
        assert instance != "b" or heard == [82, 82, 82]
    unknown = {"group_instance_id": "c", "member_id": one.id}
    assert one.client.receive(one.start_join(**unknown)).error_code in (25, 82)


@personas("2.8", "3.9")
@pytest.mark.parametrize("version", [3, 4])
def test_several_members_leave_at_once(cluster: Cluster, version: int) -> None:
    """An administrator removes static members by name; each has its own answer."""
    one, two = Member(cluster, "one", instance="a"), Member(cluster, "two", instance="b")
    three = Member(cluster, "three")
    assemble(one, two, three)
    leaving = [
        MemberIdentity(member_id="", group_instance_id="a"),
        MemberIdentity(member_id="someone else", group_instance_id="b"),
        MemberIdentity(member_id="", group_instance_id="nobody"),
        MemberIdentity(member_id="nobody"),
        MemberIdentity(member_id=three.id),
        MemberIdentity(member_id=three.id),
    ]
    answer = one.client.ask(LeaveGroupRequest(group_id=one.group, members=leaving), version)
    assert answer.error_code == 0
    assert [member.error_code for member in answer.members] == [0, 82, 25, 25, 0, 25]
    assert two.heartbeat() == 27
    nothing = one.client.ask(LeaveGroupRequest(group_id=one.group, members=[]), version)
    assert nothing.error_code == 0
    missing = one.client.ask(LeaveGroupRequest(group_id="never-was", members=leaving[:2]), version)
    assert [member.error_code for member in missing.members] == [25, 25]


@personas("2.8", "3.9")
def test_a_static_member_stays_through_a_rebalance_that_it_misses(cluster: Cluster) -> None:
    """It may be restarting; only the end of its session removes it."""
    one = Member(cluster, "one", rebalance_ms=700)
    two = Member(cluster, "two", instance="b", rebalance_ms=700)
    assemble(one, two)
    three = Member(cluster, "three", rebalance_ms=700)
    waiting = [(member, member.start_join()) for member in (three, one)]
    assert {member.joined(sent).generation_id for member, sent in waiting} == {3}
    assert one.heartbeat() == 0
    assert len(one.described().members) == 3
    assert two.heartbeat() == 22


@personas("2.8", "3.9")
def test_who_joins_and_never_syncs_is_removed(cluster: Cluster) -> None:
    """KAFKA-12890: its heartbeats would otherwise hold up the group for ever."""
    one = Member(cluster, "one", rebalance_ms=700)
    one.join()
    cluster.until(lambda: one.client.is_answered() or one.described(kept=False).group_state == "Empty")
    assert one.heartbeat() == 25
