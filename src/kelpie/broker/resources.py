"""Resources that have settings, as the configuration APIs see them: topics and brokers."""

from collections.abc import Mapping
from dataclasses import dataclass

from kelpie.broker.broker import Broker
from kelpie.broker.declined import Declined
from kelpie.broker.settings import (
    BROKER_DEFAULTS,
    BROKER_TO_TOPIC,
    DYNAMIC,
    FOR_EVER,
    NUMBERS,
    SWITCHES,
    TOPIC_DEFAULTS,
    TOPIC_TO_BROKER,
    invalid,
    unknown_to_topics,
)
from kelpie.errors import ErrorCode
from kelpie.model.numbers import whole_number

TOPIC, BROKER = 2, 4

# Where a value comes from, as Kafka numbers it.
TOPIC_SOURCE, DYNAMIC_BROKER, DYNAMIC_DEFAULT, STATIC, DEFAULT = 1, 2, 3, 4, 5
_BOOLEAN, _STRING, _LONG, _LIST = 1, 2, 5, 7


# These have no default of their own in Kafka, but that of a coarser setting.
_COARSER = {
    "log.flush.interval.ms": ("log.flush.scheduler.interval.ms", FOR_EVER),
    "log.retention.ms": ("log.retention.hours", "168"),
    "log.roll.jitter.ms": ("log.roll.jitter.hours", "0"),
    "log.roll.ms": ("log.roll.hours", "168"),
}
_IDS = ("broker.id", "node.id")


@dataclass(frozen=True, slots=True)
class Synonym:
    """One place where a setting has a value."""

    name: str
    value: str
    source: int


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    name: str
    value: str
    synonyms: tuple[Synonym, ...]
    """Those with a say, the one that counts first."""
    read_only: bool = False

    @property
    def source(self) -> int:
        return self.synonyms[0].source if self.synonyms else DEFAULT

    @property
    def kind(self) -> int:
        if self.name in NUMBERS:
            return _LONG
        if self.name in SWITCHES:
            return _BOOLEAN
        return _LIST if self.name == "cleanup.policy" else _STRING


def entries(broker: Broker, kind: int, name: str) -> list[ConfigEntry]:
    """All settings of a resource. Raises Declined for one that does not exist."""
    if kind == BROKER:
        return _of_broker(broker, name)
    config = settings_of(broker, kind, name)
    return [
        _of_topic(broker, config, key, value)
        for key, value in sorted(broker.settings.topic_config(config).items())
    ]


def _of_topic(broker: Broker, config: Mapping[str, str], key: str, value: str) -> ConfigEntry:
    set_for_topic = [Synonym(key, value, TOPIC_SOURCE)] if key in config else []
    inherited = _synonyms(broker, TOPIC_TO_BROKER[key]) if key in TOPIC_TO_BROKER else []
    return ConfigEntry(key, value, (*set_for_topic, *inherited))


def _of_broker(broker: Broker, name: str) -> list[ConfigEntry]:
    configs = broker.image.broker_config
    if name == "":
        return [
            ConfigEntry(key, value, (Synonym(key, value, DYNAMIC_DEFAULT),))
            for key, value in sorted(configs.get("", {}).items())
        ]
    if whole_number(name) != broker.node_id:
        raise Declined(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {broker.node_id} or empty string, but received {name}",
        )
    names = {*broker.settings.defaults, *broker.settings.given, *configs.get("", {}), *configs.get(name, {})}
    entries = []
    for key in sorted({*names, *_IDS}):
        synonyms = _synonyms(broker, key)
        value = synonyms[0].value if synonyms else broker.settings.text(key)
        entries.append(ConfigEntry(key, value, tuple(synonyms), read_only=_is_fixed(key)))
    return entries


def _synonyms(broker: Broker, name: str) -> list[Synonym]:
    """The places where a broker has a value for a setting, in the order of Kafka's ConfigHelper."""
    configs, settings = broker.image.broker_config, broker.settings
    layers: list[tuple[Mapping[str, str], int]] = [
        (configs.get(str(broker.node_id), {}), DYNAMIC_BROKER),
        (configs.get("", {}), DYNAMIC_DEFAULT),
        ({**dict.fromkeys(_IDS, str(broker.node_id)), **settings.given}, STATIC),
    ]
    synonyms = [Synonym(name, values[name], source) for values, source in layers if name in values]
    if name in _COARSER:
        return [*synonyms, Synonym(*_COARSER[name], DEFAULT)] if synonyms else []
    default = settings.defaults.get(name, TOPIC_DEFAULTS.get(BROKER_TO_TOPIC.get(name, "")))
    return synonyms if default is None else [*synonyms, Synonym(name, default, DEFAULT)]


def _is_fixed(name: str) -> bool:
    """Whether it stays what it is while the broker runs."""
    return name in _IDS or (name in BROKER_DEFAULTS and name not in DYNAMIC)


def change(broker: Broker, kind: int, name: str, config: Mapping[str, str], *, dry_run: bool) -> None:
    """Replaces the settings of a resource. Raises Declined when a value, or the resource, cannot be."""
    for key, value in config.items():
        if kind == TOPIC and unknown_to_topics(key, old=broker.persona.name != "4.3"):
            raise Declined(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {key}")
        if kind == BROKER and _is_fixed(key):
            names = f"[{key}]" if broker.persona.name == "4.3" else f"Set({key})"
            raise Declined(ErrorCode.INVALID_REQUEST, f"Cannot update these configs dynamically: {names}")
        reason = invalid(key, value)
        if reason:
            raise Declined(ErrorCode.INVALID_CONFIG, reason)
    controller = broker.links.controller()
    if controller is None:
        raise Declined(ErrorCode.NOT_CONTROLLER, "The controller cannot be reached.")
    before = settings_of(broker, kind, name)
    if kind == BROKER and broker.persona.keeps_elr:
        _keep_min_isr(name, before, config)
    if dry_run:
        return
    if kind == TOPIC:
        controller.set_topic_config(name, config)
    else:
        controller.set_broker_config(name, config)


def _keep_min_isr(name: str, before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """KIP-966: the whole cluster has to have one idea of how many in-sync replicas are enough."""
    key = "min.insync.replicas"
    if name and before.get(key) != after.get(key):
        raise Declined(
            ErrorCode.INVALID_CONFIG, f"Broker-level {key} cannot be altered while ELR is enabled."
        )
    if not name and key not in after:
        raise Declined(
            ErrorCode.INVALID_CONFIG, f"Cluster-level {key} cannot be removed while ELR is enabled."
        )


def settings_of(broker: Broker, kind: int, name: str) -> Mapping[str, str]:
    """The settings that were given to this very resource."""
    if kind == TOPIC:
        topic = broker.image.topic(name)
        if topic is None:
            raise Declined(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
        return topic.config
    if kind == BROKER:
        if name and whole_number(name) not in broker.image.brokers:
            raise Declined(ErrorCode.INVALID_REQUEST, f"Unknown broker {name}")
        return broker.image.broker_config.get(name, {})
    raise Declined(ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {kind}")
