"""kelpie elect on lab clusters, and what an unclean election would cost."""

import pytest

from kelpie.client.nodes import Nodes
from kelpie.lab import SyncCluster
from kelpie.model.names import TopicPartition
from kelpie.observations import OFFSETS_TOPIC, Commit, LogEnds, Observations, PartitionView
from kelpie.repair.applying import RepairResult
from kelpie.repair.elect import elect
from kelpie.repair.election_plan import Candidate, LivingLog
from kelpie.repair.losses import lost_commits, lost_records
from kelpie.repair.plan import CannotRepair, Plan
from tests.client.inhabitants import Inhabitants
from tests.repair.scene import a_cluster, do, with_nodes

ORDERS = TopicPartition("orders", 0)


def plan_of(cluster: SyncCluster, *partitions: TopicPartition, unclean: bool = False) -> Plan:
    return with_nodes(cluster, lambda nodes: elect(nodes, partitions, unclean=unclean)).plan


def apply_of(cluster: SyncCluster, *partitions: TopicPartition, unclean: bool = False) -> RepairResult:
    async def work(nodes: Nodes) -> RepairResult:
        return await do(await elect(nodes, partitions, unclean=unclean))

    return with_nodes(cluster, work)


def leader(cluster: SyncCluster, partition: TopicPartition) -> int:
    return int(cluster.describe()["topics"][partition.topic][partition.partition]["leader"])


def test_the_preferred_leader_is_elected(cluster: SyncCluster) -> None:
    """After a restart all leaders sit elsewhere; this brings them home, and loses nothing."""
    first = leader(cluster, ORDERS)
    cluster.restart(first)
    assert leader(cluster, ORDERS) != first
    result = apply_of(cluster, ORDERS)
    assert result.failure is None
    assert leader(cluster, ORDERS) == first
    assert "nothing is lost" in result.plan.steps[1].undo.text
    assert apply_of(cluster, ORDERS).plan.steps == ()


def test_an_unclean_election_says_what_it_costs_and_that_nothing_brings_it_back(
    cluster: SyncCluster,
) -> None:
    """The replica was out of sync when the last one in sync died."""
    first = leader(cluster, ORDERS)
    others = [node for node in cluster.node_ids if node != first]
    cluster.shrink_isr("orders", 0, [first])
    cluster.kill(first)
    cluster.wait_until(lambda state: state["topics"]["orders"][0]["leader"] == -1)
    plan = plan_of(cluster, ORDERS, unclean=True)
    assert "Nothing brings back what is lost" in plan.steps[1].undo.text
    assert "was not in sync" in plan.warnings[0]
    assert "--evidence DIR" in plan.warnings[0]
    assert leader(cluster, ORDERS) == -1, "a plan changes nothing"
    result = apply_of(cluster, ORDERS, unclean=True)
    assert result.failure is None
    assert leader(cluster, ORDERS) in others
    assert apply_of(cluster, ORDERS, unclean=True).plan.steps == ()


def test_the_living_logs_are_compared_and_a_longer_one_is_not_lost(cluster: SyncCluster) -> None:
    """The controller takes the first living replica. That the next one has more is seen in time."""
    state = cluster.describe()["topics"]["orders"][0]
    first, second, third = state["replicas"]
    with cluster.lag(second):
        cluster.shrink_isr("orders", 0, [first, third])

        async def write(nodes: Nodes) -> None:
            await Inhabitants(nodes).produce("orders", 0, 5)

        with_nodes(cluster, write)
        cluster.shrink_isr("orders", 0, [first])
        cluster.kill(first)
        cluster.wait_until(lambda state: state["topics"]["orders"][0]["leader"] == -1)
        plan = plan_of(cluster, ORDERS, unclean=True)
        assert not plan.applicable
        assert f"broker {second}: ends at 10" in plan.seen[0]
        assert f"broker {third}: ends at 15" in plan.seen[0]
        assert "5 records would be lost needlessly" in plan.obstacles[0]
        cluster.kill(second)
        again = plan_of(cluster, ORDERS, unclean=True)
        assert again.applicable
        assert f"{ORDERS} → broker {third}" in again.steps[1].changes


