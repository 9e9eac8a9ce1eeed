"""What all commands share: their parser and options, their errors, settings written as NAME=VALUE."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.manual import Manual, ManualFormatter
from kelpie.cli.terminal import folded
from kelpie.model.quoting import harmless
from kelpie.model.suggestions import did_you_mean


class CommandParser(argparse.ArgumentParser):
    """Explains a mistake with the usage of the command in which it was made, and what was meant perhaps."""

    def __init__(self, **named: Any) -> None:
        super().__init__(**{"formatter_class": ManualFormatter, **named})
        self._positionals.title = "arguments"
        self.manual = Manual()

    def add_subparsers(self, **named: Any) -> Any:
        return super().add_subparsers(**{"title": "actions", **named})

    def format_help(self) -> str:
        return super().format_help() + self.manual.text()

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(ExitStatus.USAGE, folded(harmless(message), f"{self.prog}: error: ") + "\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        """argparse would swallow that help cannot be written."""
        if message:
            print(message, end="", file=file or sys.stderr)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """argparse has the outermost parser complain of unknown options, with the usage of that parser."""
        words: Sequence[str] = sys.argv[1:] if args is None else list(args)
        self._check_options(words)
        parsed, unknown = super().parse_known_args(words, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return parsed, unknown

    def _check_options(self, words: Sequence[str]) -> None:
        """Before argparse misses a required option whose name was mistyped."""
        takes_others = (argparse.PARSER, argparse.REMAINDER)
        if any(action.nargs in takes_others for action in self._actions):
            return
        for word in words:
            if word == "--":
                return
            name = word.partition("=")[0]
            known = self._option_string_actions
            if word.startswith("--") and not any(option.startswith(name) for option in known):
                hint = did_you_mean(name, known) or f"{self.prog} --help lists them."
                self.error(f"there is no option {name}. {hint}".rstrip())

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        known = [str(choice) for choice in action.choices]
        text = f"there is no {value!r}. {did_you_mean(str(value), known)}Choose {', '.join(known)}."
        raise argparse.ArgumentError(action, text)


class CommandError(Exception):
    """Something a user can mend. Its text says what happened, where, and what to do next."""

    def __init__(self, message: str, status: int = ExitStatus.USAGE) -> None:
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


def describe(
    parser: argparse.ArgumentParser,
    *,
    examples: str = "",
    statuses: Mapping[ExitStatus, str] | None = None,
) -> None:
    """Adds to a command's help: examples, and what an exit status means there.

    `examples`: command lines; below each, what it is for. A parser of argparse itself has no place for it.
    """
    if isinstance(parser, CommandParser):
        lines = filter(None, map(str.strip, examples.splitlines()))
        parser.manual.examples |= dict(zip(lines, lines, strict=True))
        parser.manual.statuses |= statuses or {}


def reads(parser: argparse.ArgumentParser, *variables: str) -> None:
    """Adds to a command's help that these environment variables count."""
    if isinstance(parser, CommandParser):
        parser.manual.variables |= dict.fromkeys(variables)


def setting(text: str) -> tuple[str, str]:
    """Name and value of a broker's setting. Raises CommandError."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise CommandError(f"--config {text!r} is no setting. Write NAME=VALUE, as in server.properties.")
    return name.strip(), value.strip()
