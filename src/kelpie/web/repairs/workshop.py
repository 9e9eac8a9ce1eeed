"""Makes plans and applies them, in a thread of its own, so that no page waits for the cluster.

What is applied is the plan that was shown: it is made anew within the lock that keeps operators apart, and
must be the same, as with `--apply` of the commands. A plan is applied once. It is noted in the audit log
before anything is done, and what came of it at the end.
"""

import asyncio
import sys
import threading
import traceback
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING

from kelpie.client.client_errors import ClientError
from kelpie.client.loop_thread import LoopThread
from kelpie.client.nodes import Nodes
from kelpie.client.survey import wall_clock
from kelpie.model.time import Instant
from kelpie.repair.applying import Repair
from kelpie.repair.change_records import ChangeRecord, records
from kelpie.repair.plan import CannotRepair, Plan
from kelpie.repair.shown_plans import KEPT_MS, ShownPlan, why_not
from kelpie.repair.undertaking import RepairRequest, Undertaking
from kelpie.web.access.operators import Operator
from kelpie.web.audit_log import AuditLog
from kelpie.web.language import N_
from kelpie.web.repairs.kept import Kept, KeptPlan, Outcome, Run
from kelpie.web.repairs.requests import AskedRepair, RepairTarget

if TYPE_CHECKING:
    from typing import Self

_MOST_PLANS, _MOST_RUNS = 200, 200
_PLANS_AT_ONCE, _RUNS_AT_ONCE = 4, 2
_PLAN_LIMIT_S, _RUN_LIMIT_S = 120.0, 900.0
_PATIENCE_AT_END_S = 30.0
_REPAIRING = "repairing"
"""The name of tasks that are waited for at the end."""
_DEFECT = "Kelpie has a defect here: {}. What was done up to then is listed."


class Busy(Exception):
    """As many plans are made, or repairs done, as may be at once."""


class NotApplicable(Exception):
    """A plan is old, was applied, or has nothing to apply. The text is a message."""


