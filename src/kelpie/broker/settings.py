"""Settings of brokers and topics by Kafka's names: their defaults, their types, and which can be changed.

Of a broker's settings only those are listed that change what the lab does. Others are accepted, kept and
shown, as Kafka keeps settings of plugins. A topic has Kafka's settings and no others;
each falls back to the broker's, whose name differs for some.
"""

from collections.abc import Mapping

from kelpie.broker.log import LogConfig

FOR_EVER = str(2**63 - 1)

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
    "transaction.state.log.segment.bytes": "104857600",
    "transactional.id.expiration.ms": "604800000",
    "unclean.leader.election.enable": "false",
}

_TOPIC_TABLE = """
cleanup.policy                           log.cleanup.policy                  delete
compression.gzip.level                   =                                   -1
compression.lz4.level                    =                                   9
compression.type                         =                                   producer
compression.zstd.level                   =                                   3
delete.retention.ms                      log.cleaner.delete.retention.ms     86400000
file.delete.delay.ms                     log.segment.delete.delay.ms         60000
flush.messages                           log.flush.interval.messages         for ever
flush.ms                                 log.flush.interval.ms               for ever
follower.replication.throttled.replicas  .                                   nothing
index.interval.bytes                     log.index.interval.bytes            4096
leader.replication.throttled.replicas    .                                   nothing
local.retention.bytes                    log.local.retention.bytes           -2
local.retention.ms                       log.local.retention.ms              -2
max.compaction.lag.ms                    log.cleaner.max.compaction.lag.ms   for ever
max.message.bytes                        message.max.bytes                   1048588
message.timestamp.after.max.ms           log.message.timestamp.after.max.ms  3600000
message.timestamp.before.max.ms          log.message.timestamp.before.max.ms for ever
message.timestamp.type                   log.message.timestamp.type          CreateTime
min.cleanable.dirty.ratio                log.cleaner.min.cleanable.ratio     0.5
min.compaction.lag.ms                    log.cleaner.min.compaction.lag.ms   0
min.insync.replicas                      =                                   1
preallocate                              log.preallocate                     false
remote.log.copy.disable                  .                                   false
remote.log.delete.on.disable             .                                   false
remote.storage.enable                    .                                   false
retention.bytes                          log.retention.bytes                 -1
retention.ms                             log.retention.ms                    604800000
segment.bytes                            log.segment.bytes                   1073741824
segment.index.bytes                      log.index.size.max.bytes            10485760
segment.jitter.ms                        log.roll.jitter.ms                  0
segment.ms                               log.roll.ms                         604800000
unclean.leader.election.enable           =                                   false
"""
"""A topic's setting, the broker's that it falls back to (= of the same name, . none), and the default."""

_ROWS = [line.split(maxsplit=2) for line in _TOPIC_TABLE.split("\n") if line]
_WORDS = {"for ever": FOR_EVER, "nothing": ""}
TOPIC_DEFAULTS: Mapping[str, str] = {name: _WORDS.get(value, value) for name, _, value in _ROWS}
TOPIC_TO_BROKER: Mapping[str, str] = {
    name: name if broker == "=" else broker for name, broker, _ in _ROWS if broker != "."
}
BROKER_TO_TOPIC: Mapping[str, str] = {broker: name for name, broker in TOPIC_TO_BROKER.items()}
OLD_TOPIC_SETTINGS = frozenset(
    {"message.downconversion.enable", "message.format.version", "message.timestamp.difference.max.ms"}
)
"""Gone with Kafka 4, and without effect here."""

_DEFAULTS = {**TOPIC_DEFAULTS, **BROKER_DEFAULTS}
NUMBERS = frozenset(name for name, value in _DEFAULTS.items() if value.lstrip("-").isdigit())
SWITCHES = frozenset(name for name, value in _DEFAULTS.items() if value in ("true", "false"))
DYNAMIC = frozenset(BROKER_TO_TOPIC) | {"producer.id.expiration.ms"}
"""What can be changed while a broker runs, of the settings that are listed here."""


class BrokerSettings:
    """The settings of one broker: dynamic ones over static ones over the defaults of its release."""

    def __init__(self, given: Mapping[str, str], defaults: Mapping[str, str] | None = None) -> None:
        self.given = dict(given)
        self.dynamic: Mapping[str, str] = {}
        self.defaults: Mapping[str, str] = {**BROKER_DEFAULTS, **(defaults or {})}

    def text(self, name: str) -> str:
        for source in (self.dynamic, self.given, self.defaults):
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
        broker = TOPIC_TO_BROKER.get(name)
        for source in (self.dynamic, self.given, self.defaults):
            if broker is not None and broker in source:
                return source[broker]
        return TOPIC_DEFAULTS[name]

    def topic_config(self, config: Mapping[str, str]) -> dict[str, str]:
        """All settings of a topic."""
        return {name: self.topic(config, name) for name in TOPIC_DEFAULTS} | dict(config)


def unknown_to_topics(name: str, *, old: bool) -> bool:
    """Whether Kafka refuses a setting of this name for a topic. `old`: releases before 4."""
    return name not in TOPIC_DEFAULTS and not (old and name in OLD_TOPIC_SETTINGS)


def invalid(name: str, value: str) -> str | None:
    """Why a value cannot be: a sentence as Kafka's, or None."""
    if name in NUMBERS and not value.removeprefix("-").isdigit():
        return f"Invalid value {value} for configuration {name}: Not a number of type LONG"
    if name in SWITCHES and value not in ("true", "false"):
        return f"Invalid value {value} for configuration {name}: Expected value to be either true or false"
    try:
        LogConfig.of({BROKER_TO_TOPIC.get(name, name): value})
    except ValueError as error:
        return str(error)
    return None
