"""The command line: one file per command, each with `register(subparsers)` and a function that runs it.

A command returns its exit status. It raises `CommandError` for what a user can mend; any other exception is
a defect and keeps its traceback.
"""

import argparse
import sys
from collections.abc import Sequence

from kelpie.cli import lab, real
from kelpie.cli.command import CommandError


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="kelpie", description="Finds out which Kafka consumer groups are not consuming, and why."
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in (lab, real):
        command.register(commands)
    arguments = parser.parse_args(argv)
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
