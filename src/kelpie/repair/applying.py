"""Carrying a repair out: step by step, every step reported; the first that breaks ends it.

What was done before it stays done. The outcome says what that is, and how to go on or back.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from kelpie.client.client_errors import ClientError
from kelpie.repair.plan import NOTHING_CHANGES, Plan, Step, Way

Action = Callable[[], Awaitable[str]]
"""Does one step and says what came of it, in one sentence. Raises Broken or ClientError."""


class Broken(Exception):
    """A step did not come about: what happened, and what to do about it."""


@dataclass(frozen=True)
class Repair:
    """A plan, and what does it: one action for each step."""

    plan: Plan
    actions: tuple[Action, ...] = ()

    def __post_init__(self) -> None:
        assert len(self.actions) == len(self.plan.steps), "every step needs its action"


@dataclass
class Outcome:
    """What became of a repair."""

    plan: Plan
    reports: list[str] = field(default_factory=list)
    """Of the steps that were done, in order."""
    failure: str | None = None
    """Why the next one was not."""

    @property
    def done(self) -> Sequence[Step]:
        return self.plan.steps[: len(self.reports)]

    @property
    def way_on(self) -> Way:
        return Way("To go on: mend what is said above and run the same command again; what is done is kept.")

    @property
    def ways_back(self) -> list[Way]:
        """The last step that changed something is undone first."""
        return [step.undo for step in reversed(self.done) if step.undo is not NOTHING_CHANGES]

    def as_data(self) -> dict[str, object]:
        return {
            **self.plan.as_data(),
            "applied": self.failure is None,
            "reports": list(self.reports),
            "failure": self.failure,
        }


async def apply(repair: Repair, tell: Callable[[int, str], None]) -> Outcome:
    """Does every step; `tell` hears its number and its report. What a cluster does wrong is not raised."""
    outcome = Outcome(repair.plan)
    for number, action in enumerate(repair.actions, start=1):
        try:
            report = await action()
        except ClientError as error:
            outcome.failure = error.reason
        except (Broken, OSError) as error:
            outcome.failure = str(error)
        if outcome.failure is not None:
            return outcome
        outcome.reports.append(report)
        tell(number, report)
    return outcome
