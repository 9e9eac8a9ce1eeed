"""The pages of repairs: forms, plans, what is done, what was changed, and the audit log."""

from collections.abc import Callable, Sequence
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from kelpie.model.quoting import harmless
from kelpie.model.time import iso_time
from kelpie.repair.plan import NOTHING_CHANGES
from kelpie.repair.undo import NOT_UNDONE, noted_states
from kelpie.web.access.forms import form_of
from kelpie.web.access.operators import Operator, operator_of
from kelpie.web.language import N_, gettext
from kelpie.web.pages import Page
from kelpie.web.repairs.audit_words import details_of, event_of
from kelpie.web.repairs.kept import KeptPlan, Outcome, Run
from kelpie.web.repairs.requests import OF_CLUSTERS, OF_GROUPS, BadRequest, RepairTarget, asked_in
from kelpie.web.repairs.workshop import Busy, NotApplicable, Workshop
from kelpie.web.site import Link, Site
from kelpie.web.words import cluster_address

_AUDIT = "/audit"
_RENEW_S = 2
_MOST_LINES, _MOST_CHANGES, _MOST_RUNS = 200, 200, 50
_MOST_ROWS = 2_000
_BUSY = N_("Too many plans or repairs are under way. Try again in a moment.")

Answer = Callable[[RepairTarget, Request], Page | Response]


