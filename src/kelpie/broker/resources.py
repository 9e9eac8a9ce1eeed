"""Resources that have settings, as the configuration APIs see them: topics and brokers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kelpie.broker.controller import Declined
from kelpie.broker.settings import (
    BROKER_DEFAULTS,
    DYNAMIC,
    NUMBERS,
    SWITCHES,
    TOPIC_TO_BROKER,
    invalid,
    unknown_to_topics,
)
from kelpie.errors import ErrorCode

if TYPE_CHECKING:
    from kelpie.broker.broker import Broker

TOPIC, BROKER = 2, 4

# Where a value comes from, as Kafka numbers it.
TOPIC_SOURCE, DYNAMIC_BROKER, DYNAMIC_DEFAULT, STATIC, DEFAULT = 1, 2, 3, 4, 5
_BOOLEAN, _STRING, _LONG, _LIST = 1, 2, 5, 7


@dataclass(frozen=True, slots=True)
class Entry:
    name: str
    value: str
    source: int
    read_only: bool

    @property
    def kind(self) -> int:
        if self.name in NUMBERS:
            return _LONG
        if self.name in SWITCHES:
            return _BOOLEAN
        return _LIST if self.name == "cleanup.policy" else _STRING


def entries(broker: "Broker", kind: int, name: str) -> list[Entry]:
    """All settings of a resource. Raises Declined for one that does not exist."""
    if kind == TOPIC:
        topic = broker.image.topic(name)
        if topic is None:
            raise Declined(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
        effective = broker.settings.topic_config(topic.config)
        return [
            Entry(
                key, value, TOPIC_SOURCE if key in topic.config else _inherited(broker, key), read_only=False
            )
            for key, value in sorted(effective.items())
        ]
    if kind == BROKER:
        return _of_broker(broker, name)
    raise Declined(ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {kind}")


def _of_broker(broker: "Broker", name: str) -> list[Entry]:
    configs = broker.image.broker_config
    if name == "":
        return [
            Entry(key, value, DYNAMIC_DEFAULT, False) for key, value in sorted(configs.get("", {}).items())
        ]
    if not name.isdigit() or int(name) != broker.node_id:
        raise Declined(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {broker.node_id} or empty string, but received {name}",
        )
    layers: list[tuple[Mapping[str, str], int]] = [
        (broker.settings.defaults, DEFAULT),
        ({"broker.id": name, "node.id": name, **broker.settings.given}, STATIC),
        (configs.get("", {}), DYNAMIC_DEFAULT),
        (configs.get(name, {}), DYNAMIC_BROKER),
    ]
    found: dict[str, Entry] = {}
    for values, source in layers:
        for key, value in values.items():
            found[key] = Entry(key, value, source, read_only=key in ("broker.id", "node.id"))
    return [found[key] for key in sorted(found)]


def _inherited(broker: "Broker", key: str) -> int:
    configs = broker.image.broker_config
    name = TOPIC_TO_BROKER.get(key, "")
    if name in configs.get(str(broker.node_id), {}):
        return DYNAMIC_BROKER
    if name in configs.get("", {}):
        return DYNAMIC_DEFAULT
    return STATIC if name in broker.settings.given else DEFAULT


def change(broker: "Broker", kind: int, name: str, config: Mapping[str, str], *, dry_run: bool) -> None:
    """Replaces the settings of a resource. Raises Declined when a value, or the resource, cannot be."""
    for key, value in config.items():
        if kind == TOPIC and unknown_to_topics(key, old=broker.persona.name != "4.3"):
            raise Declined(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {key}")
        if kind == BROKER and key in BROKER_DEFAULTS and key not in DYNAMIC:
            raise Declined(ErrorCode.INVALID_REQUEST, f"Cannot update these configs dynamically: Set({key})")
        reason = invalid(key, value)
        if reason:
            raise Declined(ErrorCode.INVALID_CONFIG, reason)
    controller = broker.links.controller()
    if controller is None:
        raise Declined(ErrorCode.NOT_CONTROLLER, "The controller cannot be reached.")
    own(broker, kind, name)
    if dry_run:
        return
    if kind == TOPIC:
        controller.set_topic_config(name, config)
    else:
        controller.set_broker_config(name, config)


def own(broker: "Broker", kind: int, name: str) -> Mapping[str, str]:
    """The settings that were given to this very resource."""
    if kind == TOPIC:
        topic = broker.image.topic(name)
        if topic is None:
            raise Declined(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
        return topic.config
    if kind == BROKER:
        if name and (not name.isdigit() or int(name) not in broker.image.brokers):
            raise Declined(ErrorCode.INVALID_REQUEST, f"Unknown broker {name}")
        return broker.image.broker_config.get(name, {})
    raise Declined(ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {kind}")
