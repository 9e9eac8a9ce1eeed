"""What kafkajs writes: JSON with one object a line, such as "[Runner] The group is rebalancing, re-joining".

Group, member and partition are values beside the message. Lines of connections name the client only.
kafkajs has no limit between polls: a member whose handler takes too long sends no heartbeat, and is told
that the coordinator does not know it.
"""

from collections.abc import Sequence
from dataclasses import replace

from kelpie.evidence.logs.matching import Meaning, Message, refused
from kelpie.evidence.logs.structured import values_of, with_values
from kelpie.evidence.logs.templates import read_templates
from kelpie.evidence.named_errors import error_in
from kelpie.observations import EventKind as Kind

_PARTS = ("Runner", "Consumer", "Connection")
_ANSWERS = {
    "Heartbeat": Kind.HEARTBEAT_FAILED,
    "SyncGroup": Kind.HEARTBEAT_FAILED,
    "OffsetCommit": Kind.COMMIT_FAILED,
    "GroupCoordinator": Kind.LOOKUP_FAILED,
    "FindCoordinator": Kind.LOOKUP_FAILED,
}
_RETRIED = ("KafkaJSNumberOfRetriesExceeded", "KafkaJSConnection")
"""After these, kafkajs starts the consumer again by itself."""


def _of_group(meaning: Meaning, message: Message) -> Sequence[Meaning]:
    told = with_values(meaning, message)
    return [told] if "group" in told.fields else []


def _of_record(meaning: Meaning, message: Message) -> Sequence[Meaning]:
    told = with_values(meaning, message)
    if "topic" not in told.fields or "offset" not in told.fields:
        return []
    stack = str(values_of(message).get("stack", "")).partition("\n")[0]
    return [replace(told, fields={**told.fields, "reason": stack or "Error when calling eachMessage"})]


def _answer(meaning: Meaning, message: Message) -> Sequence[Meaning]:
    """Errors that brokers answer; good answers are logged at DEBUG in the same words, without an error."""
    request = meaning.details.get("request", "")
    told = replace(with_values(meaning, message), details={})
    if "error" not in told.fields or message.head.level == "DEBUG":
        return []  # At DEBUG, the same error is logged a second time.
    kind = _ANSWERS.get(request)
    if request == "JoinGroup":
        return refused(told, message)
    return [] if kind is None else [replace(told, kind=kind)]


def _crash(meaning: Meaning, message: Message) -> Sequence[Meaning]:
    told = with_values(replace(meaning, details={}), message)
    reason = message.text.removeprefix("Crash: ")
    error = error_in(reason)
    fields = {**told.fields, "reason": reason} | ({} if error is None else {"error": error.value})
    told = replace(told, fields=fields)
    fatal = refused(told, message)
    if fatal or meaning.details.get("crash", "").startswith(_RETRIED):
        return fatal
    return [told]


def _connection(meaning: Meaning, message: Message) -> Sequence[Meaning]:
    values = values_of(message)
    told = with_values(meaning, message)
    details = {"broker": str(values["broker"])} if "broker" in values else {}
    return [replace(told, fields={**told.fields, "reason": message.text}, details=details)]


PATTERNS = read_templates(
    "kafkajs", (_answer, _connection, _crash, _of_group, _of_record), {"parts": _PARTS}
)[""]
