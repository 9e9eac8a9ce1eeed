"""Pages of the documentation that are made of the commands themselves: `python -m kelpie.cli.reference docs`.

docs/commands.md (every command, every option), docs/exit-codes.md, docs/schemas/ (what --json prints), and
the list of environment variables in docs/configuration.md, between two comments.
"""

import argparse
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from kelpie.cli import parser
from kelpie.cli.catalogue import CATALOGUE
from kelpie.cli.command import CommandParser
from kelpie.cli.environment import VARIABLES
from kelpie.cli.exit_status import OF_EVERY_COMMAND, ExitStatus
from kelpie.cli.manual import ManualFormatter
from kelpie.documents.schemas import DECLARED, schema_of

_MADE = "Made from the commands themselves by `python -m kelpie.cli.reference docs`."
_VARIABLES = re.compile(r"(<!-- variables[^\n]*-->\n).*?(<!-- end of variables -->)", re.DOTALL)


def leaves(of: CommandParser) -> Iterator[CommandParser]:
    """The parsers below it that run something."""
    below = [action for action in of._actions if isinstance(action, argparse._SubParsersAction)]
    if not below:
        yield of
    for action in below:
        for name in action.choices:
            yield from leaves(action.choices[name])


def commands_page() -> str:
    all_commands = {command: list(leaves(one)) for command, one in _commands().items()}
    lines = ["# Commands", "", _MADE, "`kelpie COMMAND --help` shows the same in a terminal.", ""]
    for title, commands in CATALOGUE.items():
        lines += [f"**{title}**", ""]
        for name, summary in commands.items():
            links = [f"[{leaf.prog}](#{leaf.prog.replace(' ', '-')})" for leaf in all_commands[name]]
            lines.append(f"- {', '.join(links)}: {_text(summary)}")
        lines.append("")
    for parsers in all_commands.values():
        for leaf in parsers:
            lines += _section(leaf)
    return "\n".join(lines)


def exit_codes_page() -> str:
    lines = ["# Exit codes", "", _MADE, ""]
    lines += ["| code | name | meaning |", "|---|---|---|"]
    lines += [f"| {int(status)} | {status.name} | {status.meaning} |" for status in ExitStatus]
    every = ", ".join(str(int(status)) for status in OF_EVERY_COMMAND)
    lines += [
        "",
        f"{every} can come from every command, and mean the same for all. The others, by command:",
        "",
    ]
    lines += ["| command | code | meaning |", "|---|---|---|"]
    for command in _commands().values():
        for leaf in leaves(command):
            for status, meaning in leaf.manual.statuses.items():
                lines.append(f"| `{leaf.prog}` | {int(status)} | {meaning} |")
    return "\n".join([*lines, ""])


def schema_files() -> dict[str, str]:
    """The files of docs/schemas/ that are made of declarations."""
    return {
        f"{name}.json": json.dumps(schema_of(name), indent=2, ensure_ascii=False) + "\n" for name in DECLARED
    }


def with_variables(page: str) -> str:
    """The page of the configuration, with the list of variables as it is now."""
    lines = ["| variable | meaning |", "|---|---|"]
    lines += [f"| `{name}` | {meaning} |" for name, meaning in VARIABLES.items()]
    return _VARIABLES.sub(lambda found: f"{found[1]}{chr(10).join(lines)}\n{found[2]}", page)


def _commands() -> dict[str, CommandParser]:
    whole = parser()
    below = next(action for action in whole._actions if isinstance(action, argparse._SubParsersAction))
    return dict(below.choices)


def _section(leaf: CommandParser) -> list[str]:
    lines = [f"## {leaf.prog}", "", "```", leaf.format_usage().removeprefix("usage: ").rstrip(), "```", ""]
    lines += [_text(leaf.description or ""), ""]
    formatter = ManualFormatter(leaf.prog)
    rows = []
    for action in leaf._actions:
        if action.help is not argparse.SUPPRESS and action.dest != "help":
            text = formatter._expand_help(action) if action.help else ""
            rows.append(f"| `{formatter._format_action_invocation(action)}` | {_text(text)} |")
    if rows:
        lines += ["| option | |", "|---|---|", *rows, ""]
    manual = leaf.manual
    if manual.examples:
        lines += ["```"]
        lines += [f"$ {line}\n    {meaning}" for line, meaning in manual.examples.items()]
        lines += ["```", ""]
    if manual.variables:
        names = ", ".join(f"`{name}`" for name in manual.variables)
        lines += [f"[Environment](configuration.md#environment): {names}.", ""]
    if manual.schemas:
        names = ", ".join(f"[{name}.json](schemas/{name}.json)" for name in manual.schemas)
        lines += [f"[Schema](schemas/index.md) of `--json`: {names}.", ""]
    statuses = "; ".join(f"{int(status)} {meaning}" for status, meaning in manual.statuses.items())
    return [*lines, f"[Exit codes](exit-codes.md): {statuses}.", ""]


def _text(text: str) -> str:
    """As Markdown shows it, in tables too."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("__", "\\_\\_").replace("*", "\\*")


def write(docs: Path) -> None:
    (docs / "commands.md").write_text(commands_page(), encoding="utf-8")
    (docs / "exit-codes.md").write_text(exit_codes_page(), encoding="utf-8")
    for name, text in schema_files().items():
        (docs / "schemas" / name).write_text(text, encoding="utf-8")
    configuration = docs / "configuration.md"
    configuration.write_text(with_variables(configuration.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    os.environ["COLUMNS"] = "80"
    write(Path(sys.argv[1]))
