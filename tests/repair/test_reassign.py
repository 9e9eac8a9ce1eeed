"""kelpie reassign-offsets-topic on lab clusters."""

from pathlib import Path

import pytest

from kelpie.client.nodes import Nodes
from kelpie.errors import ErrorCode
from kelpie.lab import SyncCluster
from kelpie.observations import OFFSETS_TOPIC
from kelpie.repair.applying import RepairResult
from kelpie.repair.change_records import records
from kelpie.repair.plan import CannotRepair
from kelpie.repair.reassign import ReassignmentOptions, cancel, reassign
from tests.repair.scene import a_cluster, commit, committed, do, undone, with_nodes


def apply_of(cluster: SyncCluster, wish: ReassignmentOptions) -> RepairResult:
    async def work(nodes: Nodes) -> RepairResult:
        return await do(await reassign(nodes, wish))

    return with_nodes(cluster, work)


def replicas(cluster: SyncCluster) -> list[list[int]]:
    return [it["replicas"] for it in cluster.describe()["topics"][OFFSETS_TOPIC]]


@pytest.mark.parametrize("persona", ["4.3", "2.8"])
def test_every_partition_gets_replicas_enough_and_can_be_moved_back(persona: str, tmp_path: Path) -> None:
    """One replica each is the trap that many clusters sit in; groups keep their offsets on the way out."""
    with a_cluster(persona, replication=1) as cluster:
        commit(cluster, "billing", {0: 4})
        before = replicas(cluster)
        result = apply_of(cluster, ReassignmentOptions(replication=2))
        assert result.failure is None
        after = replicas(cluster)
        assert all(len(set(nodes)) == 2 for nodes in after)
        assert [nodes[0] for nodes in after] == [nodes[0] for nodes in before], "leaders stay"
        assert apply_of(cluster, ReassignmentOptions(replication=2)).plan.steps == (), (
            "a second run finds nothing to do"
        )
        cluster.kill(1)
        assert committed(cluster, "billing") == {0: 4}, "that is what it was for"
        cluster.start(1)
        (record,) = records()
        assert undone(cluster, record).failure is None
        assert replicas(cluster) == before


def test_dead_brokers_are_replaced_and_leaderless_partitions_told() -> None:
    """Who is dead cannot receive; what has no leader cannot be copied."""
    with a_cluster(replication=1) as cluster:
        cluster.kill(3)
        lost = [at for at, nodes in enumerate(replicas(cluster)) if nodes == [3]]
        result = apply_of(cluster, ReassignmentOptions())
        assert result.failure is None
        assert result.plan.details["leaderless"] == lost
        assert "Start broker 3; if that is gone for good, see kelpie elect" in result.plan.warnings[0]
        assert all(
            nodes == [3] if at in lost else set(nodes) == {1, 2} for at, nodes in enumerate(replicas(cluster))
        )


def test_a_move_that_takes_too_long_goes_on_and_can_be_cancelled() -> None:
    """The time limit is the operator's; the brokers copy on, and the move can be taken back."""
    with a_cluster(replication=1) as cluster:
        before = replicas(cluster)
        lags = [cluster.lag(node) for node in cluster.node_ids]
        result = apply_of(cluster, ReassignmentOptions(replication=2, wait_s=0.3))
        assert result.failure is not None
        assert "still copied after 0.3 s" in result.failure
        assert any("--cancel" in line for line in result.plan.steps[2].undo.lines)

        async def watch_again(nodes: Nodes) -> list[str]:
            return [
                step.does for step in (await reassign(nodes, ReassignmentOptions(replication=2))).plan.steps
            ]

        (again,) = with_nodes(cluster, watch_again)
        assert again.startswith("Wait until"), "running it again hands in nothing twice"

        async def stop(nodes: Nodes) -> RepairResult:
            return await do(await cancel(nodes))

        assert with_nodes(cluster, stop).failure is None
        assert replicas(cluster) == before
        assert with_nodes(cluster, stop).plan.steps == ()
        for lag in lags:
            lag.lift()


def test_what_the_controller_refuses_is_told() -> None:
    """In its words."""
    with a_cluster(replication=1) as cluster:
        cluster.fail(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, api="AlterPartitionReassignments")
        result = apply_of(cluster, ReassignmentOptions())
        assert result.failure is not None
        assert "31 CLUSTER_AUTHORIZATION_FAILED" in result.failure


@pytest.mark.parametrize(
    ("persona", "wish", "complaint"),
    [
        ("0.9", ReassignmentOptions(), "older than Kafka 2.4: replicas are moved through its ZooKeeper"),
        ("4.3", ReassignmentOptions(brokers=(1, 9)), "Broker 9 cannot receive replicas"),
        ("4.3", ReassignmentOptions(file=Path("no-such.json")), "no-such.json cannot be read"),
    ],
)
def test_what_cannot_be_is_refused(persona: str, wish: ReassignmentOptions, complaint: str) -> None:
    """With what would do."""
    with a_cluster(persona) as cluster, pytest.raises(CannotRepair, match=complaint):
        with_nodes(cluster, lambda nodes: reassign(nodes, wish))
