import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from kelpie.lab import SyncCluster
from kelpie.repair.applying import Action, Repair, StepFailed
from kelpie.repair.plan import CannotRepair, Plan
from tests.repair.scene import GROUP, a_cluster, commit
from tests.web.translation.leftover import english_left_of_plan, english_left_of_repair


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files for undo, and earlier surveys, are the test's own."""
    monkeypatch.setenv("KELPIE_STATE", str(tmp_path / "state"))


@pytest.fixture
def cluster() -> Iterator[SyncCluster]:
    """A lab cluster with a group that has committed."""
    with a_cluster() as cluster:
        commit(cluster, GROUP, {0: 4, 1: 7})
        yield cluster


QUOTED = (
    *("No such file or directory", "unexpected end of data", "list indices must be integers"),
    *("Port could not be cast to integer value", "bad hostname", "'no port:x'"),
    "new.csv says",
)
"""What the system says, options that only commands have, and a name with a space."""


@pytest.fixture(autouse=True)
def _repairs_are_said_in_chinese(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every plan, report and refusal that repairs make in a test can be shown in Chinese: a sentence that is
    new, or put together anew, has its Chinese text in the same change.
    """
    plans: list[Plan] = []
    texts: list[str] = []
    made_plan, made_repair = Plan.__init__, Repair.__init__

    def keep_plan(self: Plan, *arguments: Any, **options: Any) -> None:
        made_plan(self, *arguments, **options)
        if _is_ours(sys._getframe(1)):
            plans.append(self)

    def keep_reports(self: Repair, plan: Plan, actions: tuple[Action, ...] = ()) -> None:
        made_repair(self, plan, tuple(map(kept, actions)) if _is_ours(sys._getframe(1)) else actions)

    def kept(action: Action) -> Action:
        async def act() -> str:
            texts.append(await action())
            return texts[-1]

        return act

    def keep_refusal(self: Exception, *arguments: Any) -> None:
        Exception.__init__(self, *arguments)
        if _is_ours(sys._getframe(1)):
            texts.extend(map(str, arguments))

    monkeypatch.setattr(Plan, "__init__", keep_plan)
    monkeypatch.setattr(Repair, "__init__", keep_reports)
    monkeypatch.setattr(CannotRepair, "__init__", keep_refusal)
    monkeypatch.setattr(StepFailed, "__init__", keep_refusal)
    yield
    monkeypatch.undo()
    wrong = [problem for plan in plans for problem in english_left_of_plan(plan, QUOTED)]
    wrong += english_left_of_repair(texts, QUOTED)
    assert not wrong, "\n".join(dict.fromkeys(wrong))


def _is_ours(caller: FrameType) -> bool:
    """Tests of how plans are printed and applied have plans of their own."""
    return str(caller.f_globals.get("__name__")).startswith("kelpie.")
