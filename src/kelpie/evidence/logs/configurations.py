"""Configurations that clients and brokers write into their log when they start."""

import re
from collections.abc import Iterable

from kelpie.observations import Setting

CONSUMER_DUMP = "ConsumerConfig values:"
BROKER_DUMP = "KafkaConfig values:"
_LINE = re.compile(r"^\s+([a-z][a-z0-9._]*) = (.*?)\s*$")
_OF_A_GROUP = (
    "auto.offset.reset",
    "auto.commit.interval.ms",
    "enable.auto.commit",
    "group.instance.id",
    "group.protocol",
    "heartbeat.interval.ms",
    "isolation.level",
    "max.poll.interval.ms",
    "max.poll.records",
    "partition.assignment.strategy",
    "session.timeout.ms",
)


def read_dump(lines: Iterable[str]) -> dict[str, str]:
    """Names and values."""
    return {match[1]: match[2] for line in lines if (match := _LINE.match(line)) is not None}


def settings_of_group(dump: dict[str, str], source: str) -> list[Setting]:
    """The configuration of a consumer, as settings of its group."""
    group = dump.get("group.id", "")
    if group in ("", "null"):
        return []
    return [Setting(f"group {group}", name, dump[name], source) for name in _OF_A_GROUP if name in dump]
