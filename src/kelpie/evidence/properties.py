"""Configurations: server.properties and meta.properties, and what brokers and clients log at their start.

Only settings on a list are read, so that no password, key or token is among them, whatever name a plug-in
gives it.
"""

import re
from collections.abc import Container, Iterable, Iterator, Mapping

from kelpie.observations import BrokerView, Observations, Setting

_WANTED = re.compile(
    r"^(?:"
    r"offsets?\..*|group\..*|transactions?\..*|transactional\..*|transaction\.state\.log\..*|replica\..*"
    r"|broker\.(?:id|rack|heartbeat\.interval\.ms|session\.timeout\.ms)|node\.id|process\.roles"
    r"|listeners|advertised\.(?:listeners|host\.name|port)|host\.name|port"
    r"|inter\.broker\.(?:protocol\.version|listener\.name)|security\.inter\.broker\.protocol"
    r"|controller\.(?:quorum\.voters|quorum\.bootstrap\.servers|listener\.names)"
    r"|zookeeper\.(?:connect|session\.timeout\.ms|connection\.timeout\.ms)"
    r"|log\.(?:dirs?|retention\..*|segment\..*|roll\..*|cleaner\..*|cleanup\.policy|message\..*)"
    r"|default\.replication\.factor|min\.insync\.replicas|num\.partitions|unclean\.leader\.election\..*"
    r"|auto\.(?:create\.topics\.enable|leader\.rebalance\.enable)|delete\.topic\.enable"
    r"|message\.max\.bytes|connections\.max\.idle\.ms|max\.connections.*|request\.timeout\.ms"
    r")$"
)
_LINE = re.compile(r"^\s*([A-Za-z][A-Za-z0-9._-]*)\s*[=:]\s*(.*)$", re.DOTALL)
_MARKS = ("broker.id", "node.id", "log.dirs", "log.dir", "zookeeper.connect", "process.roles", "cluster.id")
_ADDRESS = re.compile(
    r"(?<![^\s:,/\[\]])(?:[A-Za-z0-9_]+://)?(\[[0-9a-fA-F:.%]+\]|[^\s:,/\[\]]+):(\d{1,5})\b"
)
_NUMBER = re.compile(r"[0-9]{1,9}$")
_NOWHERE = ("0.0.0.0", "[::]", "")  # noqa: S104 - compared with, not bound to
CONSUMER_DUMP = "ConsumerConfig values:"
BROKER_DUMP = "KafkaConfig values:"
_DUMP_LINE = re.compile(r"^\s+([a-z][a-z0-9._]*) = (.*)$", re.DOTALL)
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
_OF_REBALANCES = ("rebalance.backoff.ms", "rebalance.max.retries", "zookeeper.sync.time.ms")
_OF_A_ZOOKEEPER_CONSUMER = (
    "auto.commit.enable",
    "auto.commit.interval.ms",
    "auto.offset.reset",
    "dual.commit.enabled",
    "offsets.storage",
    "zookeeper.connection.timeout.ms",
    "zookeeper.session.timeout.ms",
    *_OF_REBALANCES,
)
"""Settings of the consumers of Kafka 0.8."""
_MARKS_OF_CONSUMERS = ("zookeeper.connect", "zookeeper.session.timeout.ms", *_OF_REBALANCES)
"""Console consumers have zookeeper.connect on their command line, and not in their file."""


def looks_like_broker(lines: Iterable[str]) -> bool:
    """Whether these are the properties of a broker: one of them is a property that only brokers have."""
    names = set()
    for line in lines:
        if line.strip() and not line.lstrip().startswith(("#", "!")):
            match = _LINE.match(line)
            if match is None:
                return False
            names.add(match[1])
    return any(mark in names for mark in _MARKS) and not _is_of_a_consumer(names)


def looks_like_consumer(lines: Iterable[str]) -> bool:
    """Whether these are the properties of a consumer that registers itself in ZooKeeper."""
    content = [line for line in lines if line.strip() and not line.lstrip().startswith(("#", "!"))]
    return all(map(_LINE.match, content)) and _is_of_a_consumer(read_properties(content))


