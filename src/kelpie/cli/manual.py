"""The help of a command, as a manual page has it: usage, options, environment, exit status, examples."""

import argparse
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kelpie.cli.environment import VARIABLES
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.terminal import text_width
from kelpie.model.cells import fill, wrap

_MOST_INDENT = 26


@dataclass(slots=True)
class Manual:
    """What a command's help says besides its options."""

    examples: dict[str, str] = field(default_factory=dict)
    """Command lines, each with what it is for."""
    statuses: dict[ExitStatus, str] = field(default_factory=dict)
    variables: dict[str, None] = field(default_factory=dict)
    schemas: list[str] = field(default_factory=list)
    """Of what --json prints: files in docs/schemas/."""

    def text(self) -> str:
        sections = [
            self._section("environment", {name: VARIABLES[name] for name in self.variables}),
            self._section("exit status", {str(int(status)): text for status, text in self.statuses.items()}),
            self._examples(),
        ]
        return "".join(f"\n{section}\n" for section in sections if section)

    @staticmethod
    def _section(title: str, rows: Mapping[str, str]) -> str:
        return "\n".join([f"{title}:", *columns(rows)]) if rows else ""

    def _examples(self) -> str:
        width = text_width()
        lines = [f"  {line}\n{fill(text, width, ' ' * 6, ' ' * 6)}" for line, text in self.examples.items()]
        return "\n".join(["examples:", *lines]) if lines else ""


def columns(rows: Mapping[str, str]) -> Iterable[str]:
    """Names and texts beside each other. A name that is too long has a line of its own."""
    width = text_width()
    indent = min(_MOST_INDENT, max(map(len, rows)) + 4)
    for name, text in rows.items():
        head = f"  {name}"
        if len(head) + 2 > indent:
            yield head
            head = ""
        yield fill(text, width, head.ljust(indent), " " * indent)


class ManualFormatter(argparse.HelpFormatter):
    """As wide as the terminal, with a usage that is one line: options are listed below it anyway."""

    def __init__(self, prog: str, **named: Any) -> None:
        super().__init__(prog, **{"max_help_position": _MOST_INDENT, "width": text_width(), **named})

    def _format_usage(
        self,
        usage: str | None,
        actions: Iterable[argparse.Action],
        groups: Iterable[Any],
        prefix: str | None,
    ) -> str:
        words = [usage % {"prog": self._prog}] if usage is not None else self._words(list(actions), groups)
        head = "usage: " if prefix is None else prefix
        return fill(" ".join(words), self._width, head, " " * len(head)) + "\n\n"

    def _words(self, actions: list[argparse.Action], groups: Iterable[Any]) -> list[str]:
        """The program, what must be given, and its arguments."""
        words = [self._prog]
        needed = [group for group in groups if group.required]
        grouped = {id(action) for group in needed for action in group._group_actions}
        optional = [action for action in actions if action.option_strings]
        others = [action for action in optional if not action.required and id(action) not in grouped]
        if any(action.dest != "help" for action in others):
            words.append("[options]")
        words += [self._option(action) for action in optional if action.required]
        words += [f"({' | '.join(map(self._option, group._group_actions))})" for group in needed]
        for action in actions:
            if not action.option_strings and action.help is not argparse.SUPPRESS:
                words.append(self._format_args(action, self._get_default_metavar_for_positional(action)))
        return words

    def _format_action_invocation(self, action: argparse.Action) -> str:
        """The value once, behind the last name: "-b, --bootstrap-server HOST:PORT"."""
        if not action.option_strings:
            return super()._format_action_invocation(action)
        return ", ".join([*action.option_strings[:-1], self._option(action)])

    def _split_lines(self, text: str, width: int) -> list[str]:
        return wrap(text, width)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return fill(text, width, indent, indent)

    def _option(self, action: argparse.Action) -> str:
        name = action.option_strings[-1]
        if action.nargs == 0:
            return name
        return f"{name} {self._format_args(action, self._get_default_metavar_for_optional(action))}"
