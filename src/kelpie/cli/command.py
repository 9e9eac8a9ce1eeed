"""What all commands share: their parser and options, their errors, settings written as NAME=VALUE."""

import argparse
import sys
import textwrap
from typing import Any, NoReturn


class CommandParser(argparse.ArgumentParser):
    """Explains a mistake with the usage of the command in which it was made.

    `usage_status` is the exit status after a mistake in the options.
    """

    def __init__(self, *arguments: Any, usage_status: int = 2, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._usage_status = usage_status

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(self._usage_status, f"{self.prog}: error: {message}\n")

    def parse_known_args(self, *arguments: Any, **named: Any) -> Any:
        """argparse has the outermost parser complain of unknown options, with the status of that parser."""
        parsed, unknown = super().parse_known_args(*arguments, **named)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return parsed, unknown


class CommandError(Exception):
    """Something a user can mend. Its text says what happened, where, and what to do next."""

    def __init__(self, message: str, status: int = 2) -> None:
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
