"""kelpie rehome on lab clusters."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kelpie.client.nodes import Nodes
from kelpie.errors import ErrorCode
from kelpie.evidence import read_evidence
from kelpie.lab import SyncCluster
from kelpie.model.partitioning import partition_for
from kelpie.observations import Committed, Observations
from kelpie.repair.applying import Repair, RepairResult
from kelpie.repair.change_records import records
from kelpie.repair.offset_sources import Sources
from kelpie.repair.plan import NOTHING_CHANGES, CannotRepair, Plan
from kelpie.repair.rehome import rehome
from kelpie.repair.undo import undo
from tests.client.inhabitants import Inhabitants
from tests.repair.scene import (
    GROUP,
    PARTITIONS,
    a_cluster,
    commit,
    committed,
    do,
    home,
    strike,
    undone,
    with_nodes,
)


def plan_of(cluster: SyncCluster, *where: Path | str, **options: object) -> Plan:
    return with_nodes(cluster, lambda nodes: _rehome(nodes, where, options)).plan


def apply_of(cluster: SyncCluster, *where: Path | str, **options: object) -> RepairResult:
    async def work(nodes: Nodes) -> RepairResult:
        return await do(await _rehome(nodes, where, options))

    return with_nodes(cluster, work)


async def _rehome(nodes: Nodes, where: tuple[Path | str, ...], options: dict[str, object]) -> Repair:
    sources = Sources.parse([str(place) for place in where])
    evidence = read_evidence(sources.disks) if sources.disks else None
    return await rehome(nodes, GROUP, sources, evidence=evidence, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("persona", ["4.3", "2.8", "0.9"])
def test_a_stricken_group_is_moved_with_the_offsets_on_dead_disks(persona: str, tmp_path: Path) -> None:
    """The promise: its place is not lost, though nobody can be asked for it; on every release."""
    with a_cluster(persona) as cluster:
        commit(cluster, GROUP, {0: 2, 1: 7})
        commit(cluster, GROUP, {0: 4})
        disks = strike(cluster, GROUP, tmp_path)
        plan = plan_of(cluster, disks)
        name = str(plan.details["new_name"])
        assert committed(cluster, name) == {}, "a plan changes nothing"
        assert partition_for(name, PARTITIONS) == plan.details["new_partition"]
        result = apply_of(cluster, disks)
        assert result.failure is None
        assert len(result.reports) == 3
        # More partitions may have got a leader since the plan, and the first name on one of them is taken.
        name = str(result.plan.details["new_name"])
        assert committed(cluster, name) == {0: 4, 1: 7}


def test_running_it_again_changes_nothing(cluster: SyncCluster, tmp_path: Path) -> None:
    """An operator who is not sure whether it worked may just repeat it."""
    disks = strike(cluster, GROUP, tmp_path)
    first = apply_of(cluster, disks)
    again = plan_of(cluster, disks)
    assert again.steps == ()
    assert again.details["done"] is True
    assert again.details["new_name"] == first.plan.details["new_name"]


def test_metadata_of_commits_goes_along(cluster: SyncCluster, tmp_path: Path) -> None:
    """Kafka Streams keeps its time in there."""
    disks = strike(cluster, GROUP, tmp_path)
    offsets = plan_of(cluster, disks).details["offsets"]
    assert isinstance(offsets, list)
    assert [(it["partition"], it["offset"], it["sure"]) for it in offsets] == [
        (0, 4, "certain"),
        (1, 7, "certain"),
    ]


def test_a_run_that_broke_is_gone_on_with(cluster: SyncCluster, tmp_path: Path) -> None:
    """What is committed already is the same; the rest follows."""
    disks = strike(cluster, GROUP, tmp_path)
    name = str(plan_of(cluster, disks).details["new_name"])
    commit(cluster, name, {0: 4})
    plan = plan_of(cluster, disks)
    assert plan.details["new_name"] == name
    assert any("1 of 2 offsets are there already" in line for line in plan.seen)
    assert apply_of(cluster, disks).failure is None
    assert committed(cluster, name) == {0: 4, 1: 7}


def test_a_name_that_somebody_uses_is_passed_over(cluster: SyncCluster, tmp_path: Path) -> None:
    """The offsets of another group must not be overwritten."""
    disks = strike(cluster, GROUP, tmp_path)
    first = str(plan_of(cluster, disks).details["new_name"])
    commit(cluster, first, {2: 1})
    other = plan_of(cluster, disks)
    assert other.details["new_name"] != first
    assert other.applicable
    chosen = plan_of(cluster, disks, new_name=first)
    assert not chosen.applicable
    assert "is the name of another group" in chosen.obstacles[0]


def test_a_name_that_has_gone_on_may_be_an_earlier_move(cluster: SyncCluster, tmp_path: Path) -> None:
    """After a move the application commits on; a second move to a further name would double its work."""
    disks = strike(cluster, GROUP, tmp_path)
    name = str(apply_of(cluster, disks).plan.details["new_name"])
    commit(cluster, name, {0: 9})
    plan = plan_of(cluster, disks)
    assert plan.details["new_name"] == name
    assert not plan.applicable
    assert "moved before" in plan.obstacles[0]


def test_what_the_coordinator_says_counts_while_it_answers(cluster: SyncCluster) -> None:
    """A healthy group can be renamed, too; the plan says that it need not."""
    plan = plan_of(cluster)
    assert plan.applicable
    assert "it need not move" in plan.seen[0]
    offsets = plan.details["offsets"]
    assert isinstance(offsets, list)
    assert {it["sure"] for it in offsets} == {"certain"}


def test_a_group_with_members_is_not_moved_under_them(cluster: SyncCluster) -> None:
    """They would go on committing under the old name."""

    async def join(nodes: Nodes) -> None:
        await Inhabitants(nodes).join(GROUP, "orders")

    with_nodes(cluster, join)
    plan = plan_of(cluster)
    assert not plan.applicable
    assert "is Stable, with 1 active member: kelpie on 127.0.0.1" in plan.obstacles[0]


def test_offsets_come_from_a_file_or_an_earlier_survey_as_well(cluster: SyncCluster, tmp_path: Path) -> None:
    """A disk may be gone for good, and somebody remembers."""
    strike(cluster, GROUP, tmp_path / "disks")
    file = tmp_path / "last.csv"
    file.write_text("orders,0,3\n")
    assert _numbers(plan_of(cluster, file)) == {0: 3}
    earlier = Observations(
        committed=[Committed(GROUP, "orders", 1, 6, at=1_700_000_000_000, source="an earlier survey")]
    )
    plan = plan_of(cluster, "store", earlier=earlier)
    assert _numbers(plan) == {1: 6}
    assert "may be older than the last commit" in plan.warnings[0]


def test_without_any_offsets_it_says_who_was_asked(cluster: SyncCluster, tmp_path: Path) -> None:
    """And what would help: the disks."""
    strike(cluster, GROUP, tmp_path)
    with pytest.raises(CannotRepair) as refused:
        plan_of(cluster)
    assert f"{home(GROUP)} has no living leader" in str(refused.value)
    assert f"none has a copy of {home(GROUP)}" in str(refused.value)
    assert "--offsets-from DIR" in str(refused.value)


def test_offsets_that_do_not_fit_the_log_are_told(cluster: SyncCluster, tmp_path: Path) -> None:
    """The application will be reset there, which surprises less when it is known before."""
    file = tmp_path / "last.csv"
    file.write_text("orders,0,99\norders,7,1\n")
    plan = plan_of(cluster, file)
    assert any("orders-0 ends at 10, before the committed 99" in line for line in plan.warnings)
    assert any("orders-7 is gone from the cluster" in line for line in plan.warnings)
    assert _numbers(plan) == {0: 99}


def test_a_step_that_breaks_says_what_was_done_and_how_to_go_on(cluster: SyncCluster) -> None:
    """Nothing is left half done without a word."""
    fault = cluster.fail(ErrorCode.GROUP_AUTHORIZATION_FAILED, api="OffsetCommit")
    result = apply_of(cluster)
    assert result.failure is not None
    assert "30 GROUP_AUTHORIZATION_FAILED" in result.failure
    assert [step.undo for step in result.done] == [NOTHING_CHANGES], "only the note was made"
    fault.lift()
    assert apply_of(cluster).failure is None


def test_the_check_afterwards_finds_a_commit_that_did_not_last(cluster: SyncCluster) -> None:
    """A coordinator that says yes and stores nothing is found out, and the way back is told."""

    async def work(nodes: Nodes) -> RepairResult:
        repair = await rehome(nodes, GROUP, Sources())
        note, commit_, verify = repair.actions

        async def commit_and_lose() -> str:
            report = await commit_()
            cluster.lose_offsets(str(repair.plan.details["new_name"]))
            return report

        return await do(Repair(repair.plan, (note, commit_and_lose, verify)))

    result = with_nodes(cluster, work)
    assert result.failure is not None
    assert "its coordinator says none" in result.failure
    assert len(result.reports) == 2
    assert "kelpie undo" in result.undo_steps[0].lines[0]


def test_undo_deletes_the_new_name(cluster: SyncCluster) -> None:
    """Offsets and all; a second time there is nothing to do. The undo can be undone."""
    name = str(apply_of(cluster).plan.details["new_name"])
    before = committed(cluster, name)
    (record,) = records()
    assert undone(cluster, record).failure is None
    assert committed(cluster, name) == {}
    assert undone(cluster, record).plan.steps == ()
    undo_record = records()[-1]
    assert undo_record.undoes == record.id
    assert undone(cluster, undo_record).failure is None
    assert committed(cluster, name) == before


def test_undo_leaves_alone_a_group_that_has_moved_on(cluster: SyncCluster) -> None:
    """The application runs under the new name: deleting it would lose the place for good."""
    name = str(apply_of(cluster).plan.details["new_name"])
    commit(cluster, name, {0: 9})
    plan = undone(cluster, records()[-1]).plan
    assert not plan.applicable
    assert "orders-0 is at 9, and rehome left it at 4" in plan.obstacles[0]
    commit(cluster, name, {0: 4, 2: 1})
    plan = undone(cluster, records()[-1]).plan
    assert "orders-2 is at 1, and rehome left it without an offset" in plan.obstacles[0]


def test_kafka_0_9_has_no_undo_and_says_so() -> None:
    """A plain word is better than a command that fails."""
    with a_cluster("0.9") as cluster:
        commit(cluster, GROUP, {0: 4})
        plan = plan_of(cluster)
        assert "Nothing deletes a group on this release" in plan.steps[1].undo.text
        name = str(apply_of(cluster).plan.details["new_name"])
        assert committed(cluster, name) == {0: 4}
        assert not with_nodes(cluster, lambda nodes: undo(nodes, records()[-1])).plan.applicable


@pytest.mark.parametrize(
    ("ask", "complaint"),
    [
        (lambda cluster: plan_of(cluster, new_name=GROUP), "is the name that the group has now"),
        (lambda cluster: plan_of(cluster, "no/such/place"), "There is no file or folder no/such/place"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    cluster: SyncCluster, ask: Callable[[SyncCluster], Plan], complaint: str
) -> None:
    """With what to do instead."""
    with pytest.raises(CannotRepair, match=complaint):
        ask(cluster)


def test_a_cluster_without_offsets_topic_has_no_groups_to_move() -> None:
    """And looking must not create one."""
    with SyncCluster(1) as cluster:
        with pytest.raises(CannotRepair, match="no topic __consumer_offsets"):
            plan_of(cluster)
        assert "__consumer_offsets" not in cluster.describe()["topics"]


def _numbers(plan: Plan) -> dict[int, int]:
    offsets = plan.details["offsets"]
    assert isinstance(offsets, list)
    return {it["partition"]: it["offset"] for it in offsets}
