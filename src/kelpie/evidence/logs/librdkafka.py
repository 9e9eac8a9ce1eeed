"""What librdkafka writes: "%4|1794793788.619|MAXPOLL|app#consumer-1| [thrd:main]: message".

The tag says what it is about, so each has a table of its own. Almost everything needs debug=cgrp,consumer;
MAXPOLL, SESSTMOUT, COMMITFAIL, FAIL and FATAL do not. Lines name the group, or nothing at all: then the
instance ("app#consumer-1") is known from other lines.
"""

from collections.abc import Sequence
from dataclasses import replace

from kelpie.errors import ErrorCode
from kelpie.evidence.logs.matching import Found, Message, Table, node_in
from kelpie.evidence.logs.templates import read_templates
from kelpie.observations import EventKind as Kind

_REFUSALS = {
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL.value: Kind.PROTOCOL_REFUSED,
    ErrorCode.GROUP_MAX_SIZE_REACHED.value: Kind.GROUP_FULL,
    ErrorCode.FENCED_INSTANCE_ID.value: Kind.FENCED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED.value: Kind.NOT_AUTHORISED,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED.value: Kind.NOT_AUTHORISED,
}


def _paused(found: Found, _: Message) -> Sequence[Found]:
    pause = int(found.details["limit_ms"]) + int(found.details["over_ms"])
    return [replace(found, details={**found.details, "pause_ms": str(pause)})]


def _joined(found: Found, _: Message) -> Sequence[Found]:
    """The answer to JoinGroup, good or bad."""
    outcome = str(found.fields.get("reason", ""))
    if outcome in ("(no error)", "Success"):
        fields = {name: value for name, value in found.fields.items() if name not in ("reason", "error")}
        return [replace(found, fields=fields)]
    kind = _REFUSALS.get(int(found.fields.get("error", 0)))
    return [] if kind is None else [replace(found, kind=kind)]


def _unless_success(found: Found, _: Message) -> Sequence[Found]:
    return [] if str(found.fields.get("reason", "")).startswith("Success") else [found]


def _unless_closing(found: Found, _: Message) -> Sequence[Found]:
    """A bootstrap connection that became a broker's own one takes its requests along: that is no failure."""
    return [] if str(found.fields.get("reason", "")).startswith("_DESTROY") else [found]


def _reset(found: Found, message: Message) -> Sequence[Found]:
    if "no previously committed offset" in message.text:
        return [replace(found, kind=Kind.NO_COMMITTED_OFFSET), found]
    if found.fields.get("error") == ErrorCode.OFFSET_OUT_OF_RANGE:
        return [replace(found, kind=Kind.OUT_OF_RANGE), found]
    return [found]


def _refused(found: Found, _: Message) -> Sequence[Found]:
    kind = _REFUSALS.get(int(found.fields.get("error", 0)))
    return [] if kind is None else [replace(found, kind=kind)]


def _connection(found: Found, _: Message) -> Sequence[Found]:
    """The broker is called "127.0.0.1:9092/2", or "GroupCoordinator"."""
    node = node_in(found.details.get("broker", "").rpartition("/")[2])
    return [found if node is None else replace(found, fields={**found.fields, "node": node})]


TABLES: dict[str, Table] = {
    tag: Table(patterns)
    for tag, patterns in read_templates(
        "librdkafka", (_connection, _joined, _paused, _refused, _reset, _unless_closing, _unless_success)
    ).items()
}
TABLES["ERROR"], TABLES["OFFSETRESET"] = TABLES["GRPAUTH"], TABLES["OFFSET"]
