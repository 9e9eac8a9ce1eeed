"""What all commands share: their parser and options, their errors, settings written as NAME=VALUE."""

import argparse
import sys
import textwrap
from typing import Any, NoReturn

from kelpie.model.quoting import harmless

USAGE = 64
"""Exit status of every command that was asked for wrongly: EX_USAGE of sysexits.h. 2 means other things."""
CANNOT_WRITE = 74
"""Exit status of a command whose output could not be written: EX_IOERR."""
INTERRUPTED = 130
PIPE_CLOSED = 141


class CommandParser(argparse.ArgumentParser):
    """Explains a mistake with the usage of the command in which it was made."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(USAGE, f"{self.prog}: error: {harmless(message)}\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        """argparse would swallow that help cannot be written."""
        if message:
            print(message, end="", file=file or sys.stderr)

    def parse_known_args(self, *arguments: Any, **named: Any) -> Any:
        """argparse has the outermost parser complain of unknown options, with the usage of that parser."""
        parsed, unknown = super().parse_known_args(*arguments, **named)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return parsed, unknown


class CommandError(Exception):
    """Something a user can mend. Its text says what happened, where, and what to do next."""

    def __init__(self, message: str, status: int = USAGE) -> None:
        super().__init__(message)
        self.status = status


def option(parser: "argparse._ActionsContainer", usage: str, text: str, **named: Any) -> None:
    """Adds an option as users write it: "--store DIR" takes a value, "-q --quiet" is a switch.

    `text` is its help; the rest goes to argparse.
    """
    *flags, last = usage.split()
    if last.startswith("-"):
        parser.add_argument(*flags, last, help=text, **{"action": "store_true", **named})
    else:
        parser.add_argument(*flags, metavar=last, help=text, **named)


def folded(text: str, command: str) -> str:
    """An error's text, folded to the width of a terminal. Its first line follows the command's name."""
    label = " " * len(f"kelpie {command}: ")
    return textwrap.fill(
        text, 79, initial_indent=label, break_long_words=False, break_on_hyphens=False
    ).lstrip()


def setting(text: str) -> tuple[str, str]:
    """Name and value of a broker's setting. Raises CommandError."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise CommandError(f"--config {text!r} is no setting. Write NAME=VALUE, as in server.properties.")
    return name.strip(), value.strip()
