"""Settings of brokers and topics by Kafka's names: their defaults, their types, and who may change them.

Only settings that change what the lab does are listed; others are accepted, kept and shown, as Kafka keeps
settings of plugins. A topic setting falls back to the broker's, whose name differs for some.
"""

from collections.abc import Mapping

BROKER_DEFAULTS: Mapping[str, str] = {
    "auto.create.topics.enable": "true",
    "broker.session.timeout.ms": "500",
    "default.replication.factor": "1",
    "delete.topic.enable": "true",
    "group.initial.rebalance.delay.ms": "3000",
    "group.max.session.timeout.ms": "1800000",
    "group.max.size": "2147483647",
    "group.min.session.timeout.ms": "6000",
    "log.cleanup.policy": "delete",
    "log.cleaner.delete.retention.ms": "86400000",
    "log.message.timestamp.type": "CreateTime",
    "log.retention.bytes": "-1",
    "log.retention.check.interval.ms": "300000",
    "log.retention.ms": "604800000",
    "log.roll.ms": "604800000",
    "log.segment.bytes": "1073741824",
    "max.incremental.fetch.session.cache.slots": "1000",
    "message.max.bytes": "1048588",
    "min.insync.replicas": "1",
    "num.partitions": "1",
    "producer.id.expiration.ms": "86400000",
    "offset.metadata.max.bytes": "4096",
    "offsets.commit.timeout.ms": "5000",
    "offsets.retention.check.interval.ms": "600000",
    "offsets.retention.minutes": "10080",
    "offsets.topic.num.partitions": "50",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.segment.bytes": "104857600",
    "replica.lag.time.max.ms": "30000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "10000",
    "transaction.max.timeout.ms": "900000",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.num.partitions": "50",
    "transaction.state.log.replication.factor": "3",
    "transactional.id.expiration.ms": "604800000",
    "unclean.leader.election.enable": "false",
}

TOPIC_TO_BROKER: Mapping[str, str] = {
    "cleanup.policy": "log.cleanup.policy",
    "compression.type": "compression.type",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "max.message.bytes": "message.max.bytes",
    "message.timestamp.type": "log.message.timestamp.type",
    "min.insync.replicas": "min.insync.replicas",
    "retention.bytes": "log.retention.bytes",
    "retention.ms": "log.retention.ms",
    "segment.bytes": "log.segment.bytes",
    "segment.ms": "log.roll.ms",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
}
TOPIC_ONLY: Mapping[str, str] = {"compression.type": "producer"}

NUMBERS = frozenset(name for name, value in BROKER_DEFAULTS.items() if value.lstrip("-").isdigit()) | {
    name for name, broker in TOPIC_TO_BROKER.items() if BROKER_DEFAULTS.get(broker, "x").lstrip("-").isdigit()
}
SWITCHES = frozenset(name for name, value in BROKER_DEFAULTS.items() if value in ("true", "false")) | {
    "unclean.leader.election.enable"
}
CHOICES: Mapping[str, frozenset[str]] = {
    "cleanup.policy": frozenset({"delete", "compact", "compact,delete", "delete,compact"}),
    "message.timestamp.type": frozenset({"CreateTime", "LogAppendTime"}),
    "compression.type": frozenset({"uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"}),
}


class Settings:
    """The settings of one broker, static ones under dynamic ones."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self.given = dict(given)
        self.dynamic: Mapping[str, str] = {}

    def text(self, name: str) -> str:
        for source in (self.dynamic, self.given, BROKER_DEFAULTS):
            if name in source:
                return source[name]
        raise KeyError(name)

    def number(self, name: str) -> int:
        return int(self.text(name))

    def switch(self, name: str) -> bool:
        return self.text(name) == "true"

    def topic(self, config: Mapping[str, str], name: str) -> str:
        """A topic's setting: its own, or the broker's."""
        if name in config:
            return config[name]
        broker = TOPIC_TO_BROKER.get(name, name)
        for source in (self.dynamic, self.given, BROKER_DEFAULTS):
            if broker in source:
                return source[broker]
        return TOPIC_ONLY[name]

    def topic_config(self, config: Mapping[str, str]) -> dict[str, str]:
        """All settings of a topic that matter here."""
        return {name: self.topic(config, name) for name in TOPIC_TO_BROKER} | dict(config)


def invalid(name: str, value: str) -> str | None:
    """Why a value cannot be: a sentence as Kafka's, or None."""
    if name in NUMBERS and not value.lstrip("-").isdigit():
        return f"Invalid value {value} for configuration {name}: Not a number of type LONG"
    if name in SWITCHES and value not in ("true", "false"):
        return f"Invalid value {value} for configuration {name}: Expected value to be either true or false"
    if name in CHOICES and value.replace(" ", "") not in CHOICES[name]:
        allowed = ", ".join(sorted(CHOICES[name]))
        return f"Invalid value {value} for configuration {name}: String must be one of: {allowed}"
    return None
