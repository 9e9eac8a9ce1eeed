"""The command line: one file per command, each with `register(subparsers)` and a function that runs it.

A command returns its exit status. It raises `CommandError` for what a user can mend; any other exception is
a defect and keeps its traceback. Only the module of the given command is imported: all of them take a second.
"""

import importlib
import sys
from collections.abc import Sequence

from kelpie.cli.command import CommandError, CommandParser

COMMANDS = (
    "doctor",
    "explain",
    "probe",
    "consume",
    "where",
    "names",
    "lab",
    "real",
    "rehome",
    "reset",
    "reassign-offsets-topic",
    "elect",
    "migrate-offsets",
    "guard",
    "mappings",
    "offsets",
    "collect",
    "pipeline",
    "simulate",
)
"""In the order in which help lists them. Each is a module of that name, with _ for -."""


def main(argv: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else list(argv)
    parser = CommandParser(
        prog="kelpie", description="Finds out which Kafka consumer groups are not consuming, and why."
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in words[:1] if words and words[0] in COMMANDS else COMMANDS:
        importlib.import_module(f"{__name__}.{command.replace('-', '_')}").register(commands)
    arguments = parser.parse_args(words)
    try:
        status: int = arguments.run(arguments)
    except CommandError as error:
        print(f"kelpie {arguments.command}: {error}", file=sys.stderr)
        return error.status
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 141
    return status
