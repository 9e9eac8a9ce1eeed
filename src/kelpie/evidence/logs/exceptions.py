"""Exceptions that applications log in their own words, with Kafka's class names in them."""

import re
from collections.abc import Sequence

from kelpie.evidence.logs.matching import Meaning, Message, partition_in
from kelpie.evidence.logs.zookeeper_consumer import about
from kelpie.evidence.named_errors import error_in
from kelpie.observations import EventKind as Kind

_KINDS = {
    "GroupAuthorizationException": Kind.NOT_AUTHORISED,
    "TopicAuthorizationException": Kind.NOT_AUTHORISED,
    "SaslAuthenticationException": Kind.NOT_AUTHORISED,
    "FencedInstanceIdException": Kind.FENCED,
    "InconsistentGroupProtocolException": Kind.PROTOCOL_REFUSED,
    "GroupMaxSizeReachedException": Kind.GROUP_FULL,
    "InvalidSessionTimeoutException": Kind.SESSION_TIMEOUT_REFUSED,
    "CommitFailedException": Kind.COMMIT_FAILED,
    "OffsetOutOfRangeException": Kind.OUT_OF_RANGE,
    "NoOffsetForPartitionException": Kind.NO_COMMITTED_OFFSET,
    "LogTruncationException": Kind.TRUNCATION_DETECTED,
    "ConsumerRebalanceFailedException": Kind.REBALANCE_FAILED,
}
NAMES = (
    *_KINDS,
    "Error deserializing",
    "Record for partition ",
    "Record batch for partition ",
    "Exception caught during Deserialization",
    "[Partition=Offset]",
    " with version in range [",
    "The broker is too ",
    " exhausted for ",
    "Exception caught in process. taskId=",
)
"""One of these is in each entry that means something here."""
_CLASS = re.compile(r"\b(" + "|".join(_KINDS) + r")\b(?:: (?P<why>[^\n]*))?")
_GROUP = re.compile(r"Not authorized to access group: (\S+)")
REBALANCE_FAILED = re.compile(r"(?P<member>\S+) can't rebalance after (?P<retries>\d{1,9}) retries")
_UNREADABLE = re.compile(
    r"Error deserializing (?:key/value|KEY|VALUE|key|value) for partition (?P<java>\S+?-\d{1,9}) at offset "
    r"(?P<java_offset>\d{1,19})"
    r"|Record (?:batch )?for partition (?P<corrupt>\S+?-\d{1,9}) at offset "
    r"(?P<corrupt_offset>\d{1,19}) is invalid"
    r"|Exception caught during Deserialization, (?:taskId: \S+, )?topic: (?P<topic>\S+), partition: "
    r"(?P<partition>\d{1,9}), offset: (?P<streams_offset>\d{1,19})"
    r"|Exception caught in process\. taskId=\S+, processor=[^\n]{0,200}?, topic=(?P<processed>[^\s,]+), "
    r"partition=(?P<processed_partition>\d{1,9}), offset=(?P<processed_offset>\d{1,19})"
    r"|messages at \[Partition=Offset\]: \{(?P<large>[^\s,=]+?-\d{1,9})=(?P<large_offset>\d{1,19})"
    r"|exhausted for (?P<spring>\S+?-\d{1,9})@(?P<spring_offset>\d{1,19})"
    r"|exhausted for ConsumerRecord\(topic = (?P<record>[^\s,]+), partition = (?P<record_partition>\d{1,9}), "
    r"(?:leaderEpoch = -?\w{1,10}, )?offset = (?P<record_offset>\d{1,19})"
)
"""A record that the Java consumer, Kafka Streams or the error handler of Spring could not get over."""
_VERSIONS = re.compile(
    r"does not support (?P<request>\w+) with version in range \[(?P<client>\d{1,4},\d{1,4})\]\. "
    r"The supported range is \[(?P<broker>\d{1,4},\d{1,4})\]"
)
_VERSION = re.compile(
    r"The broker is too (?P<age>new|old) to support (?P<request>\w+) version (?P<version>\d{1,4})"
)
"""Of clients of 0.10.2: the newest version of the client, or the oldest, is outside of the broker's."""
_FORMS = {
    "error during syncedRebalance": "watcher",
    "Error handling event ZkEvent[New session event": "new session",
}
"""How the entry begins in which the consumer of 0.8 logs that it gave up, and which thread it was then."""
_START_UP = "start-up"


def find_exception(message: Message) -> Sequence[Meaning] | None:
    """What an exception says, in the message or in the lines that belong to it."""
    text = f"{message.text}\n{message.trace}" if message.trace else message.text
    if "Exception" not in text:
        return None
    unreadable = _UNREADABLE.search(text)
    if unreadable is not None:
        return [_record_unreadable(unreadable)]
    versions = _VERSIONS.search(text)
    if versions is not None:
        found = {name: value.replace(",", " to ") for name, value in versions.groupdict().items()}
        return [Meaning(Kind.VERSION_UNSUPPORTED, {"reason": versions[0]}, found)]
    version = _VERSION.search(text)
    if version is not None:
        side = "newest" if version["age"] == "new" else "oldest"
        found = {"request": version["request"], side: version["version"]}
        return [Meaning(Kind.VERSION_UNSUPPORTED, {"reason": version[0]}, found)]
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
    kind = _KINDS[match[1]]
    if kind is Kind.REBALANCE_FAILED:
        return [_rebalance_failed(message, match["why"] or "", fields)]
    return [Meaning(kind, fields)]


def _record_unreadable(match: re.Match[str]) -> Meaning:
    """Which record it is."""
    offset = next(match[name] for name in match.groupdict() if name.endswith("offset") and match[name])
    named = match["java"] or match["corrupt"] or match["large"] or match["spring"]
    streams = f"{match['topic']}-{match['partition']}"
    for topic in ("processed", "record"):
        if match[topic]:
            streams = f"{match[topic]}-{match[f'{topic}_partition']}"
    name = named or streams
    fields = {**partition_in(name), "offset": int(offset), "reason": match[0]}
    return Meaning(Kind.RECORD_UNREADABLE, fields)


def _rebalance_failed(message: Message, why: str, fields: dict[str, str | int]) -> Meaning:
    """Who gave up, after how many tries, and in which thread. At start-up the application logs it."""
    form = next((form for begin, form in _FORMS.items() if message.text.startswith(begin)), _START_UP)
    details = {"form": form}
    match = REBALANCE_FAILED.match(why)
    if match is not None:
        fields |= about(match["member"])
        details["retries"] = match["retries"]
    return Meaning(Kind.REBALANCE_FAILED, fields, details)
