"""kelpie undo: lists what Kelpie has changed in clusters, and takes one of it back."""

import argparse
import asyncio
import sys
from collections.abc import Sequence

from kelpie.api.repair_requests import undo
from kelpie.api.repairs import changes_made
from kelpie.cli.command import CommandError, describe, option
from kelpie.cli.connecting import settings_from
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.json_output import also_prints, print_json
from kelpie.cli.progress import progress
from kelpie.cli.repairing import add_repair_options, run_repair
from kelpie.cli.terminal import folded, terminal_width
from kelpie.cli.text_table import text_table
from kelpie.client.client_errors import ClientError
from kelpie.documents.changes import change_data
from kelpie.model.quoting import harmless
from kelpie.model.words import moment
from kelpie.repair.change_records import records
from kelpie.repair.change_states import ChangeState
from kelpie.repair.plan import CannotRepair
from kelpie.repair.undo import find
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
    is_named = arguments.bootstrap_server is not None or arguments.command_config is not None
    if arguments.list:
        return _list(arguments, is_named=is_named)
    try:
        record = find(records(), arguments.id)
    except CannotRepair as error:
        raise CommandError(str(error), ExitStatus.NO) from None
    if not is_named:
        arguments.bootstrap_server = record.bootstrap

    return run_repair(arguments, undo(record))


def _list(arguments: argparse.Namespace, *, is_named: bool) -> int:
    try:
        with progress("undo", "asking what can be undone"):
            known = asyncio.run(changes_made(settings_from(arguments) if is_named else None))
    except ClientError as error:
        raise CommandError(str(error), ExitStatus.NO) from None
    if arguments.json:
        print_json([change_data(change.record, change.state) for change in known])
    elif not known:
        print(folded(f"No change is noted in {undo_folder()}.", "", sys.stdout))
    else:
        print(_text(known))
    return ExitStatus.OK


def _text(known: Sequence[ChangeState]) -> str:
    by_cluster: dict[tuple[str, str], list[ChangeState]] = {}
    for change in known:
        by_cluster.setdefault((change.record.cluster, change.record.bootstrap), []).append(change)
    blocks = []
    for (cluster, bootstrap), rows in by_cluster.items():
        cells = [_HEAD] + [
            (
                change.record.id,
                moment(change.record.at).removesuffix(" UTC"),
                change.record.command,
                harmless(change.record.subject),
                harmless(change.state.partition(":")[0]),
            )
            for change in rows
        ]
        title = f"Cluster {harmless(cluster) or 'without an id'} at {harmless(bootstrap)}"
        blocks.append(f"{folded(title, '', sys.stdout)}\n{text_table(cells, terminal_width())}")
    if any(":" in change.state for change in known):
        blocks.append("Why one cannot be undone, kelpie undo ID says; so does --list --json.")
    return "\n\n".join(blocks)
