"""--apply does the plan that was shown, one repair at a time, and only while the cluster is as planned."""

import json
import multiprocessing
from pathlib import Path
from typing import Any

import pytest

from kelpie.cli import main
from kelpie.client.nodes import Nodes
from kelpie.lab import SyncCluster
from kelpie.repair.applying import apply
from kelpie.repair.plan import NOTHING_CHANGES, CannotRepair, ManualStep, Plan, Step
from kelpie.repair.reset import reset
from kelpie.repair.reset_targets import ShiftBy
from kelpie.repair.shown_plans import KEPT_MS, ShownPlans, exclusive, why_not
from tests.client.inhabitants import Inhabitants
from tests.repair.scene import GROUP, commit, committed, with_nodes

NOW = 1_800_000_000_000


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KELPIE_STATE", str(tmp_path / "state"))


def run(cluster: SyncCluster, *arguments: str) -> int:
    return main([arguments[0], "-b", cluster.bootstrap_servers, "--timeout", "5", *arguments[1:]])


def a_plan(offset: int, file: str = "a", **more: Any) -> Plan:
    steps = (
        Step(f"Note the change in {file}", "A file.", NOTHING_CHANGES),
        Step("Commit 1 offset for group g", "It goes on there.", ManualStep("undo")),
    )
    row = {"topic": "t", "partition": 0, "before": 5, "offset": offset, "source": file, "at": len(file)}
    return Plan(
        "reset", "Reset 1 offset of group g.", steps, details={"group": "g", "offsets": [row]}, **more
    )


def test_plans_have_one_id_if_they_change_the_same() -> None:
    """Names of files, times and sources differ each time one looks; what is committed must not."""
    assert a_plan(7).id == a_plan(7, "other").id
    assert a_plan(7).id != a_plan(8).id
    assert a_plan(7, moving=("offset",)).id == a_plan(8, moving=("offset",)).id


def test_what_has_changed_since_is_told() -> None:
    """A person must see why the plan was not applied."""
    plans = ShownPlans("c", "reset", {"group": "g"})
    plans.keep(a_plan(7), NOW)
    shown = plans.last(NOW + 1000)
    assert why_not(a_plan(7), shown, None) is None
    refusal = why_not(a_plan(8), shown, None)
    assert refusal is not None
    assert "shown 2027-01-15 08:00:00 UTC" in refusal
    assert "no longer: t-0 is at 5 and goes to 7; now: t-0 is at 5 and goes to 8" in refusal
    assert plans.last(NOW + KEPT_MS + 1) is None
    assert ShownPlans("c", "reset", {"group": "h"}).last(NOW) is None
    assert ShownPlans("d", "reset", {"group": "g"}).last(NOW) is None


@pytest.mark.parametrize(("wanted", "refused"), [("", True), ("abcd1234", True), (None, False)])
def test_a_plan_can_be_wanted_by_its_id(wanted: str | None, *, refused: bool) -> None:
    """For scripts, and for a second person who looked at it."""
    assert (why_not(a_plan(7), None, wanted) is not None) is refused
    assert why_not(a_plan(7), None, a_plan(7).id) is None


def test_what_others_did_meanwhile_is_shown_before_it_is_overwritten(
    cluster: SyncCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """--apply planned anew, and did what nobody had seen."""
    ask = ("reset", GROUP, "--shift-by", "-2")
    assert run(cluster, *ask) == 0
    assert "This is plan " in capsys.readouterr().out
    commit(cluster, GROUP, {0: 9})
    assert run(cluster, *ask, "--apply") == 1
    said = capsys.readouterr().err
    assert "This is not the plan that was shown" in said
    assert "orders-0 is at 9 and goes to 7" in " ".join(said.split())
    assert committed(cluster, GROUP) == {0: 9, 1: 7}
    assert run(cluster, *ask, "--apply") == 0  # It was shown now.
    assert committed(cluster, GROUP) == {0: 7, 1: 5}


def test_a_plan_that_is_not_wanted_is_not_applied(
    cluster: SyncCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its id is in the JSON, too."""
    ask = ("reset", GROUP, "--shift-by", "-2", "--json")
    assert run(cluster, *ask, "--apply", "--plan", "00000000") == 1
    refused = json.loads(capsys.readouterr().out)
    assert run(cluster, *ask[:-1], "--apply", "--plan", "00000000") == 1
    assert f"To apply the plan above: --apply --plan {refused['id']}" in capsys.readouterr().err
    assert (refused["applied"], committed(cluster, GROUP)) == (False, {0: 4, 1: 7})
    assert run(cluster, *ask, "--apply", "--plan", refused["id"]) == 0
    assert committed(cluster, GROUP) == {0: 2, 1: 5}


def test_a_topic_that_grows_does_not_keep_a_group_from_its_end(cluster: SyncCluster) -> None:
    """The end moves while one looks at the plan: it was asked for, not the number."""
    ask = ("reset", GROUP, "--to-latest", "--topic", "orders:0,1")
    assert run(cluster, *ask) == 0

    async def grow(nodes: Nodes) -> None:
        await Inhabitants(nodes).produce("orders", 0, 3)

    with_nodes(cluster, grow)
    assert run(cluster, *ask, "--apply") == 0
    assert committed(cluster, GROUP)[0] == 13


def test_offsets_are_looked_at_once_more_before_they_are_written(cluster: SyncCluster) -> None:
    """Another operator commits between plan and step. The step is not begun, and says who is where."""

    async def race(nodes: Nodes) -> tuple[str | None, int]:
        repair = await reset(nodes, GROUP, ShiftBy(-2))
        await Inhabitants(nodes).commit(GROUP, "orders", {1: 8})
        result = await apply(repair, lambda *_: None)
        return result.failure, len(result.reports)

    failure, done = with_nodes(cluster, race)
    assert failure is not None
    assert "orders-1 of group billing is at 8 now, and was at 7 when the plan was made" in failure
    assert done == 1  # The note.
    assert committed(cluster, GROUP) == {0: 4, 1: 8}


def _hold(begun: Any, end: Any) -> None:
    with exclusive("c", "group g"):
        begun.set()
        end.wait(30)


def test_one_repair_of_a_group_at_a_time() -> None:
    """Two operators at once: the second is told, and other groups are free."""
    spawn = multiprocessing.get_context("spawn")
    begun, end = spawn.Event(), spawn.Event()
    process = spawn.Process(target=_hold, args=(begun, end))
    process.start()
    try:
        assert begun.wait(30)
        with pytest.raises(CannotRepair, match=rf"process {process.pid}\) is repairing group g"):  # noqa: SIM117
            with exclusive("c", "group g"):
                pass
        with exclusive("c", "group h"), exclusive("d", "group g"):
            pass
    finally:
        end.set()
        process.join(30)
    with exclusive("c", "group g"):
        pass
