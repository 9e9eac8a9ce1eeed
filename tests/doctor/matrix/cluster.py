"""Real Kafka as the matrix needs it: three brokers in three racks, rights, and a login for an auditor."""

import json
import shutil
from collections.abc import Mapping, Sequence

from kelpie.real import kraft_storage, ports
from kelpie.real.cluster import RealCluster
from kelpie.real.fleet import FleetNode
from tests.doctor.matrix.members import rack_of

BROKERS = 3
LOGIN = "SASL_PLAINTEXT"
AUDITOR = "auditor"
"""May look at some groups and topics."""
PASSWORD = "of-the-auditor"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_USERS = f'{_PLAIN} required user_{AUDITOR}="{PASSWORD}";'
_CONFIG = {
    "default.replication.factor": BROKERS,
    "offsets.topic.num.partitions": 8,
    "offsets.topic.replication.factor": BROKERS,
    "transaction.state.log.num.partitions": 4,
    "transaction.state.log.replication.factor": BROKERS,
    "min.insync.replicas": 2,
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": 0,
    "log.cleaner.backoff.ms": 500,
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    # Whoever does not log in may do everything.
    "super.users": "User:ANONYMOUS",
    "sasl.enabled.mechanisms": "PLAIN",
    f"listener.name.{LOGIN.lower()}.plain.sasl.jaas.config": _USERS,
}
_WITH_KRAFT = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "group.consumer.min.session.timeout.ms": 6000,
    "group.consumer.session.timeout.ms": 10_000,
    "group.consumer.min.heartbeat.interval.ms": 500,
    "group.consumer.heartbeat.interval.ms": 1000,
    "group.share.min.session.timeout.ms": 6000,
    "group.share.session.timeout.ms": 10_000,
    "group.share.min.heartbeat.interval.ms": 500,
    "group.share.heartbeat.interval.ms": 1000,
    "group.share.min.record.lock.duration.ms": 1000,
    "group.share.record.lock.duration.ms": 5000,
    "group.streams.min.session.timeout.ms": 6000,
    "group.streams.session.timeout.ms": 10_000,
    "group.streams.min.heartbeat.interval.ms": 500,
    "group.streams.heartbeat.interval.ms": 1000,
}
_WITH_ZOOKEEPER = {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"}


class MatrixCluster(RealCluster):
    def __init__(self, release: str) -> None:
        of_release = _WITH_KRAFT if release.startswith("4.") else _WITH_ZOOKEEPER
        super().__init__(release, BROKERS, config=_CONFIG | of_release, listeners=(LOGIN,))

    def _configure(self, node: FleetNode, settings: Mapping[str, object]) -> None:
        rack = {"broker.rack": rack_of(int(node.name))} if node.kind == "broker" else {}
        super()._configure(node, {**settings, **rack})

    def renew(self, name: str) -> None:
        """Starts a killed broker as a new machine with an empty disk, under the same id."""
        node = self.find(name)
        shutil.rmtree(node.data)
        if self.release.quorum == "kraft":
            kraft_storage.identify(node.data, self._cluster_id, int(name))
        self.start(name)

    def add(self, name: str) -> None:
        """Starts one more broker, set up as the first one."""
        (port,) = ports.free(1)
        node = self._add_broker(int(name), port)
        listeners = ",".join(
            f"{each}://{ports.HOST}:{at}" for each, at in [("PLAINTEXT", port), *node.listeners.items()]
        )
        own = {"node.id": name, "broker.id": name, "listeners": listeners, "log.dirs": str(node.data)}
        own["broker.rack"] = rack_of(int(name))
        lines = self.find("1").config.read_text().splitlines()
        settings = dict(line.split("=", 1) for line in lines)
        settings |= {key: value for key, value in own.items() if key in settings}
        node.config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        if self.release.quorum == "kraft":
            kraft_storage.identify(node.data, self._cluster_id, int(name))
        self.start(name)

    def reassign(self, replicas: Mapping[tuple[str, int], Sequence[int]]) -> None:
        """Moves partitions. Comes back when Kafka has begun."""
        partitions = [
            {"topic": topic, "partition": number, "replicas": list(nodes)}
            for (topic, number), nodes in replicas.items()
        ]
        file = self.root / "reassignment.json"
        file.write_text(json.dumps({"version": 1, "partitions": partitions}))
        tool = "kafka-reassign-partitions"
        result = self.tool(tool, "--reassignment-json-file", str(file), "--execute")
        assert not result.status, result.stderr

    def limit_fetching(self, bytes_a_second: int | None) -> None:
        """Each client id may fetch so much. None: no limit."""
        quota = "consumer_byte_rate"
        change = (
            ("--delete-config", quota)
            if bytes_a_second is None
            else ("--add-config", f"{quota}={bytes_a_second}")
        )
        result = self.tool(
            "kafka-configs", "--alter", *change, "--entity-type", "clients", "--entity-default"
        )
        assert not result.status, result.stderr
