"""What Sarama writes: Go's standard logger, "[sarama] 2026/11/15 20:56:40 client/coordinator …".

It logs nothing unless sarama.Logger is set. Errors of brokers are sentences ("kafka server: The provided
member is not known in the current generation"); `named_errors` knows them. Sarama has no limit between
polls: heartbeats go on while a handler is busy.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from kelpie.errors import ErrorCode
from kelpie.evidence.logs.matching import Meaning, Message, refused
from kelpie.evidence.logs.templates import read_templates
from kelpie.evidence.named_errors import error_in
from kelpie.observations import EventKind as Kind

_NUMBER = re.compile(r"\d{1,9}\Z")
_KINDS = {
    ErrorCode.OFFSET_OUT_OF_RANGE: Kind.OUT_OF_RANGE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: Kind.LOOKUP_FAILED,
    ErrorCode.NOT_COORDINATOR: Kind.LOOKUP_FAILED,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: Kind.LOOKUP_FAILED,
    ErrorCode.UNKNOWN_MEMBER_ID: Kind.HEARTBEAT_FAILED,
    ErrorCode.ILLEGAL_GENERATION: Kind.HEARTBEAT_FAILED,
    ErrorCode.REBALANCE_IN_PROGRESS: Kind.HEARTBEAT_FAILED,
    ErrorCode.OFFSET_METADATA_TOO_LARGE: Kind.COMMIT_FAILED,
    ErrorCode.INVALID_COMMIT_OFFSET_SIZE: Kind.COMMIT_FAILED,
}


def _by_error(meaning: Meaning, message: Message) -> Sequence[Meaning]:
    """One text for everything that went wrong: the error says what it was.

    With a partition named, errors of membership are those of a commit; without, of a heartbeat.
    """
    details = dict(meaning.details)
    topic, number = details.pop("topic", ""), details.pop("number", "")
    fields = dict(meaning.fields)
    if topic and _NUMBER.match(number):
        fields |= {"topic": topic, "partition": int(number)}
    error = error_in(str(fields.get("reason", "")))
    if error is None:
        return []
    told = replace(meaning, fields={**fields, "error": error.value}, details=details)
    kind = _KINDS.get(error)
    if kind is None:
        return refused(told, message)
    if kind in (Kind.HEARTBEAT_FAILED, Kind.LOOKUP_FAILED) and topic:
        kind = Kind.COMMIT_FAILED
    return [replace(told, kind=kind)]


PATTERNS = read_templates("sarama", (_by_error,))[""]
