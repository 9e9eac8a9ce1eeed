"""What librdkafka writes: "%4|1794793788.619|MAXPOLL|app#consumer-1| [thrd:main]: message".

The tag says what it is about, so each has a table of its own. Almost everything needs debug=cgrp,consumer;
MAXPOLL, SESSTMOUT, COMMITFAIL, FAIL and FATAL do not. Lines name the group, or nothing at all: then the
instance ("app#consumer-1") is known from other lines.
"""

from collections.abc import Sequence
from dataclasses import replace

from kelpie.errors import ErrorCode
from kelpie.evidence.logs.matching import Meaning, Message, TemplateTable, node_in, refused
from kelpie.evidence.logs.templates import read_templates
from kelpie.observations import EventKind as Kind


def _paused(meaning: Meaning, _: Message) -> Sequence[Meaning]:
    pause = int(meaning.details["limit_ms"]) + int(meaning.details["over_ms"])
    return [replace(meaning, details={**meaning.details, "pause_ms": str(pause)})]


def _joined(meaning: Meaning, message: Message) -> Sequence[Meaning]:
    """The answer to JoinGroup, good or bad."""
    outcome = str(meaning.fields.get("reason", ""))
    if outcome in ("(no error)", "Success"):
        fields = {name: value for name, value in meaning.fields.items() if name not in ("reason", "error")}
        return [replace(meaning, fields=fields)]
    return refused(meaning, message)


def _fatal(meaning: Meaning, message: Message) -> Sequence[Meaning]:
    """Whatever it is: after a fatal error this instance does nothing any more."""
    return refused(meaning, message) or [meaning]


def _unless_success(meaning: Meaning, _: Message) -> Sequence[Meaning]:
    return [] if str(meaning.fields.get("reason", "")).startswith("Success") else [meaning]


def _unless_closing(meaning: Meaning, _: Message) -> Sequence[Meaning]:
    """A bootstrap connection that became a broker's own one takes its requests along: that is no failure."""
    return [] if str(meaning.fields.get("reason", "")).startswith("_DESTROY") else [meaning]


def _reset(meaning: Meaning, message: Message) -> Sequence[Meaning]:
    if "no previously committed offset" in message.text:
        return [replace(meaning, kind=Kind.NO_COMMITTED_OFFSET), meaning]
    if meaning.fields.get("error") == ErrorCode.OFFSET_OUT_OF_RANGE:
        return [replace(meaning, kind=Kind.OUT_OF_RANGE), meaning]
    return [meaning]


def _connection(meaning: Meaning, _: Message) -> Sequence[Meaning]:
    """The broker is called "127.0.0.1:9092/2", or "GroupCoordinator"."""
    node = node_in(meaning.details.get("broker", "").rpartition("/")[2])
    return [meaning if node is None else replace(meaning, fields={**meaning.fields, "node": node})]


TABLES: dict[str, TemplateTable] = {
    tag: TemplateTable(patterns)
    for tag, patterns in read_templates(
        "librdkafka",
        (_connection, _fatal, _joined, _paused, refused, _reset, _unless_closing, _unless_success),
    ).items()
}
TABLES["ERROR"], TABLES["OFFSETRESET"] = TABLES["GRPAUTH"], TABLES["OFFSET"]
