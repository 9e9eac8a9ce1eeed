"""What the Java consumer writes, 0.9 to 4.x, classic and KIP-848.

0.9 writes nearly everything at DEBUG and does not name the coordinator that it found. 0.10 and 0.11 name
the group in each message; since 1.0 it is in the bracket: "[Consumer clientId=c, groupId=g] ", for static
members "[Consumer instanceId=i, clientId=c, groupId=g] ".
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from kelpie.errors import ErrorCode
from kelpie.evidence.logs.matching import Meaning, Message, refused
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
_LOOKUP_ANSWER = re.compile(r"responseBody=\{error_code=(-?\d{1,5}),coordinator=\{node_id=(-?\d{1,10})")
_ADDED = re.compile(r"Added partitions \(assigned - owned\): *(\[[^\[\]]*\])")
_LOOKUP_ERROR_NONE = 0


def _refused(meaning: Meaning, message: Message) -> Sequence[Meaning]:
    """The fatal errors of joining, each with its own meaning."""
    reason = str(meaning.fields.get("reason", ""))
    if "incompatible" in reason or "supported protocols" in reason:
        error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL.value
        return [replace(meaning, fields={**meaning.fields, "error": error})]
    if "max size" in reason or "maximum size" in reason:
        full = {**meaning.fields, "error": ErrorCode.GROUP_MAX_SIZE_REACHED.value}
        return [replace(meaning, kind=Kind.GROUP_FULL, fields=full)]
    if meaning.fields.get("error") == ErrorCode.UNRELEASED_INSTANCE_ID:
        return [replace(meaning, kind=Kind.FENCED)]
    return refused(meaning, message)


def _leaving(meaning: Meaning, _: Message) -> Sequence[Meaning]:
    """From 2.4 to 2.8 only the reason for leaving says that a poll came too late."""
    reason = str(meaning.fields.get("reason", ""))
    if reason.startswith(_POLL_TIMEOUT) and len(reason) > len(_POLL_TIMEOUT):
        return [replace(meaning, kind=Kind.POLL_INTERVAL_EXCEEDED), meaning]
    return [meaning]


def _lost(meaning: Meaning, _: Message) -> Sequence[Meaning]:
    if "session timed out" in str(meaning.fields.get("reason", "")):
        return [replace(meaning, kind=Kind.SESSION_LOST), meaning]
    return [meaning]


def _unless_empty(meaning: Meaning, _: Message) -> Sequence[Meaning]:
    """Up to 2.3 every first join began with the revocation of nothing."""
    return [] if meaning.details.get("partitions", "") in ("", "[]", "set()") else [meaning]


def _lookup_answer(meaning: Meaning, _: Message) -> Sequence[Meaning]:
    """Kafka 0.9 prints the answer as it came, and nothing else."""
    group, _brace, answer = meaning.details.get("body", "").partition("{group_id=")[2].partition("}")
    match = _LOOKUP_ANSWER.search(answer)
    if match is None:
        return []
    fields: dict[str, str | int] = {"group": group}
    if int(match[1]) == _LOOKUP_ERROR_NONE:
        return [Meaning(Kind.COORDINATOR_FOUND, {**fields, "node": int(match[2])})]
    return [Meaning(Kind.LOOKUP_FAILED, {**fields, "error": int(match[1])})]


def _reconciled(meaning: Meaning, message: Message) -> Sequence[Meaning]:
    """KIP-848: what is added stands in one of the lines that follow."""
    added = _ADDED.search(message.trace)
    return (
        [replace(meaning, details={"partitions": added[1]})] if added is not None and added[1] != "[]" else []
    )


def _transition(meaning: Meaning, _: Message) -> Sequence[Meaning]:
    """KIP-848: the member's own states."""
    kind = {
        "JOINING": Kind.JOINING,
        "STABLE": Kind.JOINED,
        "FENCED": Kind.FENCED,
        "FATAL": Kind.CLIENT_FAILED,
        "STALE": Kind.POLL_INTERVAL_EXCEEDED,
        "PREPARE_LEAVING": Kind.LEAVING,
    }.get(meaning.details.get("to", ""))
    return [] if kind is None else [replace(meaning, kind=kind)]


def _nothing(*_: object) -> Sequence[Meaning]:
    return []


PATTERNS = read_templates(
    "java_client",
    (_leaving, _lookup_answer, _lost, _nothing, _reconciled, _refused, _transition, _unless_empty),
    {"not_clients": _NOT_CLIENTS},
)[""]
