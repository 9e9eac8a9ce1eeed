"""kelpie reset on lab clusters."""

from pathlib import Path

import pytest

from kelpie.client.nodes import Nodes
from kelpie.errors import ErrorCode
from kelpie.evidence import read_evidence
from kelpie.lab import SyncCluster
from kelpie.model.names import TopicPartition
from kelpie.repair.applying import RepairResult
from kelpie.repair.change_records import records
from kelpie.repair.offset_sources import claims_in
from kelpie.repair.plan import CannotRepair, Plan
from kelpie.repair.reset import last_known, planned, reset
from kelpie.repair.reset_targets import ResetTarget, ShiftBy, ToEarliest, ToGiven, ToLatest
from tests.client.inhabitants import Inhabitants
from tests.repair.scene import (
    GROUP,
    a_cluster,
    commit,
    committed,
    do,
    home,
    save_disks,
    strike,
    undone,
    with_nodes,
)


def plan_of(cluster: SyncCluster, aim: ResetTarget, *topics: str) -> Plan:
    return with_nodes(cluster, lambda nodes: reset(nodes, GROUP, aim, topics)).plan


def apply_of(cluster: SyncCluster, aim: ResetTarget, *topics: str) -> RepairResult:
    async def work(nodes: Nodes) -> RepairResult:
        return await do(await reset(nodes, GROUP, aim, topics))

    return with_nodes(cluster, work)


@pytest.mark.parametrize("persona", ["4.3", "0.9"])
def test_a_reset_is_planned_applied_and_undone(persona: str) -> None:
    """The record that it leaves behind puts everything back."""
    with a_cluster(persona) as cluster:
        commit(cluster, GROUP, {0: 4, 1: 7})
        assert planned(plan_of(cluster, ToEarliest())) == {
            TopicPartition("orders", 0): 0,
            TopicPartition("orders", 1): 0,
        }
        assert committed(cluster, GROUP) == {0: 4, 1: 7}, "a plan changes nothing"
        result = apply_of(cluster, ToEarliest())
        assert result.failure is None
        assert committed(cluster, GROUP) == {0: 0, 1: 0}
        (record,) = records()
        assert result.plan.steps[1].undo.lines[0].endswith(record.id)
        assert undone(cluster, record).failure is None
        assert committed(cluster, GROUP) == {0: 4, 1: 7}


def test_running_it_again_changes_nothing(cluster: SyncCluster) -> None:
    """A shift is the exception: it goes on from where it is, as in Kafka's tool."""
    apply_of(cluster, ToLatest())
    assert plan_of(cluster, ToLatest()).steps == ()
    assert planned(plan_of(cluster, ShiftBy(-1))) == {
        TopicPartition("orders", 0): 9,
        TopicPartition("orders", 1): 9,
    }


def test_only_what_is_named_is_reset(cluster: SyncCluster) -> None:
    """A partition without a commit gets one; how to take that away is told."""
    result = apply_of(cluster, ToLatest(), "orders:1,2")
    assert result.failure is None
    assert committed(cluster, GROUP) == {0: 4, 1: 10, 2: 10}
    assert undone(cluster, records()[-1]).failure is None
    assert committed(cluster, GROUP) == {0: 4, 1: 7}


def test_a_group_with_members_is_left_alone(cluster: SyncCluster) -> None:
    """Kafka refuses as well; here it is said who they are."""

    async def join(nodes: Nodes) -> None:
        await Inhabitants(nodes).join(GROUP, "orders")

    with_nodes(cluster, join)
    plan = plan_of(cluster, ToEarliest())
    assert not plan.applicable
    assert "1 active member: kelpie on 127.0.0.1. Stop them first." in plan.obstacles[0]


def test_members_that_come_between_plan_and_commit_are_told(cluster: SyncCluster) -> None:
    """The coordinator guards its members; the refusal is put in plain words."""
    cluster.fail(ErrorCode.UNKNOWN_MEMBER_ID, api="OffsetCommit")
    result = apply_of(cluster, ToEarliest())
    assert result.failure is not None
    assert "The group has members by now: stop them first." in result.failure
    assert [step.does for step in result.done] == [result.plan.steps[0].does]


def test_a_group_without_a_coordinator_is_sent_to_rehome(cluster: SyncCluster, tmp_path: Path) -> None:
    """Nothing can be committed for it where it is."""
    strike(cluster, GROUP, tmp_path)
    with pytest.raises(CannotRepair) as refused:
        plan_of(cluster, ToEarliest())
    assert str(home(GROUP)) in str(refused.value)
    assert "kelpie rehome -b" in str(refused.value)


def test_offsets_that_were_lost_come_back_from_the_offsets_topic(cluster: SyncCluster) -> None:
    """The last known commit is the one before its removal."""
    cluster.expire_offsets(GROUP)
    assert committed(cluster, GROUP) == {}

    async def work(nodes: Nodes) -> RepairResult:
        known = await last_known(nodes, GROUP)
        return await do(await reset(nodes, GROUP, known.target, known=known))

    result = with_nodes(cluster, work)
    assert result.failure is None
    assert committed(cluster, GROUP) == {0: 4, 1: 7}
    assert len(result.plan.tables) == 2


def test_disks_may_know_a_newer_commit_than_the_cluster(cluster: SyncCluster, tmp_path: Path) -> None:
    """After an unclean election the dead broker's disk is the only one that knows."""
    commit(cluster, GROUP, {0: 8})
    disks = save_disks(cluster, tmp_path / "disks", cluster.node_ids)
    cluster.lose_offsets(GROUP)
    commit(cluster, "other", {0: 1})

    async def work(nodes: Nodes) -> dict[TopicPartition, int]:
        known = await last_known(nodes, GROUP, evidence=read_evidence([disks]))
        return {it.partition: it.offset for it in known.commits}

    assert with_nodes(cluster, work) == {TopicPartition("orders", 0): 8, TopicPartition("orders", 1): 7}


def test_nothing_known_is_said(cluster: SyncCluster) -> None:
    """With what would help."""
    with pytest.raises(CannotRepair, match="No commit of group nobody is known"):
        with_nodes(cluster, lambda nodes: last_known(nodes, "nobody"))
    with pytest.raises(CannotRepair, match="it has committed nothing"):
        with_nodes(cluster, lambda nodes: reset(nodes, "nobody", ToEarliest()))


def test_a_partition_that_is_gone_stays_out(cluster: SyncCluster, tmp_path: Path) -> None:
    """The others are reset."""
    file = tmp_path / "offsets.csv"
    file.write_text("orders,0,3\ngone,0,3\n")
    plan = plan_of(cluster, ToGiven(claims_in(file, GROUP), "as given"))
    assert planned(plan) == {TopicPartition("orders", 0): 3}
    assert any("gone-0 stays as it is: it is gone from the cluster" in line for line in plan.warnings)