@pytest.mark.parametrize(
    ("logs", "better"),
    [
        ([LivingLog(2, 100), LivingLog(3, 120)], 3),
        ([LivingLog(2, 100), LivingLog(3, 100)], None),
        ([LivingLog(2, 100), LivingLog(3, failure="timed out")], None),
        ([LivingLog(2, failure="timed out"), LivingLog(3, 120)], None),  # Nothing can be compared.
    ],
)
def test_only_a_log_that_is_known_to_have_more_stands_in_the_way(
    logs: list[LivingLog], better: int | None
) -> None:
    """What is not known is told, and a person decides."""
    view = PartitionView("orders", 0, -1, (1, 2, 3), ())
    found = Candidate(view, 2, clean=False, end=logs[0].end, logs=tuple(logs)).better
    assert (found.node if found is not None else None) == better


def test_partitions_that_cannot_be_helped_are_told(cluster: SyncCluster) -> None:
    """Who would have to come back for it."""
    for node in cluster.node_ids[1:]:
        cluster.kill(node)
    states = cluster.describe()["topics"][OFFSETS_TOPIC]
    dead = next(it for it in states if 1 not in it["replicas"])
    plan = plan_of(cluster, TopicPartition(OFFSETS_TOPIC, dead["partition"]), unclean=True)
    assert not plan.applicable
    assert "no broker that holds a replica is alive; start broker" in plan.obstacles[0]
    with pytest.raises(CannotRepair, match="There is no partition orders-7"):
        plan_of(cluster, TopicPartition("orders", 7))


def test_old_releases_get_a_plan_for_a_person() -> None:
    """Kafka 0.9 takes such wishes from its configuration and from ZooKeeper only."""
    with a_cluster("0.9") as cluster:
        first = leader(cluster, ORDERS)
        cluster.restart(first)
        preferred = plan_of(cluster, ORDERS)
        assert not preferred.applicable
        assert any(
            "kafka-preferred-replica-election.sh" in line for way in preferred.instead for line in way.lines
        )
        cluster.make_leaderless("orders", 0)
        unclean = plan_of(cluster, ORDERS, unclean=True)
        assert not unclean.applicable
        lines = [line for way in unclean.instead for line in way.lines]
        assert any("unclean.leader.election.enable=true" in line for line in lines)
        assert any("delete /controller" in line for line in lines)


def test_commits_that_only_the_dead_have_are_counted() -> None:
    """Where another copy is read, the loss is known group by group."""
    kept = [Commit("a", *ORDERS, 4, 100, source="x@1"), Commit("b", *ORDERS, 9, 100, source="x@2")]
    known = Observations(
        commits=[
            Commit("a", *ORDERS, 4, 100, source="d/1@1"),
            Commit("a", *ORDERS, 6, 200, source="d/1@3"),
            Commit("b", *ORDERS, 9, 100, source="d/1@2"),
            Commit("c", *ORDERS, 2, 150, source="d/1@4"),
        ]
    )
    lost = lost_commits(["a", "b", "c"], kept, 3, known)
    assert [(it.group, it.known.offset, it.left) for it in lost] == [("a", 6, 4), ("c", 2, None)]


def test_commits_before_the_end_of_the_copy_are_kept_though_it_does_not_tell_them() -> None:
    """A replica that came back tells nothing beyond its high watermark, which is 0 on Kafka 0.9."""
    known = Observations(
        commits=[
            Commit("a", *ORDERS, 4, 100, source="d/1@1"),
            Commit("a", *ORDERS, 6, 200, source="d/1@2"),
            Commit("b", *ORDERS, 9, 100, source="d/1@0"),
        ]
    )
    (lost,) = lost_commits(["a", "b"], [], 2, known)
    assert (lost.group, lost.known.offset, lost.left) == ("a", 6, 4)


def test_records_beyond_the_copy_are_counted_by_disks_and_commits() -> None:
    """A committed offset was in the log once, whoever has it now."""
    disk = LogEnds(*ORDERS, 0, 120, source="d/orders-0")
    assert lost_records(ORDERS, 100, Observations(ends=[disk])) == (20, "d/orders-0")
    consumed = Commit("a", *ORDERS, 130, 100, source="d/__consumer_offsets-1@9")
    lost, source = lost_records(ORDERS, 100, Observations(ends=[disk], commits=[consumed]))
    assert (lost, source) == (30, "a commit, d/__consumer_offsets-1@9")
    assert lost_records(ORDERS, 200, Observations(ends=[disk])) == (0, "")
