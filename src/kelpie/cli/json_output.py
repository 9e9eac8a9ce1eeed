"""The option --json, and the one way in which commands print JSON.

Only ASCII is written, so that names of any kind survive any terminal and any file.
"""

import argparse
import json

from kelpie.cli.command import CommandParser, option
from kelpie.model.repeated import Repeated

_text = json.encoder.encode_basestring_ascii


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
    print(indented(document), flush=True)


def indented(document: object) -> str:
    """As json.dumps with indent=2, which is written in Python, too, and yields each bracket by itself: that
    takes half as long again for a diagnosis of thousands of groups.
    """
    return _indented(document, "\n", {})


_Written = dict[tuple[int, str], str]
"""The texts of parts that stand there many times, by id and by how far they are indented."""


def _indented(value: object, line: str, written: _Written) -> str:
    """`line`: the end of a line, and how far the next one is indented. Most values are texts, or null: these
    are written without a call of this function.
    """
    if type(value) is Repeated:
        text = written.get((id(value), line))
        if text is None:
            text = written[id(value), line] = _indented({**value}, line, written)
        return text
    within = line + "  "
    if isinstance(value, dict):
        parts = [
            f"{_text(name) if type(name) is str else _key(name)}: "
            + (
                _text(each)
                if type(each) is str
                else "null"
                if each is None
                else _indented(each, within, written)
            )
            for name, each in value.items()
        ]
        return f"{{{within}{f',{within}'.join(parts)}{line}}}" if parts else "{}"
    if isinstance(value, list | tuple):
        parts = [_text(each) if type(each) is str else _indented(each, within, written) for each in value]
        return f"[{within}{f',{within}'.join(parts)}{line}]" if parts else "[]"
    return repr(value) if type(value) is int else json.dumps(value)


def _key(name: object) -> str:
    return json.dumps({name: 0})[1:-4]


def print_json_line(document: object) -> None:
    """One of several documents, each on a line of its own."""
    print(json.dumps(document), flush=True)
