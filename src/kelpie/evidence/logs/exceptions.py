"""Exceptions that applications log in their own words, with Kafka's class names in them."""

import re
from collections.abc import Sequence

from kelpie.evidence.logs.matching import Meaning, Message
from kelpie.evidence.named_errors import error_in
from kelpie.observations import EventKind as Kind

_KINDS = {
    "GroupAuthorizationException": Kind.NOT_AUTHORISED,
    "TopicAuthorizationException": Kind.NOT_AUTHORISED,
    "SaslAuthenticationException": Kind.NOT_AUTHORISED,
    "FencedInstanceIdException": Kind.FENCED,
    "InconsistentGroupProtocolException": Kind.PROTOCOL_REFUSED,
    "GroupMaxSizeReachedException": Kind.GROUP_FULL,
    "CommitFailedException": Kind.COMMIT_FAILED,
    "OffsetOutOfRangeException": Kind.OUT_OF_RANGE,
    "NoOffsetForPartitionException": Kind.NO_COMMITTED_OFFSET,
    "LogTruncationException": Kind.TRUNCATION_DETECTED,
}
NAMES = tuple(_KINDS)
_CLASS = re.compile(r"\b(" + "|".join(_KINDS) + r")\b(?:: (?P<why>[^\n]*))?")
_GROUP = re.compile(r"Not authorized to access group: (\S+)")


def find_exception(message: Message) -> Sequence[Meaning] | None:
    """What an exception says, in the message or in the lines that belong to it."""
    text = f"{message.text}\n{message.trace}" if message.trace else message.text
    if "Exception" not in text:
        return None
    match = _CLASS.search(text)
    if match is None:
        return None
    fields: dict[str, str | int] = {}
    if match["why"]:
        fields["reason"] = match["why"]
    error = error_in(match[0])
    if error is not None:
        fields["error"] = error.value
    group = _GROUP.search(text)
    if group is not None:
        fields["group"] = group[1]
    return [Meaning(_KINDS[match[1]], fields)]
