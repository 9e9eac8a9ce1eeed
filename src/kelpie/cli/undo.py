"""kelpie undo: lists what Kelpie has changed in clusters, and takes one of it back."""

import argparse
import asyncio
from collections.abc import Iterable, Mapping

from kelpie.cli.command import CommandError, describe, option
from kelpie.cli.connecting import settings_from
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.json_output import also_prints, print_json
from kelpie.cli.progress import progress
from kelpie.cli.repairing import add_repair_options, run_repair
from kelpie.cli.terminal import terminal_width
from kelpie.cli.text_table import text_table
from kelpie.client.client_errors import ClientError
from kelpie.client.nodes import Nodes
from kelpie.documents.changes import change_data
from kelpie.model.quoting import harmless
from kelpie.model.words import moment
from kelpie.repair.applying import Repair
from kelpie.repair.change_records import ChangeRecord, records
from kelpie.repair.plan import CannotRepair
from kelpie.repair.undo import NOT_UNDONE, find, noted_states, subject_of, undo
from kelpie.repair.undo_files import undo_folder

_HEAD = ("ID", "WHEN (UTC)", "COMMAND", "OF", "STATE")


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "undo",
        description="Every repair writes a record before it changes anything. This lists the records of this "
        "machine's user, and takes one change back, if all is still as the repair left it. Prints the plan; "
        "--apply does it.",
    )
    parser.set_defaults(run=_run)
    describe(
        parser,
        examples="""
            kelpie undo --list
                what was changed
            kelpie undo 7f3a
                the plan to take one change back
            kelpie undo 7f3a --apply
                do it
        """,
    )
    parser.add_argument("id", nargs="?", metavar="ID", help="of the change; its first letters are enough")
    option(
        parser,
        "--list",
        "list what was changed; with -b only in that cluster, and whether it can still be undone",
    )
    add_repair_options(parser)
    also_prints(parser, "undo-list")


def _run(arguments: argparse.Namespace) -> int:
    if arguments.list == (arguments.id is not None):
        raise CommandError("Name the change that is to be undone, or see them with --list.")
    known = records()
    is_named = arguments.bootstrap_server is not None or arguments.command_config is not None
    if arguments.list:
        return _list(arguments, known, is_named=is_named)
    try:
        record = find(known, arguments.id)
    except CannotRepair as error:
        raise CommandError(str(error), ExitStatus.NO) from None
    if not is_named:
        arguments.bootstrap_server = record.bootstrap

    async def make(nodes: Nodes) -> Repair:
        return await undo(nodes, record)

    return run_repair(arguments, make, subject_of(record))


def _list(arguments: argparse.Namespace, known: list[ChangeRecord], *, is_named: bool) -> int:
    states = noted_states(known)
    if is_named:
        try:
            with progress("undo", "asking what can be undone"):
                cluster, asked = asyncio.run(_asked(arguments, known, states))
        except ClientError as error:
            raise CommandError(str(error), ExitStatus.NO) from None
        known = [record for record in known if record.cluster == cluster]
        states |= asked
    if arguments.json:
        print_json([change_data(record, states[record.id]) for record in known])
    elif not known:
        print(f"No change is noted in {undo_folder()}.")
    else:
        print(_text(known, states))
    return 0


async def _asked(
    arguments: argparse.Namespace, known: Iterable[ChangeRecord], states: Mapping[str, str]
) -> tuple[str, dict[str, str]]:
    """The id of the cluster, and for each change in it that is not undone whether it can be."""
    answers = {}
    async with await Nodes.open(settings_from(arguments)) as nodes:
        cluster = nodes.cluster_id or ""
        for record in known:
            if record.cluster == cluster and states[record.id] == NOT_UNDONE:
                try:
                    plan = (await undo(nodes, record)).plan
                except (CannotRepair, ClientError) as error:
                    answers[record.id] = f"cannot be undone: {error}"
                else:
                    why = plan.obstacles[0] if plan.obstacles else ""
                    can = "can be undone" if plan.steps else "nothing left to undo"
                    answers[record.id] = f"cannot be undone: {why}" if why else can
    return cluster, answers


def _text(known: Iterable[ChangeRecord], states: Mapping[str, str]) -> str:
    by_cluster: dict[tuple[str, str], list[ChangeRecord]] = {}
    for record in known:
        by_cluster.setdefault((record.cluster, record.bootstrap), []).append(record)
    blocks = []
    for (cluster, bootstrap), rows in by_cluster.items():
        cells = [_HEAD] + [
            (
                record.id,
                moment(record.at).removesuffix(" UTC"),
                record.command,
                harmless(record.subject),
                harmless(states[record.id].partition(":")[0]),
            )
            for record in rows
        ]
        title = f"Cluster {harmless(cluster) or 'without an id'} at {harmless(bootstrap)}"
        blocks.append(f"{title}\n{text_table(cells, terminal_width())}")
    if any(":" in states[record.id] for record in known):
        blocks.append("Why one cannot be undone, kelpie undo ID says; so does --list --json.")
    return "\n\n".join(blocks)
