"""The catalogue: which Kafkas there are, and what differs between them.

A release's jars are pinned in `jars/VERSION.txt`, each with its checksum. Pinned, because resolving them
through their POMs takes Ivy a minute, a plain download five seconds; and because the same jars then run
everywhere. A list holds what Ivy resolves for the artifacts named in its first line (configurations runtime
and master, POMs on), minus Connect and its web server (Jersey, Jetty, HK2, JAXB), which `kafka-tools` asks
for and only `connect-plugin-path` uses, and minus annotations and native libraries that nothing here loads.

Up to 3.9 the releases run with ZooKeeper, whose own jar is among theirs; 4.x runs with KRaft.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from kelpie.real.cluster_errors import ClusterRefused

_LISTS = Path(__file__).parent / "jars"


@dataclass(frozen=True, slots=True)
class Jar:
    organisation: str
    name: str
    revision: str
    sha256: str

    @property
    def file_name(self) -> str:
        return f"{self.name}-{self.revision}.jar"

    def __str__(self) -> str:
        return f"{self.organisation}:{self.name}:{self.revision}"


@dataclass(frozen=True, slots=True)
class Tool:
    """One of Kafka's console tools: its class, and the option that tells it where the cluster is."""

    main: str
    connect: str | None = None


@dataclass(frozen=True)
class Release:
    version: str
    quorum: Literal["kraft", "zookeeper"]
    logging: Literal["log4j", "log4j2"]
    tools: Mapping[str, Tool] = field(repr=False)
    # Before 0.9 a broker had one address, host.name and port, instead of listeners.
    listeners: bool = True
    # Before 0.9 a broker first learned who else there is when the first topic was created.
    knows_brokers_without_topics: bool = True

    @functools.cached_property
    def jars(self) -> tuple[Jar, ...]:
        return pinned(self.version)

    @property
    def zookeeper(self) -> str | None:
        """The version of ZooKeeper that comes with it."""
        return next((jar.revision for jar in self.jars if jar.name == "zookeeper"), None)


def find(version: str) -> Release:
    try:
        return RELEASES[version]
    except KeyError:
        raise ClusterRefused(
            f"There is no Kafka {version!r} in the catalogue. Known: {', '.join(RELEASES)}."
        ) from None


