"""kafka-topics --describe.

0.8 to 2.1   Topic:x<tab>PartitionCount:1<tab>ReplicationFactor:2<tab>Configs:a=b, then <tab>Topic: x<tab>
             Partition: 0<tab>Leader: 1<tab>Replicas: 1,0<tab>Isr: 1,0; without a leader, -1 or none
2.2          a space behind each colon of the first line
2.8          + TopicId
2.6          + Adding Replicas, Removing Replicas
3.9, 4.x     + Elr, LastKnownElr; "N/A" where they are not known
"""

import base64
import binascii
import re

from kelpie.evidence.describes.output import Context
from kelpie.observations import PartitionView, Setting
from kelpie.observations.cluster import NO_LEADER

_KEY = re.compile(
    r"(?:^|(?<=\s))(Topic|TopicId|PartitionCount|ReplicationFactor|Configs|Partition|Leader|Replicas|Isr"
    r"|Adding Replicas|Removing Replicas|Elr|LastKnownElr|OfflineReplicas|MarkedForDeletion):"
)
_TOPIC_LINE = re.compile(r"^\s*Topic: ?\S+\s.*?(?:PartitionCount|Partition): ?\d")
_NUMBER = re.compile(r"[0-9]{1,9}$")
_CONFIG = re.compile(r"[a-z][a-z0-9._]*=")


def is_topic_line(line: str) -> bool:
    return line.lstrip().startswith("Topic:") and _TOPIC_LINE.match(line) is not None


def read_topic_line(line: str, context: Context, number: int) -> None:
    """The head of a topic yields its settings, a partition its view."""
    values = _values(line)
    topic, observations = values["Topic"], context.observations
    topic_id = _topic_id(values.get("TopicId", ""))
    if topic_id is not None:
        context.output.topic_ids[topic_id] = topic
    if _NUMBER.match(values.get("Partition", "")) and "Leader" in values:
        observations.partitions.append(_view(topic, values, context.source(number)))
    elif "PartitionCount" in values:
        of = f"topic {topic}"
        observations.settings.append(
            Setting(of, "partitions", values["PartitionCount"], context.source(number))
        )
        for name, value in _configs(values.get("Configs", "")).items():
            observations.settings.append(Setting(of, name, value, context.source(number)))


def _configs(text: str) -> dict[str, str]:
    """Of "cleanup.policy=compact,delete,segment.bytes=100": values may have commas, too."""
    configs: dict[str, str] = {}
    name = ""
    for part in text.split(","):
        if _CONFIG.match(part):
            name, _, value = part.partition("=")
            configs[name] = value
        elif name:
            configs[name] += f",{part}"
    return configs


def _values(line: str) -> dict[str, str]:
    keys = list(_KEY.finditer(line))
    ends = [key.start() for key in keys[1:]] + [len(line)]
    return {key[1]: line[key.end() : end].strip() for key, end in zip(keys, ends, strict=True)}


def _view(topic: str, values: dict[str, str], source: str) -> PartitionView:
    leader = values["Leader"]
    return PartitionView(
        topic,
        int(values["Partition"]),
        int(leader) if _NUMBER.match(leader) else NO_LEADER,
        _numbers(values.get("Replicas", "")),
        _numbers(values.get("Isr", "")),
        eligible=_numbers(values.get("Elr", "")),
        source=source,
    )


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d{1,9}", text))


def _topic_id(text: str) -> bytes | None:
    try:
        topic_id = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return None
    return topic_id if len(topic_id) == 16 else None
