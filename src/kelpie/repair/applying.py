"""Carrying a repair out, step by step. Every step is reported; the first that fails ends the repair.

Steps that were done before stay done. The result names them, and says how to go on or back.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from kelpie.client.client_errors import ClientError
from kelpie.repair.plan import NOTHING_CHANGES, CannotRepair, ManualStep, Plan, Step

Action = Callable[[], Awaitable[str]]
"""Does one step and reports it in one sentence. Raises StepFailed, CannotRepair or ClientError."""


class StepFailed(Exception):
    """The text says what happened, and what to do about it."""


@dataclass(frozen=True)
class Repair:
    """A plan, and one action for each of its steps."""

    plan: Plan
    actions: tuple[Action, ...] = ()

    def __post_init__(self) -> None:
        assert len(self.actions) == len(self.plan.steps), "every step needs its action"


@dataclass
class RepairResult:
    """Which steps of a repair were done, and why the next one was not."""

    plan: Plan
    reports: list[str] = field(default_factory=list)
    """One for each step that was done, in order."""
    failure: str | None = None
    """Why the next step was not done."""
    is_refused: bool = False
    """The plan was not the one that was to be applied: nothing was begun."""

    @property
    def done(self) -> Sequence[Step]:
        return self.plan.steps[: len(self.reports)]

    @property
    def undo_steps(self) -> list[ManualStep]:
        """The last step that changed something is undone first."""
        return [step.undo for step in reversed(self.done) if step.undo != NOTHING_CHANGES]


async def apply(repair: Repair, on_report: Callable[[int, str], None]) -> RepairResult:
    """Does every step, and hands its number and its report to `on_report`.

    A failure of the cluster is not raised: the result has it. A plan with obstacles is not begun.
    """
    result = RepairResult(repair.plan)
    if repair.plan.obstacles:
        result.failure = repair.plan.obstacles[0]
        return result
    for number, action in enumerate(repair.actions, start=1):
        try:
            report = await action()
        except ClientError as error:
            result.failure = error.reason
        except (StepFailed, CannotRepair, OSError) as error:
            result.failure = str(error)
        if result.failure is not None:
            return result
        result.reports.append(report)
        on_report(number, report)
    return result
