"""What the commands that repair share: they print the plan, and apply it only with --apply."""

import argparse
import asyncio
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from kelpie.cli.command import CommandError, describe, option, reads
from kelpie.cli.connecting import add_connection_options, settings_from
from kelpie.cli.environment import STATE
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.json_output import add_json_option, print_json
from kelpie.cli.progress import progress
from kelpie.cli.terminal import folded, text_width
from kelpie.client.client_errors import ClientError
from kelpie.client.nodes import Nodes
from kelpie.client.survey import wall_clock
from kelpie.documents.plan import plan_document, result_document
from kelpie.model.quoting import harmless
from kelpie.repair.applying import Repair, RepairResult
from kelpie.repair.plan import CannotRepair, Plan
from kelpie.repair.rendering import render, render_end, render_failure, render_refusal, render_report
from kelpie.repair.shown_plans import ShownPlans, why_not
from kelpie.repair.undertaking import RepairRequest, Undertaking
from kelpie.repair.undo_files import write_whole

_NOT_OF_PLAN = ("apply", "json", "plan", "run")
"""Options that do not change what a command plans."""


def add_repair_options(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        statuses={
            ExitStatus.OK: "the plan is printed; with --apply: it is done",
            ExitStatus.NO: "it cannot be done now, the plan is not the one that was shown, or a step failed",
        },
    )
    reads(parser, STATE)
    option(parser, "--apply", "do it, if the plan is the one that was last printed; else it is printed only")
    option(parser, "--plan ID", "with --apply: do it only if it is the plan with this id")
    add_json_option(parser, "plan", "print the plan, and what came of it, as JSON")
    add_connection_options(parser)


def tell(word: str) -> None:
    """What is wrong with the store of earlier surveys."""
    print(folded(harmless(word), "kelpie: "), file=sys.stderr)


def export(file: str, text: str) -> None:
    """Writes a file that a person has named. Raises CommandError."""
    try:
        write_whole(Path(file), text)
    except OSError as error:
        raise CommandError(f"{file} cannot be written: {error.strerror}.", ExitStatus.NO) from None


def exporting(request: RepairRequest, write: Callable[[Plan], None]) -> RepairRequest:
    """The same request; when the plan is made, `write` gets it."""

    async def make(nodes: Nodes) -> Repair:
        repair = await request.make(nodes)
        write(repair.plan)
        return repair

    return replace(request, make=make)


def run_repair(arguments: argparse.Namespace, request: RepairRequest) -> int:
    """0: planned, or done; 1: it cannot be done now, or a step failed."""
    undertaking = Undertaking(settings_from(arguments), _shown(arguments, request))
    try:
        return asyncio.run((_apply if arguments.apply else _plan)(arguments, undertaking))
    except (CannotRepair, ClientError) as error:
        raise CommandError(str(error), ExitStatus.NO) from None


def _shown(arguments: argparse.Namespace, request: RepairRequest) -> RepairRequest:
    """The same request, with progress, and with commands that reach the cluster as this one does."""

    async def make(nodes: Nodes) -> Repair:
        with progress(arguments.command, "making the plan"):
            repair = await request.make(nodes)
        if arguments.command_config:
            repair = replace(repair, plan=repair.plan.with_properties(arguments.command_config))
        return repair

    return replace(request, make=make)


async def _plan(arguments: argparse.Namespace, undertaking: Undertaking) -> int:
    plan, cluster = await undertaking.plan()
    _print_plan(arguments, plan)
    return _end_of_plan(arguments, plan, cluster)


def _print_plan(arguments: argparse.Namespace, plan: Plan) -> None:
    if not arguments.json:
        print(render(plan, text_width()), end="\n\n")


def _end_of_plan(arguments: argparse.Namespace, plan: Plan, cluster: str) -> int:
    """Of a plan that is only printed, or that cannot be applied."""
    if arguments.json:
        print_json(plan_document(plan))
    else:
        print(render_end(plan))
    if plan.applicable:
        _plans(arguments, cluster).keep(plan, wall_clock())
    return ExitStatus.NO if plan.obstacles else ExitStatus.OK


def _plans(arguments: argparse.Namespace, cluster: str) -> ShownPlans:
    given = {name: value for name, value in vars(arguments).items() if name not in _NOT_OF_PLAN}
    return ShownPlans(cluster, arguments.command, given)


async def _apply(arguments: argparse.Namespace, undertaking: Undertaking) -> int:
    plans: ShownPlans | None = None
    name, steps = "", 0

    def approve(plan: Plan, cluster: str) -> str | None:
        nonlocal plans, name, steps
        plans, name, steps = _plans(arguments, cluster), cluster, len(plan.steps)
        _print_plan(arguments, plan)
        if not plan.applicable:
            return "It cannot be applied."
        now = wall_clock()
        refusal = why_not(plan, plans.last(now), arguments.plan)
        if refusal is not None:
            plans.keep(plan, now)
        return refusal

    def on_report(number: int, report: str) -> None:
        if not arguments.json:
            print(render_report(number, steps, report, text_width()), flush=True)

    result = await undertaking.apply(approve, on_report)
    if not result.plan.applicable:
        return _end_of_plan(arguments, result.plan, name)
    if plans is not None and not result.is_refused:
        plans.forget()
    _print_result(arguments, result)
    return ExitStatus.OK if result.failure is None else ExitStatus.NO


def _print_result(arguments: argparse.Namespace, result: RepairResult) -> None:
    if arguments.json:
        print_json(result_document(result))
        return
    sys.stdout.flush()
    width = text_width(sys.stderr)
    if result.is_refused:
        by_id = arguments.plan is not None
        refusal = render_refusal(result.failure or "", result.plan, by_id=by_id, width=width)
        print(refusal, file=sys.stderr)
    elif result.failure is not None:
        print(render_failure(result, width), file=sys.stderr)
    else:
        print("\nDone.")
