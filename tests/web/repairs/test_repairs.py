"""Repairs on pages: what is applied is what was shown, once, confirmed, and noted."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from kelpie.cli import main
from kelpie.lab import SyncCluster
from kelpie.model.quoting import harmless
from kelpie.repair import reset as reset_module
from kelpie.repair.applying import Repair, StepFailed
from kelpie.repair.coordinators import Coordinators
from kelpie.repair.shown_plans import KEPT_MS, exclusive
from kelpie.web.repairs.kept import Outcome
from tests.repair.scene import GROUP, a_cluster, commit, committed
from tests.web.access.logging_in import NAME, token_of
from tests.web.repairs.repairing import CLUSTER, Bench, a_bench, text_of

HOSTILE = [
    "<script>alert(1)</script>",
    "\u202eevil\x1b[2J",
    "a\r\nb",
    "a\nb",
    '"><img src=x>',
    "订单 & co",
    "{{ 7 * 7 }}",
    "a/b?c=d&e#f",
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[SyncCluster]:
    with a_cluster() as opened:
        yield opened


@pytest.fixture(scope="module", autouse=True)
def _state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KELPIE_STATE", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, cluster: SyncCluster) -> Iterator[Bench]:
    with a_bench(tmp_path_factory.mktemp("bench"), cluster) as made:
        yield made


@pytest.fixture
def bench(shared: Bench, cluster: SyncCluster) -> Bench:
    """With a group at 4 and 7."""
    commit(cluster, GROUP, {0: 4, 1: 7})
    shared.begin()
    return shared


def back(bench: Bench, count: int = -2, group: str = GROUP) -> dict[str, Any]:
    """The plan to read some records again."""
    return bench.plan("reset", group, to="shift", count=str(count))


# From form to undo.


def test_a_plan_is_shown_confirmed_applied_and_undone(bench: Bench, cluster: SyncCluster) -> None:
    """The whole way, with what the audit log has of it."""
    page = bench.browser.get(f"{CLUSTER}/repairs?group={GROUP}")
    assert "Show the plan" in page.text
    plan = back(bench)
    assert plan["plan"]["title"] == f"Reset 2 offsets of group {GROUP} by -2 records."
    assert committed(cluster, GROUP) == {0: 4, 1: 7}, "looking changes nothing"
    text = text_of(bench.page(plan))
    assert f"To confirm, type: {GROUP}" in text
    run = bench.applied(plan, GROUP)
    assert (run["outcome"], run["failure"]) == ("done", None)
    assert len(run["reports"]) == len(plan["plan"]["steps"])
    assert committed(cluster, GROUP) == {0: 2, 1: 5}
    assert "Done." in text_of(bench.page(run, "run"))

    changes = bench.browser.get(f"{CLUSTER}/changes.json").json()["changes"]
    assert (changes[0]["id"], changes[0]["state"]) == (run["change"], "not undone")
    assert "Undo" in bench.browser.get(f"{CLUSTER}/changes").text
    undo = bench.plan("undo", change=run["change"])
    assert bench.applied(undo, GROUP)["outcome"] == "done"
    assert committed(cluster, GROUP) == {0: 4, 1: 7}
    changes = bench.browser.get(f"{CLUSTER}/changes.json").json()["changes"]
    assert changes[1]["state"] == f"undone by {changes[0]['id']}"

    noted = bench.events
    assert [(line["event"], line.get("outcome"), line["repair"]) for line in noted] == [
        ("apply", None, "reset"),
        ("applied", "done", "reset"),
        ("apply", None, "undo"),
        ("applied", "done", "undo"),
    ]
    first, second = noted[:2]
    assert (first["user"], first["address"], first["planned_by"]) == (NAME, "192.0.2.7", NAME)
    assert (first["subject"], first["plan"], first["run"]) == (GROUP, plan["plan"]["id"], second["run"])
    assert first["asked"] == {"to": "by -2 records", "topics": []}
    assert second["reports"] == run["reports"]
    log = bench.browser.get("/audit")
    assert log.status_code == 200
    assert f"Reset 2 offsets of group {GROUP}" in log.text


def test_a_repair_is_told_in_chinese_from_plan_to_undo(bench: Bench, cluster: SyncCluster) -> None:
    """Nothing is left in English but names and commands, also of a plan that is refused."""
    plan = back(bench)
    run = bench.applied(plan, GROUP)
    undo = bench.plan("undo", change=run["change"])
    stale = back(bench, -1)
    commit(cluster, GROUP, {0: 3, 1: 5})
    refused = bench.applied(stale, GROUP)
    assert refused["outcome"] == "refused"
    elected = bench.plan("elect", partitions="orders-0")
    moved = bench.plan("reassign-offsets-topic")
    keys = {"plan": [plan, undo, elected, moved], "run": [run, refused]}
    pages = [f"{CLUSTER}/{kind}?id={data['key']}" for kind, some in keys.items() for data in some]
    for page in (*pages, f"{CLUSTER}/changes", "/audit", f"{CLUSTER}/repairs", f"{CLUSTER}/repairs?group=g"):
        text = bench.browser.get(page, headers={"accept-language": "zh-CN"}).text
        assert '<html lang="zh-Hans">' in text
        assert '<span lang="en">' not in text, page
    assert "重置" in bench.browser.get("/audit", headers={"accept-language": "zh-CN"}).text


def test_the_command_makes_the_same_plan(
    bench: Bench, cluster: SyncCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """One implementation: what a page shows is what `kelpie reset` prints."""
    command = ["reset", "-b", cluster.bootstrap_servers, GROUP, "--shift-by", "-2", "--json"]
    assert main(command) == 0
    printed = json.loads(capsys.readouterr().out)
    shown = back(bench)["plan"]
    assert shown["id"] == printed["id"]
    assert shown["title"] == printed["title"]
    assert shown["details"] == printed["details"]


@pytest.mark.parametrize(
    ("repair", "group", "fields", "title"),
    [
        ("rehome", GROUP, {"coordinator": "yes"}, f"Move group {GROUP} to the name {GROUP}-"),
        (
            "rehome",
            GROUP,
            {"store": "yes", "history": "yes", "coordinator": "yes", "new_name": "other"},
            "other",
        ),
        ("reset", GROUP, {"to": "earliest", "topics": "orders:0"}, "Reset 1 offset"),
        ("reset", GROUP, {"to": "latest"}, "Reset 2 offsets"),
        ("reset", GROUP, {"to": "time", "time": "2026-11-16T02:18:03"}, "to 2026-11-16T02:18:03"),
        ("reset", GROUP, {"to": "last-known"}, "Nothing to reset"),
        ("elect", "", {"partitions": "orders-0  orders-1"}, "elect"),
        ("reassign-offsets-topic", "", {"replication": "3", "throttle": "1000"}, "__consumer_offsets"),
        ("reassign-offsets-topic", "", {"cancel": "yes"}, "Cancel the moves"),
    ],
)
def test_every_repair_of_a_form_has_its_plan(
    bench: Bench, repair: str, group: str, fields: dict[str, str], title: str
) -> None:
    plan = bench.plan(repair, group, **fields)
    assert plan["failure"] is None
    assert title in plan["plan"]["title"]
    bench.page(plan)


@pytest.mark.parametrize(
    ("query", "fields", "said"),
    [
        ({"repair": "reset", "group": GROUP}, {}, "Choose where"),
        ({"repair": "reset", "group": GROUP}, {"to": "time", "time": "yesterday"}, "Write the time"),
        (
            {"repair": "reset", "group": GROUP},
            {"to": "time", "time": "9999-12-31T23:59:59-23:59"},
            "Write the",
        ),
        ({"repair": "reset", "group": GROUP}, {"to": "shift", "count": "1.5"}, "whole number"),
        ({"repair": "reset", "group": GROUP}, {"to": "shift", "count": "9" * 20}, "whole number"),
        ({"repair": "reset", "group": GROUP}, {"to": "shift", "count": "٣"}, "whole number"),
        ({"repair": "reset", "group": GROUP}, {"to": "shift", "count": "+-5"}, "whole number"),
        ({"repair": "reset", "group": ""}, {"to": "earliest"}, "Name the group"),
        ({"repair": "rehome", "group": GROUP}, {}, "at least one place"),
        ({"repair": "migrate-offsets", "group": GROUP}, {}, "not given a ZooKeeper"),
        ({"repair": "elect"}, {}, "Name the partitions"),
        ({"repair": "elect"}, {"partitions": "<b>"}, "is no partition"),
        ({"repair": "reassign-offsets-topic"}, {"replication": "many"}, "is no whole number"),
        ({"repair": "undo", "change": "none"}, {}, "no record of this change"),
        ({"repair": "undo"}, {}, "no record of this change"),
        ({"repair": "drop-everything"}, {}, "no such repair"),
    ],
)
def test_a_form_that_asks_for_nothing_is_explained(
    bench: Bench, query: dict[str, str], fields: dict[str, str], said: str
) -> None:
    answer = bench.post(f"{CLUSTER}/repairs?{urlencode(query)}", fields)
    assert answer.status_code == 422
    assert said in text_of(answer.text)
    assert "<b>" not in answer.text


def test_a_plan_that_cannot_be_made_says_why(bench: Bench) -> None:
    plan = bench.plan("reset", "nobody", to="latest")
    assert plan["plan"] is None
    assert "nobody" in plan["failure"]
    assert "Nothing was changed." in bench.page(plan)
    assert bench.apply(plan, "nobody").status_code == 409


# What keeps a plan from being applied.


@pytest.mark.parametrize("typed", ["", "Billing", "billing ", "billing-2", "*"])
def test_a_plan_is_applied_only_if_the_name_was_typed(bench: Bench, cluster: SyncCluster, typed: str) -> None:
    plan = back(bench)
    answer = bench.apply(plan, typed)
    assert answer.status_code == 422
    assert "is not the name" in answer.text
    assert committed(cluster, GROUP) == {0: 4, 1: 7}
    assert bench.events == []


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_confirmed_as_they_are_shown(bench: Bench, cluster: SyncCluster, name: str) -> None:
    """Some signs cannot be typed, and a browser changes ends of lines in fields; the right group is hit."""
    commit(cluster, name, {0: 4})
    plan = back(bench, -1, name)
    html = bench.page(plan)
    for sign in ("<script>alert", "<img", "\x1b", "\u202e", ">49<"):
        assert sign not in html
    assert quote(name, safe="") not in html, "the form does not send the name: a browser would change it"
    run = bench.applied(plan, harmless(name))
    assert run["outcome"] == "done"
    assert committed(cluster, name) == {0: 3}
    bench.page(run, "run")
    for page in (f"{CLUSTER}/changes", "/audit"):
        text = bench.browser.get(page).text
        assert "<script>alert" not in text
        assert "\x1b" not in text
    assert bench.events[0]["subject"] == name
    assert bench.applied(bench.plan("undo", change=run["change"]), name)["outcome"] == "done"
    assert committed(cluster, name) == {0: 4}


def test_a_plan_is_applied_once(bench: Bench, cluster: SyncCluster) -> None:
    """A form that is sent again, by the back button or by somebody who has seen it, does nothing."""
    plan = back(bench)
    assert bench.applied(plan, GROUP)["outcome"] == "done"
    again = bench.apply(plan, GROUP)
    assert again.status_code == 409
    assert "applied already" in again.text
    assert "confirmation" not in again.text
    assert committed(cluster, GROUP) == {0: 2, 1: 5}
    assert len(bench.events) == 2


def test_a_plan_that_is_another_one_by_now_is_not_applied(bench: Bench, cluster: SyncCluster) -> None:
    """Somebody committed meanwhile: what would be done now is shown, and needs to be confirmed anew."""
    plan = back(bench)
    commit(cluster, GROUP, {0: 9})
    run = bench.applied(plan, GROUP)
    assert run["outcome"] == "refused"
    assert "now: orders-0 is at 9 and goes to 7" in run["failure"]
    assert run["reports"] == []
    assert committed(cluster, GROUP) == {0: 9, 1: 7}
    html = bench.page(run, "run")
    assert "Nothing was changed." in text_of(html)
    assert "The plan as it is now" in html
    now = bench.made(f"{CLUSTER}/plan?id={run['plan_now']}")
    assert bench.applied(now, GROUP)["outcome"] == "done"
    assert committed(cluster, GROUP) == {0: 7, 1: 5}
    assert [line.get("outcome") for line in bench.events] == [None, "refused", None, "done"]


def test_an_old_plan_is_not_applied(
    bench: Bench, cluster: SyncCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = back(bench)
    clock = bench.workshop.clock
    monkeypatch.setattr(bench.workshop, "clock", lambda: clock() + KEPT_MS + 1)
    assert bench.apply(plan, GROUP).status_code == 409
    assert committed(cluster, GROUP) == {0: 4, 1: 7}


def test_a_plan_with_obstacles_cannot_be_confirmed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group with members, say."""
    monkeypatch.setattr(reset_module, "members_obstacle", lambda _: ["It has members: a <b>."])
    plan = back(bench)
    html = bench.page(plan)
    assert "It has members: a &lt;b&gt;." in html
    assert "confirmation" not in html
    assert bench.apply(plan, GROUP).status_code == 409


