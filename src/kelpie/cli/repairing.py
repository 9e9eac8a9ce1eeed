"""What the repairing commands have in common: the plan is printed, and done only with --apply."""

import argparse
import asyncio
import json
import sys
import textwrap
from collections.abc import Awaitable, Callable
from dataclasses import replace

from kelpie.cli.command import CommandError
from kelpie.cli.connecting import add_connection_options, settings_from
from kelpie.cli.examining import cluster_name
from kelpie.client.client_errors import ClientError
from kelpie.client.nodes import Nodes
from kelpie.client.settings import Settings
from kelpie.client.survey import wall_clock
from kelpie.observations import Observations
from kelpie.repair.applying import Repair, apply
from kelpie.repair.commands import with_properties
from kelpie.repair.plan import CannotRepair
from kelpie.repair.rendering import printable, render, render_end, render_failure, render_report
from kelpie.store import Store

Making = Callable[[Nodes], Awaitable[Repair]]


def add_repair_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--apply", action="store_true", help="do it; without this the plan is printed only")
    parser.add_argument("--json", action="store_true", help="print the plan, and what came of it, as JSON")
    add_connection_options(parser)


def earlier_surveys(nodes: Nodes) -> Observations:
    """What the store holds of this cluster."""
    store = Store()
    return store.recall(cluster_name(nodes, store), wall_clock())


def run_repair(arguments: argparse.Namespace, make: Making) -> int:
    """0: planned, or done; 1: it cannot be done as things are, or broke on the way."""
    settings = settings_from(arguments)
    try:
        return asyncio.run(_run(arguments, settings, make))
    except (CannotRepair, ClientError) as error:
        raise CommandError(_wrapped(str(error), arguments.command), status=1) from None


async def _run(arguments: argparse.Namespace, settings: Settings, make: Making) -> int:
    async with await Nodes.open(settings) as nodes:
        repair = await make(nodes)
        if arguments.command_config:
            repair = replace(repair, plan=with_properties(repair.plan, arguments.command_config))
        plan = repair.plan
        if not arguments.json:
            print(render(plan), end="\n\n")
        if not arguments.apply or not plan.applicable:
            if arguments.json:
                _print_json({**plan.as_data(), "applied": False})
            else:
                print(render_end(plan))
            return 1 if plan.obstacles else 0
        return await _apply(arguments, repair)


async def _apply(arguments: argparse.Namespace, repair: Repair) -> int:
    steps = len(repair.plan.steps)

    def tell(number: int, report: str) -> None:
        if not arguments.json:
            print(render_report(number, steps, report), flush=True)

    outcome = await apply(repair, tell)
    if arguments.json:
        _print_json(outcome.as_data())
    elif outcome.failure is None:
        print("\nDone.")
    else:
        sys.stdout.flush()
        print(render_failure(outcome), file=sys.stderr)
    return 0 if outcome.failure is None else 1


def _print_json(data: dict[str, object]) -> None:
    print(json.dumps(data, indent=2, ensure_ascii=False))


def _wrapped(text: str, command: str) -> str:
    # The first line follows the command's name.
    label = " " * len(f"kelpie {command}: ")
    return textwrap.fill(
        printable(text), 79, initial_indent=label, break_long_words=False, break_on_hyphens=False
    ).lstrip()
