"""Messages as their authors wrote them, and what each means.

A table is a list of templates, one per wording; a template is the message with names in braces:

    pattern(JOINED, "Successfully joined group {group} with generation {generation}")

`templates.py` reads tables from text files.

Names that are fields of an Event fill them; others go to its details. `{*}` is anything, and so is what
follows a "…" at the end; a final full stop may be missing. `within` is how the bracket before the message
begins, where that matters: "[ReplicaFetcher replicaId=1, …] Connection to node 2 …" is not a consumer's.

A log has gigabytes and few of its lines mean anything. So a message is looked up by its first word, then
compared with the fixed parts of the templates, and only then a regular expression is tried (`expressions`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from kelpie.errors import ErrorCode
from kelpie.evidence.logs.expressions import check, expression, pieces_of, trimmed
from kelpie.evidence.logs.layouts import Head
from kelpie.evidence.named_errors import error_in
from kelpie.observations import EventKind

_NODE_ID = re.compile(
    r"\(id: (-?\d{1,10}) |nodeId=(-?\d{1,10})|Node\((-?\d{1,10}),|^(?:coordinator-)?(-?\d{1,10})$"
)
_PARTITION_PARTS = re.compile(
    r"\[(?P<a>[^\]]+),(?P<b>\d{1,9})\]$|TopicPartition\(topic='(?P<c>.*?)', partition=(?P<d>\d{1,9})\)"
    r"|(?P<e>.+) \[(?P<f>\d{1,9})\]$|(?P<g>.+)-(?P<h>\d{1,9})$"
)
_OPTIONAL = re.compile(r"^(?:Optional\[|Some\()(.*)[\])]$")
_OFFSET = re.compile(r"offset=(-?\d{1,19})|^(-?\d{1,19})$")
_PREFIX = re.compile(r"\[(?P<who>[^\]]*(?:\][^\]\s:,]+)*)\](?::|,)?\s+")
_CLIENT_PREFIX = re.compile(
    r"(?:Consumer|Producer|AdminClient|ShareConsumer) (?:instanceId=(?P<instance_id>.*?), )?"
    r"clientId=(?P<client_id>.*?)(?:, groupId=(?P<group>.*?))?(?:, transactionalId=.*)?\Z",
    re.DOTALL,
)
_BROKER_PREFIX = re.compile(
    r"(?:Kafka ?Server|BrokerServer|BrokerLifecycleManager|Broker|KafkaApi|GroupCoordinator"
    r"|GroupMetadataManager|Group Metadata Manager on Broker)[ -]?(?:id=|brokerId=|nodeId=)?(?P<node>\d{1,9})"
    r"(?: topic=(?P<topic>\S+) partition=(?P<partition>\d{1,9}))?$"
)
_PARTITION_PREFIX = re.compile(r"Partition (?P<tp>\S+) (?:broker=|on broker )(?P<node>\d{1,9})")
_LARGEST_INT = 2**31 - 1
_REFUSALS: dict[object, EventKind] = {
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: EventKind.PROTOCOL_REFUSED,
    ErrorCode.GROUP_MAX_SIZE_REACHED: EventKind.GROUP_FULL,
    ErrorCode.INVALID_SESSION_TIMEOUT: EventKind.SESSION_TIMEOUT_REFUSED,
    ErrorCode.FENCED_INSTANCE_ID: EventKind.FENCED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: EventKind.NOT_AUTHORISED,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: EventKind.NOT_AUTHORISED,
}
_CONNECTION_IDS = 2**30
"""A Java client opens a connection of its own to its coordinator, under this number minus the broker's."""


class Message(NamedTuple):
    """A message apart from the bracket in front of it."""

    who: str
    """What stands in the bracket: "Consumer clientId=c, groupId=g"."""
    text: str
    trace: str
    """The lines that belong to it."""
    head: Head


@dataclass(frozen=True, slots=True)
class Meaning:
    """What one message means, before it is known which group and client it is about."""

    kind: EventKind
    fields: Mapping[str, str | int] = field(default_factory=dict)
    """Fields of Event: group, member, node, topic, partition, offset, generation, error, reason …"""
    details: Mapping[str, str] = field(default_factory=dict)


Also = Callable[[Meaning, Message], Sequence[Meaning]]
Fields = dict[str, str | int]
Fill = Callable[[Fields, str, str], None]


@dataclass(frozen=True, slots=True)
class Pattern:
    kind: EventKind
    beginning: str
    longest: str
    """The longest fixed part of the template: cheaper to search than the whole."""
    template: str
    names: tuple[str, ...]
    """Of its holes; none twice."""
    fill: tuple[Fill | None, ...]
    within: tuple[str, ...]
    not_within: tuple[str, ...]
    error: int | None
    reason: str
    then: Also | None
    """What the message really means, once all of it is known: nothing, something else, several things."""

    @property
    def regex(self) -> re.Pattern[str]:
        """Compiled when it is first tried: there are hundreds, and most programs read no log."""
        return expression(self.template)

    def find(self, message: Message) -> Sequence[Meaning] | None:
        """None: it is not this message."""
        if not message.text.startswith(self.beginning) or self.longest not in message.text:
            return None
        if self.within and not message.who.startswith(self.within):
            return None
        if self.not_within and message.who.startswith(self.not_within):
            return None
        match = self.regex.match(trimmed(message.text))
        if match is None:
            return None
        meaning = self._meaning(match.groups(), message)
        return [meaning] if self.then is None else self.then(meaning, message)

    def _meaning(self, values: Sequence[str | None], message: Message) -> Meaning:
        fields: dict[str, str | int] = {}
        details: dict[str, str] = {}
        for name, fill, value in zip(self.names, self.fill, values, strict=True):
            if value is None:
                continue
            if fill is not None:
                fill(fields, name, value)
            elif value:
                details[name] = value
        error = self.error
        if error is None and ("reason" in fields or message.trace):
            named = error_in(f"{fields.get('reason', '')}\n{message.trace}")
            error = named.value if named is not None else None
        if error is not None:
            fields["error"] = error
        if self.reason:
            fields["reason"] = self.reason
        return Meaning(self.kind, fields, details)


