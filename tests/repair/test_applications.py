"""Applications that a repair would hurt: Kafka Streams, those that commit without members, share groups."""

from typing import Any

import pytest

from kelpie.lab import SyncCluster
from kelpie.model.names import TopicPartition
from kelpie.observations import Commit, Generation, GroupState, Member, Observations
from kelpie.repair.applications import commits_alone, refuse_share_group, streams_signs
from kelpie.repair.change_records import StoredOffset
from kelpie.repair.offset_sources import Sources
from kelpie.repair.picture import survey_cluster
from kelpie.repair.plan import CannotRepair, Plan
from kelpie.repair.rehome import rehome
from kelpie.repair.reset import reset
from kelpie.repair.reset_targets import ToEarliest
from tests.repair.scene import GROUP, a_cluster, commit, with_nodes

NOW = 1_700_000_000_000
MEMBER = Member("m-1")
EMPTY = GroupState(GROUP, "Empty", protocol_type="consumer")


def a_commit(record: int, at: int = NOW - 1000) -> Commit:
    return Commit(GROUP, "orders", 0, 4, at, source=f"broker 1 (h:1)@{record}")


def a_generation(record: int, *members: Member, protocol: str = "range") -> Generation:
    return Generation(GROUP, 1, members, "consumer", protocol, source=f"broker 1 (h:1)@{record}")


@pytest.mark.parametrize(
    ("state", "history", "topics", "sign"),
    [
        (GroupState(GROUP, "Empty", "streams"), Observations(), [], "KIP-1071"),
        (GroupState(GROUP, "Stable", protocol="stream"), Observations(), [], 'assignor "stream"'),
        (
            None,
            Observations(generations=[a_generation(1, MEMBER, protocol="stream")]),
            [],
            'assignor "stream"',
        ),
        (
            EMPTY,
            Observations(),
            ["billing-counts-changelog"],
            "is a topic of its state: billing-c",
        ),
        (EMPTY, Observations(), ["billing-by-key-repartition"], "billing-by-key-repartition"),
    ],
)
def test_streams_applications_are_recognised(
    state: GroupState | None, history: Observations, topics: list[str], sign: str
) -> None:
    """By their protocol, their assignor, now or in the history, or their topics."""
    (found,) = streams_signs(GROUP, state, history, topics)
    assert sign in found


def test_other_groups_are_not_taken_for_streams() -> None:
    """Names that only begin or end alike; another group's assignor; nothing known."""
    others = Observations(generations=[Generation("other", 1, (MEMBER,), "consumer", "stream")])
    topics = ["billing-orders", "other-counts-changelog", "billing-changelogs", "changelog"]
    assert streams_signs(GROUP, EMPTY, others, topics) == []
    assert streams_signs(GROUP, None, Observations(), []) == []


@pytest.mark.parametrize(
    ("state", "commits", "generations", "alone"),
    [
        (EMPTY, [a_commit(5)], [a_generation(4)], True),
        (GroupState(GROUP, "Empty"), [a_commit(5)], [], True),
        (EMPTY, [a_commit(3)], [a_generation(2, MEMBER), a_generation(4)], False),  # Its members left since.
        (EMPTY, [a_commit(5)], [a_generation(4, MEMBER)], False),  # A member committed.
        (EMPTY, [a_commit(5, NOW - 7_200_000)], [a_generation(4)], False),  # Long ago.
        (EMPTY, [a_commit(5)], [], False),  # It had members before what was read: who committed is unknown.
        (EMPTY, [], [a_generation(4)], False),
    ],
)
def test_commits_without_members_are_told_by_the_order_of_the_log(
    state: GroupState, commits: list[Commit], generations: list[Generation], alone: bool
) -> None:
    """A group whose members have just been stopped is the ordinary case, and must not be warned of."""
    history = Observations(commits=commits, generations=generations)
    assert bool(commits_alone(GROUP, state, history, NOW)) is alone


def test_what_kelpie_has_committed_itself_is_no_application() -> None:
    """After a reset the next plan would warn of the reset."""
    history = Observations(commits=[a_commit(5)], generations=[a_generation(4)])
    name = TopicPartition("orders", 0)
    assert commits_alone(GROUP, EMPTY, history, NOW, {name: StoredOffset(4)}) == ""
    assert commits_alone(GROUP, EMPTY, history, NOW, {name: StoredOffset(3)}) != ""


def plan_of(cluster: SyncCluster, what: str) -> Plan:
    async def work(nodes: Any) -> Plan:
        if what == "rehome":
            return (await rehome(nodes, GROUP, Sources())).plan
        return (await reset(nodes, GROUP, ToEarliest())).plan

    return with_nodes(cluster, work)


def test_plans_warn_before_a_person_applies_them() -> None:
    """A Streams application without state, and offsets that the next commit overwrites."""
    with a_cluster() as cluster:
        cluster.create_topic("billing-counts-changelog", 1, replication=1)
        commit(cluster, GROUP, {0: 4})
        move, set_back = plan_of(cluster, "rehome"), plan_of(cluster, "reset")
        assert "begins with empty state" in move.warnings[0]
        assert "counted again" in set_back.warnings[0]
        assert all("without being a member" in plan.warnings[1] for plan in (move, set_back))
        assert move.applicable, "a person may know better"


def test_a_share_group_is_refused_with_what_to_do(cluster: SyncCluster) -> None:
    """Its plan looked well, and failed when it was applied."""
    picture = with_nodes(cluster, survey_cluster)
    with pytest.raises(CannotRepair, match=r"kafka-share-groups.sh --bootstrap-server .* --reset-offsets"):
        refuse_share_group(picture, GroupState("s", "Stable", "share"), "reset")
    refuse_share_group(picture, EMPTY, "reset")
