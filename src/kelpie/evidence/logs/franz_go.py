"""What franz-go (kgo) writes, through its own logger, slog, zap or another: the text is the same.

It logs nothing unless it is given a logger. Group, member and error are names and values beside the text.
A member that was away too long is told by its heartbeat: UNKNOWN_MEMBER_ID.
"""

from collections.abc import Sequence
from dataclasses import replace

from kelpie.errors import ErrorCode
from kelpie.evidence.logs.matching import Meaning, Message, node_in, refused
from kelpie.evidence.logs.structured import values_of, with_values
from kelpie.evidence.logs.templates import read_templates
from kelpie.observations import EventKind as Kind

_LEFT = "context canceled"
"""The error of a consumer that leaves its group: no failure."""
_OF_LOOKUP = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)
_OF_MEMBERSHIP = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS)


def _of_group(meaning: Meaning, message: Message) -> Sequence[Meaning]:
    """Other programs write "joined", too: only what names a group is franz-go's."""
    told = with_values(meaning, message)
    return [told] if "group" in told.fields else []


def _heartbeat(meaning: Meaning, message: Message) -> Sequence[Meaning]:
    told = _of_group(meaning, message)
    return [each for each in told if _LEFT not in str(each.fields.get("reason", ""))]


def _failed(meaning: Meaning, message: Message) -> Sequence[Meaning]:
    """Joining failed: what it means is in the error."""
    for told in _heartbeat(meaning, message):
        error = told.fields.get("error")
        if error in _OF_LOOKUP:
            return [told]
        if error in _OF_MEMBERSHIP:
            return [replace(told, kind=Kind.HEARTBEAT_FAILED)]
        return refused(told, message)
    return []


def _of_partition(meaning: Meaning, message: Message) -> Sequence[Meaning]:
    told = with_values(meaning, message)
    return [told] if "topic" in told.fields else []


def _connection(meaning: Meaning, message: Message) -> Sequence[Meaning]:
    """A broker is called by its number; bootstrap addresses are "seed_0" and so on."""
    values = values_of(message)
    if "addr" not in values:
        return []
    told = with_values(meaning, message)
    node = node_in(str(values.get("broker", values.get("id", ""))))
    return [told if node is None or node < 0 else replace(told, fields={**told.fields, "node": node})]


PATTERNS = read_templates("franz_go", (_connection, _failed, _heartbeat, _of_group, _of_partition))[""]
