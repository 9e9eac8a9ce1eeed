"""kelpie reassign-offsets-topic on lab clusters."""

from pathlib import Path

import pytest

from kelpie.client.nodes import Nodes
from kelpie.cluster import ClusterView
from kelpie.errors import ErrorCode
from kelpie.lab import SyncCluster
from kelpie.model.names import TopicPartition
from kelpie.observations import OFFSETS_TOPIC, BrokerView, PartitionView
from kelpie.repair.applying import RepairResult
from kelpie.repair.change_records import ChangeRecord, ReplicasChange, records
from kelpie.repair.plan import CannotRepair, Plan
from kelpie.repair.reassign import ReassignmentOptions, cancel, reassign, unreached
from kelpie.repair.reassignment_plan import OffsetsTopicState, plan_reassignment
from kelpie.repair.replica_placement import Placement, moves_for
from kelpie.wire.api.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tests.repair.scene import a_cluster, commit, committed, do, undone, with_nodes


def apply_of(cluster: SyncCluster, wish: ReassignmentOptions) -> RepairResult:
    async def work(nodes: Nodes) -> RepairResult:
        return await do(await reassign(nodes, wish))

    return with_nodes(cluster, work)


def fenced(cluster: SyncCluster, node: int) -> None:
    """Waits until the controller has noticed that a broker is gone."""
    cluster.wait_until(
        lambda state: all(
            it["leader"] != node and (node not in it["isr"] or it["isr"] == [node])
            for it in state["topics"][OFFSETS_TOPIC]
        )
    )


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
        fenced(cluster, 3)
        lost = [at for at, nodes in enumerate(replicas(cluster)) if nodes == [3]]
        result = apply_of(cluster, ReassignmentOptions())
        assert result.failure is None
        assert result.plan.details["leaderless"] == lost
        assert "Start broker 3; if that is gone for good, see kelpie elect" in result.plan.warnings[1]
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


def test_copying_is_limited_and_the_limit_is_taken_back() -> None:
    """Kafka leaves such settings for ever, and replication would stay slow."""
    with a_cluster(replication=1) as cluster:
        before = replicas(cluster)
        result = apply_of(cluster, ReassignmentOptions(replication=2, throttle=1_000_000))
        assert result.failure is None
        assert any("1,000,000 bytes/s" in report for report in result.reports)
        assert "taken back" in result.reports[-1]
        assert limited(cluster) == ("", None)
        assert undone(cluster, records()[-1]).failure is None
        assert replicas(cluster) == before


def test_a_limit_that_could_not_be_taken_back_is_by_the_next_run() -> None:
    """The copying took longer than the operator watched."""
    with a_cluster(replication=1) as cluster:
        lags = [cluster.lag(node) for node in cluster.node_ids]
        wish = ReassignmentOptions(replication=2, throttle=1_000_000, wait_s=0.3)
        result = apply_of(cluster, wish)
        assert result.failure is not None
        entries, rate = limited(cluster)
        assert entries.startswith("0:")
        assert rate == "1000000"
        for lag in lags:
            lag.lift()
        assert apply_of(cluster, ReassignmentOptions(replication=2, wait_s=30)).failure is None
        again = apply_of(cluster, ReassignmentOptions(replication=2))
        assert again.failure is None
        assert limited(cluster) == ("", None)
        assert apply_of(cluster, ReassignmentOptions(replication=2)).plan.steps == ()


def limited(cluster: SyncCluster) -> tuple[str, str | None]:
    """The replicas that are limited, and the rate of broker 1."""

    async def ask(nodes: Nodes) -> tuple[str, str | None]:
        found = []
        for kind, name, setting in (
            (2, OFFSETS_TOPIC, "follower.replication.throttled.replicas"),
            (4, "1", "follower.replication.throttled.rate"),
        ):
            resource = DescribeConfigsResource(
                resource_type=kind, resource_name=name, configuration_keys=[setting]
            )
            response = await nodes.ask(1, DescribeConfigsRequest(resources=[resource]))
            rows = [row.value for each in response.results for row in each.configs]
            found.append(rows[0] if rows else None)
        return found[0] or "", found[1]

    return with_nodes(cluster, ask)


def test_only_brokers_that_the_cluster_has_given_up_are_replaced() -> None:
    """A broker that does not answer here may have died just now, or the way to it is broken."""
    with a_cluster(replication=2) as cluster:

        async def plan(nodes: Nodes) -> Plan:
            return (await reassign(nodes, ReassignmentOptions(replication=2))).plan

        cluster.kill(3)
        unsure = with_nodes(cluster, plan)
        assert any("but the cluster counts it as alive" in line for line in unsure.seen)
        assert unsure.details["before"] == {"version": 1, "partitions": []}
        fenced(cluster, 3)
        gone = with_nodes(cluster, plan)
        assert "Gone from the cluster, though they should hold replicas: broker 3." in gone.seen
        assert "It may only be restarting" in gone.warnings[0]


@pytest.mark.parametrize(("minutes", "words"), [(5, "only be restarting"), (600, "last seen alive 10 h ago")])
def test_a_broker_that_went_minutes_ago_is_waited_for(minutes: int, words: str) -> None:
    """To move its replicas copies everything twice."""
    now = 10**12
    view = ClusterView(now)
    placement = Placement(0, (1, 3), 1, (1,))
    seen = {3: now - minutes * 60_000}
    topic = OffsetsTopicState(view, {1: None, 2: None}, (placement,), last_seen=seen, copied=4096)
    moves = moves_for([placement], topic.racks)
    record = ChangeRecord("c", "b:1", "x", "y", 0, "", ReplicasChange({}, {}))
    plan = plan_reassignment(topic, moves, record, 1.0)
    assert words in plan.warnings[0]
    assert any("4,096 bytes have to be copied" in line for line in plan.seen)


def test_brokers_that_do_not_answer_here_are_not_gone_if_the_cluster_hears_them() -> None:
    """A firewall between us and broker 3: living brokers list it, or have it in sync."""
    name = TopicPartition(OFFSETS_TOPIC, 0)
    brokers = {
        1: BrokerView(1, alive=True),
        2: BrokerView(2, alive=None, reason="timed out; yet listed"),
        3: BrokerView(3, alive=False, reason="refused"),
        4: BrokerView(4, alive=False, reason="refused"),
    }
    partition = PartitionView(OFFSETS_TOPIC, 0, 1, (1, 2, 3, 4), (1, 3))
    view = ClusterView(0, brokers, {name: (partition,)}, offsets_partitions=1)
    assert set(unreached(view)) == {2, 3}
    placement = Placement(0, (1, 2, 3), 1, (1, 3))
    racks = dict.fromkeys((1, 2, 3, 5))
    assert moves_for([placement], racks, unsure={2, 3}).moves == ()
    (move,) = moves_for([Placement(0, (1, 4), 1, (1,))], racks, unsure={2, 3}).moves
    assert move.after == (1, 5), "an unsure broker receives nothing"
