"""Records what Kafka 4.3.1's own console tools say to a 4.3.1 broker: `python -m tests.recording.java_tools`.

Every scene is one run of one tool. The recording is kept in tests/evidence and read by the tests of the
codec; it is made anew only when Kafka's newest release changes.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

from kelpie.real.cluster import RealCluster
from tests.recording import conversation
from tests.recording.proxy import HOST, Proxy

VERSION = "4.3.1"
FILE = Path(__file__).parent.parent / "evidence" / f"java-{VERSION}-conversation.jsonl.xz"
RECORDS = "".join(f"key-{number}:value-{number}\n" for number in range(50))


class Session:
    def __init__(self, cluster: RealCluster, proxy: Proxy) -> None:
        self._cluster = cluster
        self._proxy = proxy
        self._address = f"{HOST}:{proxy.port}"

    def file(self, name: str, content: object) -> str:
        path = self._cluster.root / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    def tool(self, name: str, *arguments: str, stdin: str = "", address: str = "--bootstrap-server") -> None:
        self._proxy.scene = " ".join((name, *arguments)).replace(str(self._cluster.root), "DIR")
        given = (address, self._address) if address else ()
        result = self._cluster.tool(name, *given, *arguments, stdin=stdin, limit_s=90)
        print(f"{result.status} {self._proxy.scene}")
        if result.status:
            print(result.stdout, result.stderr, file=sys.stderr)

    @property
    def properties(self) -> str:
        return self.file("client.properties", f"bootstrap.servers={self._address}\n")


def topics(session: Session) -> None:
    session.tool("kafka-broker-api-versions")
    session.tool("kafka-topics", "--create", "--topic", "orders", "--partitions", "3")
    session.tool("kafka-topics", "--create", "--topic", "payments", "--config", "retention.ms=60000")
    session.tool("kafka-topics", "--list")
    session.tool("kafka-topics", "--describe")
    session.tool("kafka-topics", "--alter", "--topic", "payments", "--partitions", "2")
    session.tool("kafka-topics", "--describe", "--topic", "absent")


def producers(session: Session) -> None:
    keyed = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        session.tool(
            "kafka-console-producer", "--topic", "orders", "--compression-codec", codec, *keyed, stdin=RECORDS
        )
    session.tool(
        "kafka-console-producer", "--topic", "payments", "--request-required-acks", "1", stdin="a\nb\n"
    )
    session.tool(
        "kafka-producer-perf-test",
        *("--topic", "orders", "--num-records", "20", "--record-size", "20", "--throughput", "-1"),
        *("--command-config", session.properties, "--transaction-duration-ms", "50"),
        *("--transactional-id", "transactions"),
        address="",
    )


def consumers(session: Session) -> None:
    until = ("--from-beginning", "--max-messages", "60", "--timeout-ms", "20000")
    session.tool("kafka-console-consumer", "--topic", "orders", "--group", "classic", *until)
    session.tool(
        "kafka-console-consumer",
        *("--topic", "orders", "--group", "classic", "--isolation-level", "read_committed"),
        *("--max-messages", "60", "--timeout-ms", "20000"),
    )
    session.tool(
        "kafka-console-consumer",
        *("--topic", "orders", "--group", "static", *until),
        *("--command-property", "group.instance.id=one"),
    )
    session.tool(
        "kafka-console-consumer",
        *("--topic", "orders", "--group", "newer", *until),
        *("--command-property", "group.protocol=consumer"),
    )
    session.tool(
        "kafka-console-consumer",
        *("--topic", "orders", "--group", "patient", "--timeout-ms", "2000"),
        *("--command-property", "heartbeat.interval.ms=200"),
    )
    session.tool(
        "kafka-console-consumer", "--topic", "orders", "--partition", "1", "--offset", "0", *until[1:]
    )


def groups(session: Session) -> None:
    name = "kafka-consumer-groups"
    session.tool("kafka-groups", "--list")
    for how in (["--list"], ["--list", "--state"]):
        session.tool(name, *how)
    for how in ([], ["--offsets"], ["--members", "--verbose"], ["--state"]):
        session.tool(name, "--describe", "--all-groups", *how)
    session.tool(name, "--describe", "--group", "absent")
    session.tool(
        name, "--reset-offsets", "--group", "classic", "--topic", "orders", "--to-earliest", "--execute"
    )
    session.tool(
        name,
        "--reset-offsets",
        "--group",
        "classic",
        "--topic",
        "orders",
        "--by-duration",
        "PT1H",
        "--execute",
    )
    session.tool(name, "--delete-offsets", "--group", "static", "--topic", "orders")
    session.tool(name, "--delete", "--group", "static")


def administration(session: Session) -> None:
    one = [{"topic": "orders", "partition": 0}]
    session.tool("kafka-get-offsets", "--topic", "orders")
    session.tool("kafka-get-offsets", "--topic", "orders", "--time", "max-timestamp")
    configs = "kafka-configs"
    session.tool(configs, "--describe", "--entity-type", "topics", "--entity-name", "orders", "--all")
    session.tool(configs, "--describe", "--entity-type", "brokers", "--entity-name", "1")
    session.tool(
        configs,
        "--alter",
        "--entity-type",
        "topics",
        "--entity-name",
        "orders",
        "--add-config",
        "retention.ms=9",
    )
    session.tool(
        configs,
        "--alter",
        "--entity-type",
        "clients",
        "--entity-name",
        "c",
        "--add-config",
        "request_percentage=9",
    )
    session.tool(configs, "--describe", "--entity-type", "clients")
    session.tool(
        configs,
        *("--alter", "--entity-type", "users", "--entity-name", "alice"),
        *("--add-config", "SCRAM-SHA-256=[password=secret]"),
    )
    session.tool(configs, "--describe", "--entity-type", "users")
    session.tool(configs, "--describe", "--entity-type", "groups")
    session.tool(
        "kafka-acls", "--add", "--allow-principal", "User:alice", "--operation", "Read", "--topic", "orders"
    )
    session.tool("kafka-acls", "--list")
    session.tool("kafka-acls", "--remove", "--force", "--topic", "orders")
    session.tool("kafka-log-dirs", "--describe")
    session.tool("kafka-leader-election", "--election-type", "preferred", "--all-topic-partitions")
    plan = session.file(
        "plan.json", {"version": 1, "partitions": [{**one[0], "replicas": [1], "log_dirs": ["any"]}]}
    )
    session.tool("kafka-reassign-partitions", "--execute", "--reassignment-json-file", plan)
    session.tool("kafka-reassign-partitions", "--list")
    offsets = session.file("offsets.json", {"version": 1, "partitions": [{**one[0], "offset": 3}]})
    session.tool("kafka-delete-records", "--offset-json-file", offsets)
    session.tool("kafka-features", "describe")
    session.tool("kafka-metadata-quorum", "describe", "--status")
    session.tool("kafka-metadata-quorum", "describe", "--replication")
    for action in (
        ["list"],
        ["describe", "--transactional-id", "transactions"],
        ["describe-producers", "--topic", "orders", "--partition", "0"],
    ):
        session.tool("kafka-transactions", *action)
    session.tool("kafka-topics", "--delete", "--topic", "payments")


SCENES: list[Callable[[Session], None]] = [topics, producers, consumers, groups, administration]


def main() -> None:
    config = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
    config |= {"super.users": "User:ANONYMOUS"}
    with RealCluster(VERSION, config=config) as cluster:
        proxy = Proxy(cluster.brokers[0].port)
        with proxy.running():
            session = Session(cluster, proxy)
            for scene in SCENES:
                scene(session)
        conversation.save(proxy.frames, FILE)
    print(f"{len(proxy.frames)} frames in {FILE.name}, {FILE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
