"""What the consumer of Kafka 0.8 writes (ZookeeperConsumerConnector, up to 1.1), and ZooKeeper about it.

A consumer id is GROUP_NAME, a thread's id GROUP_NAME-0. NAME is the host, the time of the start and eight
hexadecimal digits, or what the setting consumer.id says. Both parts may have a "_" in them, so an event has
its group from a path, or from an id of the usual form; else the settings of that consumer name the group.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from kelpie.evidence.logs.matching import Fields, Meaning, Message
from kelpie.evidence.logs.templates import read_templates
from kelpie.evidence.properties import settings_of_zookeeper_consumer
from kelpie.observations import Setting
from kelpie.zookeeper.assignment import consumer_of

OF_ZOOKEEPER = "zookeeper"
"""How the kinds of these events begin."""
LONGEST_SURE = 6000
"""In characters: of a longer message the middle is left out."""
OVERRIDDEN = " is overridden to "
CONNECTING = "Connecting to zookeeper instance at "
_OVERRIDDEN = re.compile(r"Property ([a-z][a-z0-9.]*) is overridden to (.*)$")
_USUAL_ID = re.compile(r"(?P<group>.+)_[^_]+-\d{13}-[0-9a-f]{1,8}")
_OWNER_PATH = re.compile(r"(?P<topic>[^/]+)/(?P<partition>\d{1,9})")
_SELECTED = re.compile(r"(?<![^,:\s])(?P<topic>[^,:\s]+):(?P<partition>\d{1,9}): fetched offset = ")
_NUMBER = re.compile(r"\d{1,9}")


def group_in(member: str) -> str | None:
    match = _USUAL_ID.fullmatch(member)
    return match["group"] if match is not None else None


def about(member: str) -> Fields:
    """The fields of an event of this member."""
    group = group_in(member)
    return {"member": member} if group is None else {"member": member, "group": group}


def _of_member(meaning: Meaning, _: Message) -> Sequence[Meaning]:
    return [replace(meaning, fields={**meaning.fields, **about(str(meaning.fields.get("member", "")))})]


def _of_bracket(meaning: Meaning, message: Message) -> Sequence[Meaning]:
    return [replace(meaning, fields={**meaning.fields, **about(message.who)})] if message.who else []


def _computed(meaning: Meaning, message: Message) -> Sequence[Meaning]:
    details = dict(meaning.details)
    numbers = _NUMBER.findall(details.pop("partitions", ""))
    topic = details.pop("zk_topic", "")
    threads = re.findall(r"[^\s,()]+", details.pop("threads", "").removeprefix("List"))
    details |= {"partitions": ",".join(numbers), "threads": ",".join(threads)}
    with_topic = replace(meaning, fields={**meaning.fields, "topic": topic}, details=details)
    return _of_member(with_topic, message)


def _claimed(meaning: Meaning, _: Message) -> Sequence[Meaning]:
    details = dict(meaning.details)
    topic, number, thread = details.pop("zk_topic", ""), details.pop("number", ""), details.get("thread", "")
    if not _NUMBER.fullmatch(number) or not thread:
        return []
    fields: Fields = {**about(consumer_of(thread)), "topic": topic, "partition": int(number)}
    return [replace(meaning, fields=fields, details=details)]


def _conflict(meaning: Meaning, _: Message) -> Sequence[Meaning]:
    details = dict(meaning.details)
    place = _owner_place(details.pop("path", ""))
    if place is None or not details.get("thread"):
        return []
    member = consumer_of(details["thread"])
    return [replace(meaning, fields={**meaning.fields, **place, "member": member}, details=details)]


def _owner_place(path: str) -> Fields | None:
    match = _OWNER_PATH.fullmatch(path)
    return None if match is None else {"topic": match["topic"], "partition": int(match["partition"])}


def _selected(meaning: Meaning, message: Message) -> Sequence[Meaning]:
    """The partitions that the member now owns. Very long lines are not read as a whole."""
    text = meaning.details.get("selected", "")
    names = [f"{match['topic']}-{match['partition']}" for match in _SELECTED.finditer(text)]
    details = {} if len(message.text) >= LONGEST_SURE else {"partitions": ",".join(names)}
    return _of_member(replace(meaning, details=details), message)


def _session(meaning: Meaning, _: Message) -> Sequence[Meaning]:
    return [meaning] if re.fullmatch(r"0x[0-9a-f]{1,16}", meaning.details.get("session", "")) else []


def _node_exists(meaning: Meaning, message: Message) -> Sequence[Meaning]:
    """The group goes to the details: a server's log is about many."""
    details = dict(meaning.details)
    place = _owner_place(details.pop("path", ""))
    if place is None:
        return []
    return _session(replace(meaning, fields={**meaning.fields, **place}, details=details), message)


PATTERNS = read_templates(
    "zookeeper_consumer",
    (_claimed, _computed, _conflict, _node_exists, _of_bracket, _of_member, _selected, _session),
)[""]
_MOST_OVERRIDDEN = 1000


@dataclass(slots=True)
class Connectors:
    """The settings that a consumer logs at its start, before it connects under its name."""

    _values: dict[str, str] = field(default_factory=dict)
    _have_connected: bool = False

    def note(self, message: Message, where: str) -> list[Setting]:
        """Notes settings that a line names; the settings of a consumer that now connects."""
        override = _OVERRIDDEN.match(message.text)
        if override is not None and len(self._values) < _MOST_OVERRIDDEN:
            self._values[override[1]] = override[2].strip()
        if not message.who or not message.text.startswith(CONNECTING):
            return []
        values, self._values = self._values, {}
        self._have_connected = True
        return settings_of_zookeeper_consumer(values, message.who, where) if "group.id" in values else []

    def go_on(self, later: "Connectors") -> bool:
        """Adds what a later part of the same file says. False: both parts must be read together."""
        if self._values and later._have_connected:
            return False  # The settings of a consumer that connects in the later part are in the earlier one.
        self._values |= later._values
        self._have_connected |= later._have_connected
        return True
