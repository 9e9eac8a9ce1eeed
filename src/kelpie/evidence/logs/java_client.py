"""What the Java consumer writes, 0.9 to 4.x, classic and KIP-848.

0.9 writes nearly everything at DEBUG and finds no words for the coordinator it found; 0.10 and 0.11 name the
group in each message; since 1.0 it is in the bracket: "[Consumer clientId=c, groupId=g] ", for static members
"[Consumer instanceId=i, clientId=c, groupId=g] ".
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from kelpie.errors import ErrorCode
from kelpie.evidence.logs.matching import Found, Message
from kelpie.evidence.logs.templates import read_templates
from kelpie.observations import EventKind as Kind

_NOT_CLIENTS = (
    "ReplicaFetcher",
    "RaftManager",
    "Controller",
    "BrokerToController",
    "NodeToController",
    "Broker",
)
_POLL_TIMEOUT = "consumer poll timeout has expired."
_LOOKUP_BODY = re.compile(
    r"\{group_id=(.*?)\}.*?responseBody=\{error_code=(-?\d{1,5}),coordinator=\{node_id=(-?\d{1,10})"
)
_ADDED = re.compile(r"Added partitions \(assigned - owned\): *(\[.*?\])")
_LOOKUP_ERROR_NONE = 0
_BY_ERROR: dict[object, Kind] = {
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: Kind.PROTOCOL_REFUSED,
    ErrorCode.GROUP_MAX_SIZE_REACHED: Kind.GROUP_FULL,
    ErrorCode.FENCED_INSTANCE_ID: Kind.FENCED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: Kind.NOT_AUTHORISED,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: Kind.NOT_AUTHORISED,
    ErrorCode.UNRELEASED_INSTANCE_ID: Kind.FENCED,
}


def _refused(found: Found, _: Message) -> Sequence[Found]:
    """The fatal errors of joining, each with its own meaning."""
    reason = str(found.fields.get("reason", ""))
    if "incompatible" in reason or "supported protocols" in reason:
        return [replace(found, fields={**found.fields, "error": ErrorCode.INCONSISTENT_GROUP_PROTOCOL.value})]
    if "max size" in reason or "maximum size" in reason:
        full = {**found.fields, "error": ErrorCode.GROUP_MAX_SIZE_REACHED.value}
        return [replace(found, kind=Kind.GROUP_FULL, fields=full)]
    kind = _BY_ERROR.get(found.fields.get("error"))
    return [replace(found, kind=kind)] if kind is not None else []


def _leaving(found: Found, _: Message) -> Sequence[Found]:
    """From 2.4 to 2.8 only the reason for leaving says that a poll came too late."""
    reason = str(found.fields.get("reason", ""))
    if reason.startswith(_POLL_TIMEOUT) and len(reason) > len(_POLL_TIMEOUT):
        return [replace(found, kind=Kind.POLL_INTERVAL_EXCEEDED), found]
    return [found]


def _lost(found: Found, _: Message) -> Sequence[Found]:
    if "session timed out" in str(found.fields.get("reason", "")):
        return [replace(found, kind=Kind.SESSION_LOST), found]
    return [found]


def _unless_empty(found: Found, _: Message) -> Sequence[Found]:
    """Up to 2.3 every first join began with the revocation of nothing."""
    return [] if found.details.get("partitions", "") in ("", "[]", "set()") else [found]


def _lookup_answer(found: Found, _: Message) -> Sequence[Found]:
    """Kafka 0.9 prints the answer as it came, and nothing else."""
    match = _LOOKUP_BODY.search(found.details.get("body", ""))
    if match is None:
        return []
    fields: dict[str, str | int] = {"group": match[1]}
    if int(match[2]) == _LOOKUP_ERROR_NONE:
        return [Found(Kind.COORDINATOR_FOUND, {**fields, "node": int(match[3])})]
    return [Found(Kind.LOOKUP_FAILED, {**fields, "error": int(match[2])})]


def _reconciled(found: Found, message: Message) -> Sequence[Found]:
    """KIP-848: what is added stands in one of the lines that follow."""
    added = _ADDED.search(message.trace)
    return (
        [replace(found, details={"partitions": added[1]})] if added is not None and added[1] != "[]" else []
    )


def _transition(found: Found, _: Message) -> Sequence[Found]:
    """KIP-848: the member's own states."""
    kind = {
        "JOINING": Kind.JOINING,
        "STABLE": Kind.JOINED,
        "FENCED": Kind.FENCED,
        "STALE": Kind.POLL_INTERVAL_EXCEEDED,
        "PREPARE_LEAVING": Kind.LEAVING,
    }.get(found.details.get("to", ""))
    return [] if kind is None else [replace(found, kind=kind)]


def _nothing(*_: object) -> Sequence[Found]:
    return []


PATTERNS = read_templates(
    "java_client",
    (
        _leaving,
        _lookup_answer,
        _lost,
        _nothing,
        _reconciled,
        _refused,
        _transition,
        _unless_empty,
    ),
    {"not_clients": _NOT_CLIENTS},
)[""]