class Workshop:
    def __init__(
        self, targets: Sequence[RepairTarget], audit: AuditLog, clock: Callable[[], Instant] = wall_clock
    ) -> None:
        self.targets = {target.cluster: target for target in targets}
        self.audit = audit
        self.clock = clock
        self.plans: Kept[KeptPlan] = Kept(_MOST_PLANS)
        self.runs: Kept[Run] = Kept(_MOST_RUNS)
        self.cluster_ids: dict[str, str] = {}
        """By the names of clusters on pages; as far as the clusters have said."""
        self._lock = threading.Lock()
        self._thread = LoopThread("kelpie-repairs")
        self._tasks: set[asyncio.Task[None]] = set()

    def __enter__(self) -> "Self":
        self._thread.start()
        for target in self.targets.values():
            self._begin(partial(self._learn_id, target))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Waits a while for repairs that are under way."""
        self._thread.run(self._settle)
        self._thread.stop()

    @property
    def is_repairing(self) -> bool:
        return any(run.outcome is Outcome.RUNNING for run in self.runs)

    # For pages.

    def plan(self, target: RepairTarget, asked: AskedRepair, operator: Operator) -> KeptPlan:
        """A plan that is being made. Raises Busy."""
        with self._lock:
            if sum(not kept.is_made for kept in self.plans) >= _PLANS_AT_ONCE:
                raise Busy
            kept = self.plans.add(KeptPlan(target, asked, operator, self.clock()))
        self._begin(lambda: self._make(kept))
        return kept

    def why_not_applicable(self, kept: KeptPlan) -> NotApplicable | None:
        if kept.run_id:
            return NotApplicable(N_("This plan was applied already. A plan is applied once."))
        if kept.plan is None or not kept.plan.applicable:
            return NotApplicable(N_("There is nothing in this plan that could be applied."))
        if self.clock() - kept.at > KEPT_MS:
            return NotApplicable(N_("This plan is older than an hour. Make it anew."))
        return None

    def apply(self, kept: KeptPlan, operator: Operator) -> Run:
        """A repair that has begun. Raises NotApplicable, Busy; OSError if it cannot be noted."""
        with self._lock:
            if (why := self.why_not_applicable(kept)) is not None:
                raise why
            if sum(run.outcome is Outcome.RUNNING for run in self.runs) >= _RUNS_AT_ONCE:
                raise Busy
            assert kept.plan is not None
            run = Run(kept, kept.plan, operator, self.clock())
            self.audit.note("apply", operator, **_facts(run), title=kept.plan.title, run=run.id)
            kept.run_id = run.id
            self.runs.add(run)
        self._begin(lambda: self._apply(run), _REPAIRING)
        return run

    def changes(self, cluster: str) -> list[ChangeRecord]:
        """Records of this cluster, newest first."""
        target = self.targets[cluster]
        known = self.cluster_ids.get(cluster)
        bootstrap = target.settings.bootstrap_servers
        return [
            record
            for record in reversed(records())
            if (record.cluster == known if known is not None else record.bootstrap == bootstrap)
        ]

    # In the thread.

    def _begin(self, work: Callable[[], Coroutine[None, None, None]], name: str = "") -> None:
        def begin() -> None:
            task = asyncio.get_running_loop().create_task(work(), name=name)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        self._thread.run(begin)

    async def _settle(self) -> None:
        under_way = [task for task in self._tasks if task.get_name() == _REPAIRING]
        if under_way:
            await asyncio.wait(under_way, timeout=_PATIENCE_AT_END_S)

    async def _learn_id(self, target: RepairTarget) -> None:
        try:
            async with asyncio.timeout(_PLAN_LIMIT_S), await Nodes.open(target.settings) as nodes:
                self._know(target, nodes)
        except (ClientError, TimeoutError):
            return  # The first plan tells it.

    def _know(self, target: RepairTarget, nodes: Nodes) -> None:
        if nodes.cluster_id:
            self.cluster_ids[target.cluster] = nodes.cluster_id

    def _undertaking(self, kept: KeptPlan) -> Undertaking:
        target, request = kept.target, kept.asked.request

        async def make(nodes: Nodes) -> Repair:
            self._know(target, nodes)
            repair = await request.make(nodes)
            if target.command_config is None:
                return repair
            return replace(repair, plan=repair.plan.with_properties(target.command_config))

        return Undertaking(target.settings, RepairRequest(make, request.subject))

    async def _make(self, kept: KeptPlan) -> None:
        try:
            async with asyncio.timeout(_PLAN_LIMIT_S):
                kept.plan, _ = await self._undertaking(kept).plan()
        except (CannotRepair, ClientError) as error:
            kept.failure = str(error)
        except TimeoutError:
            kept.failure = f"The plan was not ready within {_PLAN_LIMIT_S:g} s."
        except Exception as error:
            traceback.print_exc(file=sys.stderr)
            kept.failure = _DEFECT.format(repr(error))
        finally:
            kept.failure = kept.failure or ("" if kept.plan is not None else "It was ended.")

    async def _apply(self, run: Run) -> None:
        outcome = Outcome.UNKNOWN
        try:
            async with asyncio.timeout(_RUN_LIMIT_S):
                outcome = await self._apply_within_limit(run)
        except TimeoutError:
            run.failure = (
                f"It was not done within {_RUN_LIMIT_S:g} s, and was ended. Whether the step that was under "
                "way took effect is not known."
            )
        except asyncio.CancelledError:
            run.failure = "The server ended. Whether the step that was under way took effect is not known."
            raise
        except Exception as error:
            traceback.print_exc(file=sys.stderr)
            run.failure = _DEFECT.format(repr(error))
        finally:
            self._end(run, outcome)

    async def _apply_within_limit(self, run: Run) -> Outcome:
        def approve(plan: Plan, _cluster: str) -> str | None:
            refusal = self._refusal(run, plan)
            if refusal is None:
                run.plan = plan
            return refusal

        def on_report(_number: int, report: str) -> None:
            run.reports.append(report)

        try:
            result = await self._undertaking(run.kept).apply(approve, on_report)
        except (CannotRepair, ClientError) as error:
            run.failure = str(error)
            return Outcome.REFUSED  # While it was planned: steps that break are in the result.
        run.failure = result.failure or ""
        if result.is_refused:
            return Outcome.REFUSED
        return Outcome.DONE if result.failure is None else Outcome.FAILED

    def _refusal(self, run: Run, plan: Plan) -> str | None:
        """Why it is not done. What would be done now is kept, to be shown."""
        shown = ShownPlan(run.plan.id, run.kept.at, run.plan.basis)
        refusal = why_not(plan, shown, None)
        if refusal is None and not plan.applicable:
            refusal = (*plan.obstacles, "There is nothing left to do.")[0]
        if refusal is not None:
            kept = KeptPlan(run.kept.target, run.kept.asked, run.operator, self.clock(), plan=plan)
            run.plan_now = self.plans.add(kept)
        return refusal

    def _end(self, run: Run, outcome: Outcome) -> None:
        if run.reports:
            run.change = self._record_of(run)
        facts = {"outcome": outcome.value, "reports": list(run.reports), "change": run.change or None}
        try:
            self.audit.note(
                "applied", run.operator, **_facts(run), run=run.id, **facts, failure=run.failure or None
            )
        except OSError as error:
            traceback.print_exc(file=sys.stderr)
            told = f"What came of it could not be noted in the audit log: {error}"
            run.failure = f"{run.failure} {told}".strip()
        run.outcome = outcome
        run.ended = self.clock()  # Last: what has an end is complete.

    def _record_of(self, run: Run) -> str:
        """Of the change: the repair wrote it as its first step."""
        cluster = run.kept.target.cluster
        noted = [
            record.id
            for record in self.changes(cluster)
            if record.at >= run.began and record.what == run.plan.title
        ]
        return noted[0] if noted else ""


def _facts(run: Run) -> dict[str, object]:
    kept = run.kept
    return {
        "cluster": kept.target.cluster,
        "repair": kept.asked.repair,
        "subject": kept.asked.confirmation,
        "asked": dict(kept.asked.arguments),
        "plan": run.plan.id,
        "planned_by": kept.operator.name,
    }