class RepairSection:
    def __init__(self, workshop: Workshop) -> None:
        self._workshop = workshop

    def routes(self, site: Site) -> Sequence[BaseRoute]:
        path = "/clusters/{cluster}"
        return [
            *site.routes(f"{path}/repairs", self._shown(self._forms)),
            site.posted(f"{path}/repairs", self._of(self._ask)),
            *site.routes(f"{path}/plan", self._shown(self._plan)),
            site.posted(f"{path}/plan", self._of(self._apply)),
            *site.routes(f"{path}/run", self._shown(self._run)),
            *site.routes(f"{path}/changes", self._shown(self._changes)),
            *site.routes(_AUDIT, self._audit),
        ]

    def links(self, cluster: str | None) -> Sequence[Link]:
        links = [(_AUDIT, gettext("Audit log"))]
        if cluster is not None and cluster in self._workshop.targets:
            links.insert(0, (cluster_address(cluster, "changes"), gettext("Changes")))
            links.insert(0, (cluster_address(cluster, "repairs"), gettext("Repairs")))
        return links

    def links_of_group(self, cluster: str, group: str) -> Sequence[Link]:
        if cluster not in self._workshop.targets:
            return []
        return [(address(cluster, "repairs", group=group), gettext("Repair this group"))]

    def _of(self, answer: Answer) -> Callable[[Request], Page | Response]:
        def answering(request: Request) -> Page | Response:
            target = self._workshop.targets.get(request.path_params["cluster"])
            if target is None:
                raise HTTPException(404, N_("No cluster of this name can be repaired here."))
            return answer(target, request)

        return answering

    def _shown(self, page: Callable[[RepairTarget, Request], Page]) -> Callable[[Request], Page]:
        answering = self._of(page)

        def shown(request: Request) -> Page:
            made = answering(request)
            assert isinstance(made, Page)
            return made

        return shown

    # Forms, and plans made of them.

    def _forms(self, target: RepairTarget, request: Request, problem: str = "") -> Page:
        group = request.query_params.get("group", "")
        names = [name for name in OF_GROUPS if name != "migrate-offsets" or target.zookeeper is not None]
        data = {
            "group": group or None,
            "repairs": names if group else list(OF_CLUSTERS),
            "error": problem or None,
        }
        values = {
            "title": gettext("Repair group %(name)s") % {"name": group} if group else gettext("Repairs"),
            "group": group,
            "repairs": names,
            "problem": problem,
            "chosen": request.query_params.get("repair", ""),
            "given": {} if request.method != "POST" else form_of(request),
            "address": address,
        }
        return Page("repairs.html", data, values, 422 if problem else 200)

    def _ask(self, target: RepairTarget, request: Request) -> Page | Response:
        try:
            asked = asked_in(target, request.query_params, form_of(request))
            kept = self._workshop.plan(target, asked, _operator(request))
        except BadRequest as error:
            text = gettext(error.message)
            problem = text % {"value": harmless(error.value)} if error.value else text
            return self._forms(target, request, problem)
        except Busy:
            raise HTTPException(503, _BUSY) from None
        return RedirectResponse(address(target.cluster, "plan", id=kept.id), 303)

    def _plan(self, target: RepairTarget, request: Request, problem: str = "", status: int = 200) -> Page:
        kept = self._workshop.plans.find(target.cluster, request.query_params.get("id", ""))
        if kept is None:
            raise HTTPException(404, N_("This plan is not kept any more. Make it anew."))
        why_not = self._workshop.why_not_applicable(kept)
        values = {
            "title": kept.plan.title if kept.plan is not None else kept.asked.repair,
            "kept": kept,
            "plan": kept.plan,
            "documents": [
                (document.title, document.text.rstrip().splitlines()[:_MOST_ROWS])
                for document in (kept.plan.documents if kept.plan is not None else ())
            ],
            "nothing_changes": NOTHING_CHANGES,
            "typed": harmless(kept.asked.confirmation),
            "can_be_applied": why_not is None,
            "why_not": gettext(str(why_not)) if why_not is not None else "",
            "problem": problem,
            "every_s": None if kept.is_made else _RENEW_S,
            "address": address,
        }
        return Page("plan.html", kept.as_data(), values, status)

    def _apply(self, target: RepairTarget, request: Request) -> Page | Response:
        kept = self._workshop.plans.find(target.cluster, request.query_params.get("id", ""))
        if kept is None:
            raise HTTPException(404, N_("This plan is not kept any more. Make it anew."))
        if not is_confirmed(kept, form_of(request).get("confirmation", "")):
            text = gettext("What you typed is not the name that this plan is about. Nothing was done.")
            return self._plan(target, request, text, 422)
        try:
            run = self._workshop.apply(kept, _operator(request))
        except NotApplicable as error:
            return self._plan(target, request, gettext(str(error)), 409)
        except Busy:
            raise HTTPException(503, _BUSY) from None
        except OSError:
            text = N_("This cannot be noted in the audit log, so nothing was done.")
            raise HTTPException(503, text) from None
        return RedirectResponse(address(target.cluster, "run", id=run.id), 303)

    # What was done.

    def _run(self, target: RepairTarget, request: Request) -> Page:
        run = self._workshop.runs.find(target.cluster, request.query_params.get("id", ""))
        if run is None:
            raise HTTPException(404, N_("This repair is not kept any more; the audit log has it."))
        is_running = run.outcome is Outcome.RUNNING
        done = len(run.reports)
        values = {
            "title": run.plan.title,
            "run": run,
            "steps": [
                (step, run.reports[at] if at < done else "", _state(run, at, done))
                for at, step in enumerate(run.plan.steps)
            ],
            "states": _states(),
            "every_s": _RENEW_S if is_running else None,
            "address": address,
        }
        return Page("run.html", run.as_data(), values)

    def _changes(self, target: RepairTarget, _: Request) -> Page:
        records = self._workshop.changes(target.cluster)[:_MOST_CHANGES]
        states = noted_states(records)
        runs = self._workshop.runs.of(target.cluster)[:_MOST_RUNS]
        data = {
            "runs": [run.as_data() for run in runs],
            "changes": [
                {
                    "id": record.id,
                    "at": iso_time(record.at),
                    "command": record.command,
                    "subject": record.subject,
                    "what": record.what,
                    "state": states[record.id],
                }
                for record in records
            ],
        }
        values = {
            "title": gettext("Changes"),
            "runs": runs,
            "states": _states(),
            "records": [(record, states[record.id], states[record.id] == NOT_UNDONE) for record in records],
            "address": address,
        }
        return Page("changes.html", data, values)

    def _audit(self, _: Request) -> Page:
        try:
            lines = self._workshop.audit.tail(_MOST_LINES)
        except OSError:
            raise HTTPException(503, N_("The audit log cannot be read.")) from None
        values = {
            "title": gettext("Audit log"),
            "lines": [(line, event_of(line), details_of(line, _states())) for line in lines],
        }
        return Page("audit.html", {"lines": lines}, values)


def address(cluster: str, page: str, **query: str) -> str:
    return f"{cluster_address(cluster, page)}?{urlencode(query)}"


def is_confirmed(kept: KeptPlan, typed: str) -> bool:
    """The name itself, or as the page shows it: some signs cannot be typed."""
    name = kept.asked.confirmation
    return bool(name) and typed in (name, harmless(name))


def _states() -> dict[str, str]:
    """Words for steps and repairs, as people read them."""
    return {
        "done": gettext("done"),
        "under way": gettext("under way"),
        "running": gettext("under way"),
        "waiting": gettext("waiting"),
        "not done": gettext("not done"),
        "failed": gettext("failed"),
        "refused": gettext("refused"),
        "unknown": gettext("unknown"),
    }


def _state(run: Run, at: int, done: int) -> str:
    if at < done:
        return "done"
    if at > done or run.outcome is Outcome.REFUSED:
        return "waiting" if run.outcome is Outcome.RUNNING else "not done"
    return {Outcome.RUNNING: "under way", Outcome.FAILED: "failed"}.get(run.outcome, "unknown")


def _operator(request: Request) -> Operator:
    operator = operator_of(request)
    assert operator is not None, "the gate lets nobody else through"
    return operator
