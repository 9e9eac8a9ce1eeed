"""Plans that were shown, and repairs that were begun, as pages show them. Old ones are forgotten."""

import secrets
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, TypeVar

from kelpie.documents.plan import plan_document
from kelpie.model.time import Instant, iso_time
from kelpie.repair.applying import RepairResult
from kelpie.repair.plan import ManualStep, Plan
from kelpie.web.access.operators import Operator
from kelpie.web.repairs.requests import AskedRepair, RepairTarget


class Outcome(Enum):
    """What became of a repair. Values are for programs."""

    RUNNING = "running"
    DONE = "done"
    REFUSED = "refused"
    """Nothing was done: the plan is another one now, or somebody else repairs the same."""
    FAILED = "failed"
    """A step could not be done; those before it are."""
    UNKNOWN = "unknown"
    """It was ended in the middle of a step."""


@dataclass
class KeptPlan:
    """Made in the background: `plan` or `failure` come later. The thread that makes it sets them."""

    target: RepairTarget
    asked: AskedRepair
    operator: Operator
    at: Instant
    id: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    plan: Plan | None = None
    failure: str = ""
    run_id: str = ""
    """Of the repair that applied it. A plan is applied once."""

    @property
    def is_made(self) -> bool:
        return self.plan is not None or bool(self.failure)

    def as_data(self) -> dict[str, Any]:
        return {
            "key": self.id,
            "repair": self.asked.repair,
            "asked": dict(self.asked.arguments),
            "at": iso_time(self.at),
            "by": self.operator.name,
            "made": self.is_made,
            "failure": self.failure or None,
            "plan": plan_document(self.plan) if self.plan is not None else None,
            "run": self.run_id or None,
        }


@dataclass
class Run:
    """One repair that was begun. The thread that does it changes it."""

    kept: KeptPlan
    plan: Plan
    operator: Operator
    began: Instant
    id: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    outcome: Outcome = Outcome.RUNNING
    reports: list[str] = field(default_factory=list)
    """One for each step that was done."""
    failure: str = ""
    ended: Instant | None = None
    plan_now: KeptPlan | None = None
    """What would be done now, if that is something else."""
    change: str = ""
    """The id of the record by which it is undone."""

    @property
    def undo_steps(self) -> list[ManualStep]:
        return RepairResult(self.plan, list(self.reports)).undo_steps

    def as_data(self) -> dict[str, Any]:
        return {
            "key": self.id,
            "plan": {**plan_document(self.plan), "applied": self.outcome is Outcome.DONE},
            "by": self.operator.name,
            "began": iso_time(self.began),
            "ended": iso_time(self.ended) if self.ended is not None else None,
            "outcome": self.outcome.value,
            "reports": list(self.reports),
            "failure": self.failure or None,
            "change": self.change or None,
            "plan_now": self.plan_now.id if self.plan_now is not None else None,
        }


K = TypeVar("K", KeptPlan, Run)


class Kept(Generic[K]):
    """The newest ones, by id."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._by_id: OrderedDict[str, K] = OrderedDict()

    def add(self, one: K) -> K:
        while len(self._by_id) >= self._most:
            self._by_id.popitem(last=False)
        self._by_id[one.id] = one
        return one

    def find(self, cluster: str, key: str) -> K | None:
        found = self._by_id.get(key)
        return found if found is not None and _cluster(found) == cluster else None

    def of(self, cluster: str) -> list[K]:
        """Newest first."""
        return [one for one in reversed(tuple(self._by_id.values())) if _cluster(one) == cluster]

    def __iter__(self) -> Iterator[K]:
        return iter(tuple(self._by_id.values()))


def _cluster(one: KeptPlan | Run) -> str:
    return one.target.cluster if isinstance(one, KeptPlan) else one.kept.target.cluster
