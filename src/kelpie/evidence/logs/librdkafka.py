"""What librdkafka writes: "%4|1794793788.619|MAXPOLL|app#consumer-1| [thrd:main]: message".

The tag says what it is about, so each has a table of its own. Almost everything needs debug=cgrp,consumer;
MAXPOLL, SESSTMOUT, COMMITFAIL, FAIL and FATAL do not. Lines name the group, or nothing at all: then the
instance ("app#consumer-1") is known from other lines.
"""

from collections.abc import Sequence
from dataclasses import replace

from kelpie.errors import ErrorCode
from kelpie.evidence.logs.matching import Found, Message, Pattern, Table, node_in, says
from kelpie.observations import EventKind as Kind

_NEEDS_MEMBER_ID = "Group member needs a valid member ID"
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


_BY_TAG: dict[str, tuple[Pattern, ...]] = {
    "MAXPOLL": (
        says(
            Kind.POLL_INTERVAL_EXCEEDED,
            "Application maximum poll interval ({limit_ms}ms) exceeded by {over_ms}ms{*}",
            then=_paused,
        ),
    ),
    "SESSTMOUT": (
        says(
            Kind.SESSION_LOST,
            "Consumer group session timed out (in join-state {state}) after {silence_ms} ms without a "
            "successful response from the group coordinator (broker {node}, last error was {reason}): {*}",
        ),
    ),
    "CGRPCOORD": (
        says(
            Kind.LOOKUP_FAILED,
            '{broker}: Group "{group}" FindCoordinator response error: {error}',
            then=_unless_closing,
        ),
        says(Kind.COORDINATOR_FOUND, '{broker}: Group "{group}" coordinator is {address} id {node}'),
    ),
    "COORD": (
        says(Kind.COORDINATOR_LOST, 'Group "{group}": marking the coordinator ({node}) dead: {reason}'),
    ),
    "JOIN": (says(Kind.JOINING, '{broker}: Joining group "{group}" with {*} member id "{member}"'),),
    "JOINGROUP": (
        says(
            Kind.JOINED,
            "JoinGroup response: GenerationId {generation}, Protocol {protocol}, LeaderId {leader}, my "
            "MemberId {member}, member metadata count {members}: {error}",
            then=_joined,
        ),
    ),
    "ASSIGN": (
        says(
            Kind.ASSIGNED,
            'Group "{group}": new assignment of {partitions} partition(s) in join-state {*}',
        ),
    ),
    "CGRPJOINSTATE": (
        says(
            Kind.REVOKED,
            'Group "{group}" changed join state wait-unassign-call -> wait-unassign-to-complete{*}',
        ),
        says(
            Kind.REVOKED,
            'Group "{group}" changed join state wait-incr-unassign-call -> wait-incr-unassign-to-complete{*}',
        ),
    ),
    "LEAVE": (says(Kind.LEAVING, 'Group "{group}": leave (in state {state})'),),
    "HEARTBEAT": (
        says(Kind.HEARTBEAT_FAILED, 'Group "{group}" heartbeat error response in state {*}): {error}'),
    ),
    "OFFSET": (
        says(
            Kind.POSITION_RESET,
            "{tp}: offset reset (at {*}, broker {node}) to {to}: {reason}",
            then=_reset,
        ),
    ),
    "COMMIT": (
        says(
            Kind.COMMIT_FAILED,
            "{broker}: OffsetCommit for {*} partition(s) in join-state {*}: returned: {error}",
            then=_unless_success,
        ),
    ),
    "COMMITFAIL": (says(Kind.COMMIT_FAILED, "Offset commit {*} failed for {*}: {error}"),),
    "FAIL": (
        says(Kind.CONNECTION_FAILED, "{broker}: Connect to {address} failed: {reason}", then=_connection),
        says(
            Kind.NOT_AUTHORISED,
            "{broker}: SASL authentication error: {reason}",
            error=ErrorCode.SASL_AUTHENTICATION_FAILED.value,
        ),
        says(Kind.CONNECTION_FAILED, "{broker}: Failed to resolve {address}: {reason}", then=_connection),
    ),
    "FATAL": (says(Kind.FENCED, "Fatal error: {error}", then=_refused),),
    "PARTCNT": (),
}
_BY_TAG["GRPAUTH"] = _BY_TAG["ERROR"] = (says(Kind.NOT_AUTHORISED, "{error}", then=_refused),)

TABLES: dict[str, Table] = {tag: Table(patterns) for tag, patterns in _BY_TAG.items()}
TABLES["OFFSETRESET"] = TABLES["OFFSET"]