def pinned(title: str) -> tuple[Jar, ...]:
    """The jars of one list."""
    jars = []
    for line in (_LISTS / f"{title}.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            sha256, coordinates = line.split()
            organisation, name, revision = coordinates.split(":")
            jars.append(Jar(organisation, name, revision, sha256))
    return tuple(jars)


_BOOTSTRAP = "--bootstrap-server"
_ZOOKEEPER = "--zookeeper"
_BROKERS = "--broker-list"


_KEEPER_SHELL = Tool("org.apache.zookeeper.ZooKeeperMain", "-server")

_OF_0_8 = {
    "kafka-console-consumer": Tool("kafka.tools.ConsoleConsumer", _ZOOKEEPER),
    "kafka-console-producer": Tool("kafka.tools.ConsoleProducer", _BROKERS),
    "kafka-consumer-offset-checker": Tool("kafka.tools.ConsumerOffsetChecker", _ZOOKEEPER),
    "kafka-dump-log": Tool("kafka.tools.DumpLogSegments"),
    "kafka-get-offsets": Tool("kafka.tools.GetOffsetShell", _BROKERS),
    "kafka-preferred-replica-election": Tool("kafka.admin.PreferredReplicaLeaderElectionCommand", _ZOOKEEPER),
    "kafka-reassign-partitions": Tool("kafka.admin.ReassignPartitionsCommand", _ZOOKEEPER),
    "kafka-topics": Tool("kafka.admin.TopicCommand", _ZOOKEEPER),
    "zookeeper-shell": _KEEPER_SHELL,
}
_OF_0_9 = {
    **_OF_0_8,
    "kafka-acls": Tool("kafka.admin.AclCommand"),
    "kafka-configs": Tool("kafka.admin.ConfigCommand", _ZOOKEEPER),
    "kafka-consumer-groups": Tool("kafka.admin.ConsumerGroupCommand", _ZOOKEEPER),
}
_OF_2_8 = {
    "kafka-acls": Tool("kafka.admin.AclCommand", _BOOTSTRAP),
    "kafka-broker-api-versions": Tool("kafka.admin.BrokerApiVersionsCommand", _BOOTSTRAP),
    "kafka-configs": Tool("kafka.admin.ConfigCommand", _BOOTSTRAP),
    "kafka-console-consumer": Tool("kafka.tools.ConsoleConsumer", _BOOTSTRAP),
    "kafka-console-producer": Tool("kafka.tools.ConsoleProducer", _BOOTSTRAP),
    "kafka-consumer-groups": Tool("kafka.admin.ConsumerGroupCommand", _BOOTSTRAP),
    "kafka-delete-records": Tool("kafka.admin.DeleteRecordsCommand", _BOOTSTRAP),
    "kafka-dump-log": Tool("kafka.tools.DumpLogSegments"),
    "kafka-get-offsets": Tool("kafka.tools.GetOffsetShell", _BROKERS),
    "kafka-leader-election": Tool("kafka.admin.LeaderElectionCommand", _BOOTSTRAP),
    "kafka-log-dirs": Tool("kafka.admin.LogDirsCommand", _BOOTSTRAP),
    "kafka-reassign-partitions": Tool("kafka.admin.ReassignPartitionsCommand", _BOOTSTRAP),
    "kafka-topics": Tool("kafka.admin.TopicCommand", _BOOTSTRAP),
    "kafka-producer-perf-test": Tool("org.apache.kafka.tools.ProducerPerformance"),
    "kafka-verifiable-consumer": Tool("org.apache.kafka.tools.VerifiableConsumer", _BOOTSTRAP),
    "kafka-verifiable-producer": Tool("org.apache.kafka.tools.VerifiableProducer", _BOOTSTRAP),
    "zookeeper-shell": _KEEPER_SHELL,
}
# KAFKA-14525: the tools moved, one after the other, from core to a module of their own.
_OF_3_9 = {
    **_OF_2_8,
    "kafka-console-consumer": Tool("org.apache.kafka.tools.consumer.ConsoleConsumer", _BOOTSTRAP),
    "kafka-consumer-groups": Tool("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", _BOOTSTRAP),
    "kafka-delete-records": Tool("org.apache.kafka.tools.DeleteRecordsCommand", _BOOTSTRAP),
    "kafka-get-offsets": Tool("org.apache.kafka.tools.GetOffsetShell", _BOOTSTRAP),
    "kafka-leader-election": Tool("org.apache.kafka.tools.LeaderElectionCommand", _BOOTSTRAP),
    "kafka-log-dirs": Tool("org.apache.kafka.tools.LogDirsCommand", _BOOTSTRAP),
    "kafka-reassign-partitions": Tool(
        "org.apache.kafka.tools.reassign.ReassignPartitionsCommand", _BOOTSTRAP
    ),
    "kafka-topics": Tool("org.apache.kafka.tools.TopicCommand", _BOOTSTRAP),
    "kafka-transactions": Tool("org.apache.kafka.tools.TransactionsCommand", _BOOTSTRAP),
}
_OF_4_3 = {
    **{name: tool for name, tool in _OF_3_9.items() if name != "zookeeper-shell"},
    "kafka-acls": Tool("org.apache.kafka.tools.AclCommand", _BOOTSTRAP),
    "kafka-broker-api-versions": Tool("org.apache.kafka.tools.BrokerApiVersionsCommand", _BOOTSTRAP),
    "kafka-console-producer": Tool("org.apache.kafka.tools.ConsoleProducer", _BOOTSTRAP),
    "kafka-console-share-consumer": Tool("org.apache.kafka.tools.consumer.ConsoleShareConsumer", _BOOTSTRAP),
    "kafka-dump-log": Tool("org.apache.kafka.tools.DumpLogSegments"),
    "kafka-features": Tool("org.apache.kafka.tools.FeatureCommand", _BOOTSTRAP),
    "kafka-groups": Tool("org.apache.kafka.tools.GroupsCommand", _BOOTSTRAP),
    "kafka-metadata-quorum": Tool("org.apache.kafka.tools.MetadataQuorumCommand", _BOOTSTRAP),
    "kafka-share-groups": Tool("org.apache.kafka.tools.consumer.group.ShareGroupCommand", _BOOTSTRAP),
    "kafka-storage": Tool("kafka.tools.StorageTool"),
    "kafka-streams-groups": Tool("org.apache.kafka.tools.streams.StreamsGroupCommand", _BOOTSTRAP),
}

RELEASES: Mapping[str, Release] = {
    release.version: release
    for release in (
        Release("4.3.1", "kraft", "log4j2", _OF_4_3),
        Release("3.9.2", "zookeeper", "log4j", _OF_3_9),
        Release("2.8.2", "zookeeper", "log4j", _OF_2_8),
        Release("0.9.0.1", "zookeeper", "log4j", _OF_0_9),
        Release(
            "0.8.2.2", "zookeeper", "log4j", _OF_0_8, listeners=False, knows_brokers_without_topics=False
        ),
    )
}
