"""The option --json, and the one way in which commands print JSON.

Only ASCII is written, so that names of any kind survive any terminal and any file.
"""

import argparse
import json

from kelpie.cli.command import CommandParser, option


def add_json_option(
    parser: argparse.ArgumentParser,
    schema: str,
    text: str = "print JSON",
    *,
    among: "argparse._ActionsContainer | None" = None,
) -> None:
    """`schema`: the file in docs/schemas/ that describes it. `among`: the group of options that it is in."""
    option(among or parser, "--json", f"{text}; schemas/{schema}.json of the documentation describes it")
    also_prints(parser, schema)


def also_prints(parser: argparse.ArgumentParser, schema: str) -> None:
    """Notes another document that --json prints, depending on other options."""
    if isinstance(parser, CommandParser):
        parser.manual.schemas.append(schema)


def print_json(document: object) -> None:
    print(json.dumps(document, indent=2), flush=True)


def print_json_line(document: object) -> None:
    """One of several documents, each on a line of its own."""
    print(json.dumps(document), flush=True)
