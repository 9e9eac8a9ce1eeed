"""Paths and values of ZooKeeper nodes, as Kafka 0.8.2.2 writes them.

| node | kind | value |
|---|---|---|
| /consumers/G/ids/CONSUMER | ephemeral | version, subscription, pattern, timestamp; as JSON |
| /consumers/G/owners/T/P | ephemeral | the thread's id: CONSUMER-0 |
| /consumers/G/offsets/T/P | persistent | the next offset, as digits |
| /brokers/ids/N | ephemeral | host and port, as JSON |
| /brokers/topics/T | persistent | {"version":1,"partitions":{"0":[1,2]}} |
"""

import json
import re
from typing import Any, NamedTuple

from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.zookeeper.config import PatternKind, Subscription

BROKERS = "/brokers/ids"
TOPICS = "/brokers/topics"


class UnreadableNode(Exception):
    """A node whose value is not what Kafka writes; the text names path and value."""


class Broker(NamedTuple):
    node_id: int
    host: str
    port: int


def topic_path(topic: str) -> str:
    return f"{TOPICS}/{topic}"


class GroupPaths:
    def __init__(self, group: str) -> None:
        self.ids = f"/consumers/{group}/ids"
        self._owners = f"/consumers/{group}/owners"
        self._offsets = f"/consumers/{group}/offsets"

    def member(self, consumer_id: str) -> str:
        return f"{self.ids}/{consumer_id}"

    def owner(self, partition: TopicPartition) -> str:
        return f"{self._owners}/{partition.topic}/{partition.partition}"

    def is_owner(self, path: str) -> bool:
        return path.startswith(f"{self._owners}/")

    def offset(self, partition: TopicPartition) -> str:
        return f"{self._offsets}/{partition.topic}/{partition.partition}"


def consumer_id(group: str, host: str, started: Instant, number: int) -> str:
    """The name of a consumer in its group; `number` is random, of 32 bits."""
    return f"{group}_{host}-{started}-{number & 0xFFFF_FFFF:08x}"


def thread_id(consumer: str, number: int) -> str:
    return f"{consumer}-{number}"


_ESCAPED = {
    '"': '\\"',
    "\\": "\\\\",
    "/": "\\/",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}


def _escaped(text: str) -> str:
    """As Utils.JSONEscapeString does, which also escapes "/"."""
    return "".join(
        _ESCAPED.get(sign) or (f"\\u{ord(sign):04x}" if sign < " " or "\x7f" <= sign <= "\x9f" else sign)
        for sign in text
    )


def registration(subscription: Subscription, now: Instant) -> bytes:
    threads = ",".join(f'"{_escaped(topic)}":{number}' for topic, number in subscription.threads.items())
    value = (
        f'{{"version":1,"subscription":{{{threads}}},'
        f'"pattern":"{subscription.kind.value}","timestamp":"{now}"}}'
    )
    return value.encode()


def read_registration(path: str, value: bytes) -> Subscription:
    decoded = _decoded(path, value)
    try:
        threads = {str(topic): int(number) for topic, number in decoded["subscription"].items()}
        subscription = Subscription(threads, PatternKind(decoded["pattern"]))
        if subscription.kind is not PatternKind.STATIC:
            (pattern,) = threads
            re.compile(pattern)
    except (KeyError, TypeError, ValueError, AttributeError, re.error) as error:
        raise UnreadableNode(f"{path} registers no consumer: {_shown(value)} ({error!r}).") from None
    return subscription


def read_partitions(path: str, value: bytes) -> tuple[int, ...]:
    try:
        return tuple(sorted(int(number) for number in _decoded(path, value)["partitions"]))
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableNode(f"{path} does not list partitions: {_shown(value)} ({error!r}).") from None


def read_broker(path: str, value: bytes) -> Broker:
    """0.9 and later also have `endpoints`; host and port stay, unless the broker listens on TLS only."""
    decoded = _decoded(path, value)
    try:
        return Broker(int(path.rpartition("/")[2]), str(decoded["host"]), int(decoded["port"]))
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableNode(f"{path} is no broker: {_shown(value)} ({error!r}).") from None


def read_offset(path: str, value: bytes) -> int:
    try:
        return int(value)
    except ValueError:
        raise UnreadableNode(f"{path} holds no offset: {_shown(value)}.") from None


def _decoded(path: str, value: bytes) -> dict[str, Any]:
    try:
        decoded = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise UnreadableNode(f"{path} is not JSON: {_shown(value)} ({error}).") from None
    if not isinstance(decoded, dict):
        raise UnreadableNode(f"{path} is not a JSON object: {_shown(value)}.")
    return decoded


def _shown(value: bytes) -> str:
    return repr(value[:120].decode(errors="replace"))