def _is_of_a_consumer(names: Container[str]) -> bool:
    is_theirs = "group.id" in names and any(mark in names for mark in _MARKS_OF_CONSUMERS)
    return is_theirs and "broker.id" not in names


def read_properties(lines: Iterable[str]) -> dict[str, str]:
    """Names and values, unchanged."""
    return {
        match[1]: match[2].rstrip()
        for line in lines
        if not line.lstrip().startswith(("#", "!")) and (match := _LINE.match(line)) is not None
    }


def node_id(properties: Mapping[str, str]) -> int | None:
    for name in ("node.id", "broker.id"):
        value = properties.get(name, "")
        if _NUMBER.match(value):
            return int(value)
    return None


def observe(properties: Mapping[str, str], source: str, *, release: str = "") -> Observations:
    """The broker, if its id is given, and its settings."""
    observations = Observations()
    if "broker" not in properties.get("process.roles", "broker") and properties["process.roles"] != "[]":
        return observations  # A controller, and nothing else.
    node = node_id(properties)
    of = "broker" if node is None else f"broker {node}"
    for name, value in properties.items():
        if _WANTED.match(name) and value != "null":
            observations.settings.append(Setting(of, name, value, source))
    if node is not None:
        host, port = _address(properties)
        observations.brokers.append(
            BrokerView(node, host, port, properties.get("broker.rack"), release=release, source=source)
        )
    return observations


def read_dump(lines: Iterable[str]) -> dict[str, str]:
    """Names and values."""
    return {match[1]: match[2].rstrip() for line in lines if (match := _DUMP_LINE.match(line)) is not None}


def settings_of_group(dump: dict[str, str], source: str) -> list[Setting]:
    """The configuration of a consumer, as settings of its group."""
    group = dump.get("group.id", "")
    if group in ("", "null"):
        return []
    return [Setting(f"group {group}", name, dump[name], source) for name in _OF_A_GROUP if name in dump]


def settings_of_zookeeper_consumer(values: Mapping[str, str], member: str, source: str) -> list[Setting]:
    """The settings of one consumer of 0.8's kind, or of all of its group if `member` is empty.

    A setting that is left out has its default: that the others are known makes this one known.
    """
    of = f"consumer {member}" if member else f"group {values.get('group.id', '')}"
    wanted = [Setting(of, name, values[name], source) for name in _OF_A_ZOOKEEPER_CONSUMER if name in values]
    return [Setting(of, "group.id", values.get("group.id", ""), source), *wanted]


def zookeeper_member(values: Mapping[str, str]) -> str:
    """Its consumer id, if the properties set it; else a process makes one up."""
    name = values.get("consumer.id", "")
    return f"{values['group.id']}_{name}" if name else ""


def common_settings(settings: Iterable[Setting]) -> Iterator[Setting]:
    """Settings on which all brokers agree, once more as those of "broker"."""
    by_name: dict[str, list[Setting]] = {}
    for setting in settings:
        if setting.of.startswith("broker "):
            by_name.setdefault(setting.name, []).append(setting)
    for same in by_name.values():
        if len({setting.value for setting in same}) == 1:
            yield same[0]._replace(of="broker")


def _listed(value: str) -> list[str]:
    return [part.strip() for part in value.split(",")]


def _address(properties: Mapping[str, str]) -> tuple[str, int]:
    """The address that it announces to clients, so not that of the controller's listener."""
    controllers = set(_listed(properties.get("controller.listener.names", "")))
    for name in ("advertised.listeners", "listeners"):
        for listener in _listed(properties.get(name, "")):
            match = _ADDRESS.search(listener)
            for_clients = listener.partition("://")[0] not in controllers - {""}
            if match is not None and for_clients and match[1] not in _NOWHERE:
                return match[1].strip("[]"), int(match[2])
    host, port = properties.get("advertised.host.name", ""), properties.get("port", "")
    if host in ("", "null"):
        host = properties.get("host.name", "")
    return (host, int(port)) if host not in ("", "null") and _NUMBER.match(port) else ("", -1)