def test_two_operators_at_once_are_kept_apart(bench: Bench, cluster: SyncCluster) -> None:
    """Also from the commands: the lock is theirs."""
    plan = back(bench)
    cluster_id = bench.workshop.cluster_ids["main"]
    with exclusive(cluster_id, f"group {GROUP}"):
        run = bench.applied(plan, GROUP)
    assert run["outcome"] == "refused"
    assert "is repairing group billing" in run["failure"]
    assert committed(cluster, GROUP) == {0: 4, 1: 7}


def test_a_second_person_may_apply_a_plan_and_the_log_names_both(bench: Bench) -> None:
    plan = back(bench)
    other = bench.site.logged_in("bob", "192.0.2.9")
    assert bench.apply(plan, GROUP, other).status_code == 303
    line = bench.events[0]
    assert (line["user"], line["address"], line["planned_by"]) == ("bob", "192.0.2.9", NAME)
    bench.ended(f"{CLUSTER}/run?id={line['run']}")


# Who may do it.


def test_nothing_is_done_without_a_login_a_token_or_by_get(bench: Bench, cluster: SyncCluster) -> None:
    plan = back(bench)
    plans = len(list(bench.workshop.plans))
    path = f"{CLUSTER}/plan?id={plan['key']}"
    stranger = bench.site.browser()
    assert stranger.get(path).status_code == 303
    token = token_of(stranger)
    answer = stranger.post(path, data={"csrftoken": token, "confirmation": GROUP})
    assert answer.status_code == 403
    assert bench.browser.post(path, data={"confirmation": GROUP}).status_code == 403
    wrong = {"confirmation": GROUP, "csrftoken": token}
    assert bench.browser.post(path, data=wrong).status_code == 403
    for method in ("GET", "HEAD", "OPTIONS", "PUT", "DELETE"):
        bench.browser.request(method, f"{path}&confirmation={GROUP}&csrftoken={token_of(bench.browser, '/')}")
        bench.browser.request(method, f"{CLUSTER}/repairs?repair=reset&group={GROUP}&to=latest")
    assert len(list(bench.workshop.plans)) == plans
    assert bench.events == []
    assert committed(cluster, GROUP) == {0: 4, 1: 7}


