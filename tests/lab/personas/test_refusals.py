"""Every wrong request in every state of a group: the order of Kafka's checks, release by release."""

from typing import Any

from tests.lab.personas import personas
from tests.lab.personas.cluster import Cluster
from tests.lab.personas.member import SUBSCRIBED, Member, assemble

STRANGER = "stranger-00000000-0000-0000-0000-000000000000"


def provoke(member: Member) -> dict[str, int]:
    """Everything that can be wrong in a member's request, none of which changes the group."""
    heard = {}
    for who, member_id in (("stranger", STRANGER), ("nobody", ""), ("member", member.id)):
        for when, generation in (
            ("now", member.generation),
            ("later", member.generation + 1),
            ("never", -1),
        ):
            if who == "member" and when == "now":
                continue
            at: dict[str, Any] = {"member_id": member_id, "generation_id": generation}
            heard[f"{who} {when} beats"] = member.heartbeat(**at)
            heard[f"{who} {when} syncs"] = member.sync(**at).error_code
            commit: dict[str, Any] = {"member_id": member_id, "generation_id_or_member_epoch": generation}
            heard[f"{who} {when} commits"] = member.commit(5, **commit)
    heard["stranger leaves"] = member.leave(STRANGER)
    heard["nobody leaves"] = member.leave("")
    heard["stranger joins"] = member.client.receive(member.start_join(member_id=STRANGER)).error_code
    newcomer = Member(member.cluster, "newcomer")
    for name, protocol_type, protocols in (
        ("other type", "connect", SUBSCRIBED),
        ("other protocol", "consumer", (("unheard-of", b""),)),
        ("no protocol", "consumer", ()),
        ("no type", "", SUBSCRIBED),
    ):
        newcomer.protocols = protocols
        heard[name] = newcomer.join(protocol_type=protocol_type).error_code
    return heard


@personas()
def test_a_stable_group_refuses_what_is_wrong(cluster: Cluster) -> None:
    """Fencing: zombies and strangers change nothing."""
    one = Member(cluster)
    assemble(one)
    heard = provoke(one)
    assert {heard[f"stranger {when} beats"] for when in ("now", "later")} == {25}
    assert heard["member later beats"] == heard["member later commits"] == 22
    assert heard["other type"] == heard["other protocol"] == 23
    assert heard["stranger leaves"] == heard["stranger joins"] == 25
    assert one.committed() == (-1, 0)
    assert one.heartbeat() == 0
    assert one.described().group_state == "Stable"


@personas()
def test_a_group_that_waits_for_its_assignment_refuses_what_is_wrong(cluster: Cluster) -> None:
    """Kafka 0.9 says REBALANCE_IN_PROGRESS before it looks who asks."""
    one = Member(cluster)
    one.join()
    heard = provoke(one)
    assert heard["stranger now beats"] == (27 if cluster.is_first else 25)
    assert one.commit(1) == 27
    assert one.committed() == (-1, 0)


@personas()
def test_a_group_that_waits_for_joins_refuses_what_is_wrong(cluster: Cluster) -> None:
    """A rebalance is no time at which anybody may speak for anybody."""
    one, two = Member(cluster, "one"), Member(cluster, "two")
    assemble(one)
    waiting = two.start_join()
    one.wait_for_state("PreparingRebalance")
    heard = provoke(one)
    assert heard["stranger now beats"] == (27 if cluster.is_first else 25)
    assert one.commit(3) == 0, "the last offsets before a rebalance are taken"
    assert one.committed() == (3, 0)
    assert one.join().generation_id == two.joined(waiting).generation_id == 2


@personas()
def test_a_group_that_lost_its_members_refuses_them(cluster: Cluster) -> None:
    """What was true a moment ago is not enough."""
    one = Member(cluster)
    assemble(one)
    assert one.leave() == 0
    heard = provoke_without_joins(one)
    assert heard["beats"] == heard["syncs"] == heard["leaves"] == 25
    # 0.9 has forgotten the group, and with it that there was a generation to check.
    assert heard["commits"] == (22 if cluster.is_first else 25)


@personas()
def test_a_group_that_never_was_refuses_its_members(cluster: Cluster) -> None:
    """Offsets of a generation need a group; those of nobody in particular do not."""
    one = Member(cluster)
    one.id, one.generation = STRANGER, 1
    heard = provoke_without_joins(one)
    assert heard == {"beats": 25, "syncs": 25, "commits": 22, "leaves": 25, "joins": 25}


def provoke_without_joins(one: Member) -> dict[str, int]:
    return {
        "beats": one.heartbeat(),
        "syncs": one.sync().error_code,
        "commits": one.commit(4),
        "leaves": one.leave(),
        "joins": one.client.receive(one.start_join(member_id=one.id or STRANGER)).error_code,
    }


@personas()
def test_sessions_must_be_within_the_brokers_bounds(cluster: Cluster) -> None:
    """0.9 allows half a minute, later releases half an hour."""
    one = Member(cluster)
    for timeout in (0, 499, 30_001, 1_800_001):
        one.session_ms = timeout
        refused = timeout in (0, 499, 1_800_001) or cluster.is_first
        assert one.join().error_code == (26 if refused else 0)


@personas()
def test_groups_without_a_name(cluster: Cluster) -> None:
    """Members need one; offsets do not, for clients once committed without a group."""
    one = Member(cluster, group="")
    one.id, one.generation = STRANGER, 1
    refused = 25 if cluster.is_first else 24
    assert one.client.receive(one.start_join(member_id="")).error_code == 24
    assert one.heartbeat() == one.sync().error_code == one.leave() == refused
    one.id, one.generation = "", -1
    assert one.commit(11) == 0
    assert one.committed() == (11, 0)
    assert one.described().group_state == ("Dead" if cluster.is_first else "Empty")
