"""Reads tables of templates: `messages/NAME.txt` holds one log message per line, as its author wrote it.

    # A comment.
    [TAG]                                  librdkafka: the messages below have this tag
    KIND: message with {holes}
    KIND; error=NOT_COORDINATOR; then=lost: message

Before the first ": " stands what the message means: a kind of event, then options of `matching.pattern`:
`error` is one of Kafka's codes by name, `reason` a text. `then` names a function, `within` and
`not_within` name a tuple of texts: the module that reads the table passes them.
"""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from kelpie.errors import ErrorCode
from kelpie.evidence.logs.matching import Also, Pattern, pattern
from kelpie.observations import EventKind


def read_templates(
    name: str, then: Sequence[Also] = (), places: Mapping[str, tuple[str, ...]] | None = None
) -> dict[str, tuple[Pattern, ...]]:
    """The patterns of a table by tag; "" is the tag of messages above the first one.

    `then`: functions, each found by its name without the underscore. `places`: tuples for `within`.
    """
    functions = {function.__name__.lstrip("_"): function for function in then}
    text = files(__package__).joinpath("messages", f"{name}.txt").read_text(encoding="utf-8")
    patterns: dict[str, list[Pattern]] = {}
    tag = ""
    for line in text.splitlines():
        if line.startswith("["):
            tag = line.strip("[]")
            patterns[tag] = []
        elif line and not line.startswith("#"):
            meaning, _, template = line.partition(": ")
            kind, *options = meaning.split("; ")
            given = _options(options, functions, places or {})
            patterns.setdefault(tag, []).append(pattern(EventKind[kind], template, **given))
    return {tag: tuple(rows) for tag, rows in patterns.items()}


def _options(
    options: Sequence[str], functions: Mapping[str, Also], places: Mapping[str, tuple[str, ...]]
) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for option in options:
        name, _, value = option.partition("=")
        match name:
            case "then":
                given[name] = functions[value]
            case "within" | "not_within":
                given[name] = places[value]
            case "error":
                given[name] = ErrorCode[value].value
            case _:
                given[name] = value
    return given