def test_the_key_of_a_plan_cannot_be_guessed_or_used_elsewhere(bench: Bench) -> None:
    plan = back(bench)
    assert len(plan["key"]) >= 22
    assert bench.apply({"key": plan["plan"]["id"]}, GROUP).status_code == 404
    assert bench.apply({"key": ""}, GROUP).status_code == 404
    assert bench.post(f"/clusters/other/plan?id={plan['key']}", {"confirmation": GROUP}).status_code == 404
    assert bench.browser.get(f"{CLUSTER}/run?id={plan['key']}").status_code == 404


def test_what_cannot_be_noted_is_not_done(
    bench: Bench, cluster: SyncCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = back(bench)
    with monkeypatch.context() as patched:
        patched.setattr(bench.workshop.audit, "_descriptor", -1)
        answer = bench.apply(plan, GROUP)
    assert answer.status_code == 503
    assert "so nothing was done" in answer.text
    assert committed(cluster, GROUP) == {0: 4, 1: 7}
    assert bench.events == []


def test_few_plans_are_made_and_few_repairs_are_done_at_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = back(bench)
    kept = bench.workshop.plans.find("main", plan["key"])
    assert kept is not None
    assert kept.plan is not None
    done = kept.plan
    kept.plan = None
    monkeypatch.setattr("kelpie.web.repairs.workshop._PLANS_AT_ONCE", 1)
    assert bench.post(f"{CLUSTER}/repairs?repair=reset&group={GROUP}", {"to": "latest"}).status_code == 503
    kept.plan = done
    monkeypatch.setattr("kelpie.web.repairs.workshop._RUNS_AT_ONCE", 0)
    assert bench.apply(plan, GROUP).status_code == 503
    monkeypatch.undo()
    assert bench.applied(plan, GROUP)["outcome"] == "done", "a refusal does not use the plan up"


# What breaks in the middle.


def test_a_cluster_that_dies_in_the_middle_is_reported(
    bench: Bench, cluster: SyncCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record was written; the commit did not come through. The page says both, and how to go back."""
    plan = back(bench)
    monkeypatch.setattr(reset_module, "Coordinators", partial(Coordinators, limit_s=0.3))
    make = reset_module.reset

    async def dies_after_the_first_step(*arguments: Any) -> Repair:
        repair = await make(*arguments)
        note = repair.actions[0]

        async def note_and_die() -> str:
            report = await note()
            cluster.disconnect(api="OffsetCommit")
            return report

        return Repair(repair.plan, (note_and_die, *repair.actions[1:]))

    monkeypatch.setattr(reset_module, "reset", dies_after_the_first_step)
    try:
        run = bench.applied(plan, GROUP)
    finally:
        for fault in cluster.twin.faults:
            cluster.call(fault.lift)
    assert run["outcome"] == "failed"
    assert len(run["reports"]) == 1
    assert run["failure"]
    text = text_of(bench.page(run, "run"))
    assert "A step failed. Those before it are done." in text
    assert "not done" in text
    line = bench.events[-1]
    assert (line["event"], line["outcome"], line["failure"]) == ("applied", "failed", run["failure"])
    assert committed(cluster, GROUP) == {0: 4, 1: 7}


def test_a_cluster_that_is_gone_before_the_first_step_is_reported(bench: Bench) -> None:
    plan = back(bench)
    kept = bench.workshop.plans.find("main", plan["key"])
    assert kept is not None
    with a_cluster(brokers=1, replication=1) as other:
        gone = kept.target.settings.of(other.bootstrap_servers, connect_timeout_s=1.0)
    kept.target = replace(kept.target, settings=gone)
    run = bench.applied(plan, GROUP)
    assert (run["outcome"], run["reports"]) == ("refused", [])


def test_a_step_that_goes_wrong_leaves_the_others_done(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect, too, ends in an outcome, and not in a repair that seems to run for ever."""
    make = reset_module.reset
    errors: list[Exception] = [StepFailed("It <b>broke</b>."), ZeroDivisionError("by zero")]

    async def goes_wrong(*arguments: Any) -> Repair:
        repair = await make(*arguments)

        async def fail() -> str:
            raise errors[0]

        return Repair(repair.plan, (*repair.actions[:-1], fail))

    monkeypatch.setattr(reset_module, "reset", goes_wrong)
    run = bench.applied(back(bench), GROUP)
    assert (run["outcome"], run["failure"]) == ("failed", "It <b>broke</b>.")
    assert "<b>broke" not in bench.page(run, "run")
    errors.pop(0)
    run = bench.applied(back(bench), GROUP)
    assert run["outcome"] == "unknown"
    assert "defect" in run["failure"]
    assert bench.events[-1]["outcome"] == "unknown"


def test_a_repair_that_the_server_does_not_wait_for_is_noted_as_such(
    tmp_path: Path, cluster: SyncCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(cluster, GROUP, {0: 4, 1: 7})
    monkeypatch.setattr("kelpie.web.repairs.workshop._PATIENCE_AT_END_S", 0.01)
    make = reset_module.reset

    async def never_ends(*arguments: Any) -> Repair:
        repair = await make(*arguments)

        async def wait() -> str:
            await asyncio.Event().wait()
            return ""

        return Repair(repair.plan, (wait, *repair.actions[1:]))

    monkeypatch.setattr(reset_module, "reset", never_ends)
    with a_bench(tmp_path, cluster) as bench:
        answer = bench.apply(back(bench), GROUP)
        assert answer.status_code == 303
    run = next(iter(bench.workshop.runs))
    assert run.outcome is Outcome.UNKNOWN
    line = bench.workshop.audit.tail(1)[0]
    assert (line["event"], line["outcome"]) == ("applied", "unknown")
    assert "The server ended" in str(line["failure"])
