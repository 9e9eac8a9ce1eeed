"""What the commands that repair share: they print the plan, and apply it only with --apply."""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable
from contextlib import nullcontext
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
from kelpie.client.settings import Settings
from kelpie.client.survey import wall_clock
from kelpie.documents.plan import plan_document, result_document
from kelpie.examination.memory import Recollection
from kelpie.model.quoting import harmless
from kelpie.observations import OFFSETS_TOPIC, Observations
from kelpie.repair.applying import Repair, apply
from kelpie.repair.picture import survey_brokers
from kelpie.repair.plan import CannotRepair
from kelpie.repair.rendering import render, render_end, render_failure, render_refusal, render_report
from kelpie.repair.shown_plans import ShownPlans, exclusive, why_not
from kelpie.repair.undo_files import write_whole
from kelpie.store import Store

Making = Callable[[Nodes], Awaitable[Repair]]
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


async def earlier_surveys(nodes: Nodes) -> Observations:
    """What the store holds about this cluster: not about another one that has said it has the same id."""
    store = Store()
    memory = Recollection.of(nodes, store, wall_clock()).settled(await survey_brokers(nodes))
    for word in store.words:
        print(folded(harmless(word), "kelpie: "), file=sys.stderr)
    return memory.rows


def existing(names: Iterable[str]) -> list[Path]:
    """Files and folders that a person has named. Raises CannotRepair."""
    paths = [Path(name) for name in names]
    for path in paths:
        if not path.exists():
            raise CannotRepair(f"There is no file or folder {path}.")
    return paths


def export(file: str, text: str) -> None:
    """Writes a file that a person has named. Raises CommandError."""
    try:
        write_whole(Path(file), text)
    except OSError as error:
        raise CommandError(f"{file} cannot be written: {error.strerror}.", ExitStatus.NO) from None


def run_repair(arguments: argparse.Namespace, make: Making, subject: str = OFFSETS_TOPIC) -> int:
    """0: planned, or done; 1: it cannot be done now, or a step failed.

    `subject`: of which only one repair is done at a time.
    """
    settings = settings_from(arguments)
    try:
        return asyncio.run(_run(arguments, settings, make, subject))
    except (CannotRepair, ClientError) as error:
        raise CommandError(str(error), ExitStatus.NO) from None


async def _run(arguments: argparse.Namespace, settings: Settings, make: Making, subject: str) -> int:
    async with await Nodes.open(settings) as nodes:
        cluster = nodes.cluster_id or ",".join(map(str, settings.bootstrap))
        with exclusive(cluster, subject) if arguments.apply else nullcontext():
            return await _within_lock(arguments, nodes, make, cluster)


async def _within_lock(arguments: argparse.Namespace, nodes: Nodes, make: Making, cluster: str) -> int:
    with progress(arguments.command, "making the plan"):
        repair = await make(nodes)
    if arguments.command_config:
        repair = replace(repair, plan=repair.plan.with_properties(arguments.command_config))
    plan, now = repair.plan, wall_clock()
    given = {name: value for name, value in vars(arguments).items() if name not in _NOT_OF_PLAN}
    plans = ShownPlans(cluster, arguments.command, given)
    if not arguments.json:
        print(render(plan, text_width()), end="\n\n")
    if not arguments.apply or not plan.applicable:
        if arguments.json:
            print_json(plan_document(plan))
        else:
            print(render_end(plan))
        if plan.applicable:
            plans.keep(plan, now)
        return ExitStatus.NO if plan.obstacles else ExitStatus.OK
    refusal = why_not(plan, plans.last(now), arguments.plan)
    if refusal is not None:
        plans.keep(plan, now)
        if arguments.json:
            print_json({**plan_document(plan), "reports": [], "failure": refusal})
        else:
            sys.stdout.flush()
            by_id, width = arguments.plan is not None, text_width(sys.stderr)
            print(render_refusal(refusal, plan, by_id=by_id, width=width), file=sys.stderr)
        return ExitStatus.NO
    status = await _apply(arguments, repair)
    plans.forget()
    return status


async def _apply(arguments: argparse.Namespace, repair: Repair) -> int:
    steps = len(repair.plan.steps)

    def on_report(number: int, report: str) -> None:
        if not arguments.json:
            print(render_report(number, steps, report, text_width()), flush=True)

    result = await apply(repair, on_report)
    if arguments.json:
        print_json(result_document(result))
    elif result.failure is None:
        print("\nDone.")
    else:
        sys.stdout.flush()
        print(render_failure(result, text_width(sys.stderr)), file=sys.stderr)
    return ExitStatus.OK if result.failure is None else ExitStatus.NO