def _fill_node(fields: Fields, name: str, value: str) -> None:
    number = node_in(value)
    if number is not None:
        fields[name] = number


def _fill_partition(fields: Fields, _: str, value: str) -> None:
    fields.update(partition_in(value))


def _fill_position(fields: Fields, _: str, value: str) -> None:
    offset = _OFFSET.search(value)
    if offset is not None:
        fields["offset"] = int(offset[1] or offset[2])


def _fill_number(fields: Fields, name: str, value: str) -> None:
    fields[name] = int(value)


def _fill_coordinator(fields: Fields, _: str, value: str) -> None:
    fields["topic"] = "__consumer_offsets"
    fields["partition"] = int(value)


def _fill_name(fields: Fields, name: str, value: str) -> None:
    if value not in ("", "null"):
        fields[name] = value


def _fill_instance(fields: Fields, name: str, value: str) -> None:
    fields[name] = _OPTIONAL.sub(r"\1", value)


def _fill_reason(fields: Fields, _: str, value: str) -> None:
    fields["reason"] = value


_FILL: Mapping[str, Fill] = {
    "node": _fill_node,
    "tp": _fill_partition,
    "position": _fill_position,
    "generation": _fill_number,
    "offset": _fill_number,
    "p": _fill_coordinator,
    "group": _fill_name,
    "member": _fill_name,
    "reason": _fill_name,
    "client_id": _fill_name,
    "instance_id": _fill_instance,
    "error": _fill_reason,
}
"""What a hole of this name fills; others are details."""


def pattern(
    kind: EventKind,
    template: str,
    *,
    within: tuple[str, ...] = (),
    not_within: tuple[str, ...] = (),
    error: int | None = None,
    reason: str = "",
    then: Also | None = None,
) -> Pattern:
    """A row of a table. Raises NotLinear."""
    check(template)
    pieces = pieces_of(template)
    texts, names = pieces[::2], tuple(name for name in pieces[1::2] if name != "*")
    assert len(set(names)) == len(names), template
    return Pattern(
        kind,
        texts[0],
        max((text.rstrip(".") for text in texts), key=len),
        template,
        names,
        tuple(map(_FILL.get, names)),
        within,
        not_within,
        error,
        reason,
        then,
    )


class TemplateTable:
    """Templates by first word. Those that begin with a name are tried for every message."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self.patterns = tuple(patterns)
        self._by_word: dict[str, list[Pattern]] = {}
        self._anywhere: list[Pattern] = []
        for pattern in patterns:
            word, space, _ = pattern.beginning.partition(" ")
            if space:
                self._by_word.setdefault(word, []).append(pattern)
            else:
                self._anywhere.append(pattern)

    def find(self, message: Message) -> Sequence[Meaning] | None:
        """What the message means. None: it is unknown; empty: it is known and has no meaning here."""
        word = message.text.partition(" ")[0]
        for pattern in chain(self._by_word.get(word, ()), self._anywhere):
            meanings = pattern.find(message)
            if meanings is not None:
                return meanings
        return None


def refused(meaning: Meaning, _: Message) -> Sequence[Meaning]:
    """A join that a coordinator refused, if its error is one that ends a consumer."""
    kind = _REFUSALS.get(meaning.fields.get("error"))
    return [] if kind is None else [replace(meaning, kind=kind)]


def split_prefix(text: str) -> tuple[str, str]:
    """The bracket before a message, and the message."""
    if not text.startswith("["):
        return "", text
    match = _PREFIX.match(text)
    return ("", text) if match is None else (match["who"], text[match.end() :])


@lru_cache(maxsize=4096)
def facts_of(who: str) -> Fields:
    """Fields of an event that are in the bracket. Do not change what comes back."""
    facts: Fields = {}
    if match := _CLIENT_PREFIX.match(who):
        for name in ("instance_id", "client_id", "group"):
            if match[name] and match[name] != "null":
                facts[name] = match[name]
    elif match := _BROKER_PREFIX.match(who):
        facts["node"] = int(match["node"])
        if match["topic"]:
            facts |= {"topic": match["topic"], "partition": int(match["partition"])}
    elif match := _PARTITION_PREFIX.match(who):
        facts |= {**partition_in(match["tp"]), "node": int(match["node"])}
    return facts


def node_in(text: str) -> int | None:
    """The number of a broker, from any of the ways in which a node is printed."""
    match = _NODE_ID.search(text)
    if match is None:
        return None
    number = int(next(group for group in match.groups() if group is not None))
    return _LARGEST_INT - number if number > _CONNECTION_IDS else number


def partition_in(text: str) -> dict[str, str | int]:
    """Topic and partition, from any of the ways in which they are printed."""
    match = _PARTITION_PARTS.match(text)
    if match is None:
        return {}
    topic = match["a"] or match["c"] or match["e"] or match["g"]
    return {"topic": topic, "partition": int(match["b"] or match["d"] or match["f"] or match["h"])}
