"""`kelpie guard` brings real consumers of Kafka 0.8.2.2 back, after real ConsumerRebalanceFailedExceptions.

A member fails exactly if its new range, computed with a killed member still in the list, meets that member's
old range: its owner nodes stay until its session expires. Six partitions; "b" is killed, another one joins:

    before         a: -        b: 0 1 2  c: 3 4 5
    "d" joins      b: 0 1      c: 2 3    d: 4 5       c, which runs, meets 2       (watcher)
    "a" joins      a: 0 1      b: 2 3    c: 4 5       a, which starts, meets 0 1   (start-up)
"""

import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kelpie.client.zookeeper_nodes import TreeReader
from kelpie.real.cluster import RealCluster
from tests.client.zookeeper_client import kazoo_client

pytestmark = pytest.mark.real
LIMIT_S = 90.0
PARTITIONS = 6
# As in the recording, but for the session, of 30 s there. It must last until a JVM has started.
SETTINGS = {
    "zookeeper.session.timeout.ms": 12_000,
    "rebalance.max.retries": 2,
    "rebalance.backoff.ms": 500,
    "auto.commit.interval.ms": 200,
}
Wait = Callable[..., None]


class Group:
    """A group of console consumers, some of them guarded, and what ZooKeeper has of it."""

    def __init__(
        self, cluster: RealCluster, name: str, folder: Path, tree: TreeReader, stack: ExitStack
    ) -> None:
        self._cluster, self.name, self._folder = cluster, name, folder
        self._tree, self._stack = tree, stack
        created = cluster.tool(
            *("kafka-topics", "--create", "--topic", name),
            *("--partitions", str(PARTITIONS), "--replication-factor", "1"),
        )
        assert created.status == 0, created.stdout + created.stderr

    def _command(self, member: str) -> list[str]:
        file = self._folder / f"{member}.properties"
        settings = {"group.id": self.name, "consumer.id": member, **SETTINGS}
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        words = ["--topic", self.name, "--consumer.config", str(file)]
        return self._cluster.tool_command("kafka-console-consumer", words)

    def start(self, member: str, *guard: str) -> subprocess.Popen[bytes]:
        """Output and log go to MEMBER.out and MEMBER.err."""
        out = self._stack.enter_context((self._folder / f"{member}.out").open("wb"))
        errors = self._stack.enter_context((self._folder / f"{member}.err").open("wb"))
        process = subprocess.Popen([*guard, *self._command(member)], stdout=out, stderr=errors)
        self._stack.callback(_end, process)
        return process

    def start_guarded(self, member: str) -> subprocess.Popen[bytes]:
        return self.start(member, sys.executable, "-m", "kelpie", "guard", "--grace", "10s", "--")

    def said(self, member: str) -> str:
        return (self._folder / f"{member}.err").read_text()

    def records(self, member: str) -> list[str]:
        return (self._folder / f"{member}.out").read_text().splitlines()

    def shares(self) -> dict[str, int]:
        """How many partitions each member owns."""
        nodes = self._tree.tree(f"/consumers/{self.name}/owners/{self.name}") or {}
        owners = [
            node.value.decode().removeprefix(f"{self.name}_").removesuffix("-0") for node in nodes.values()
        ]
        return dict(Counter(owners))

    def produce(self, *records: str) -> None:
        sent = self._cluster.tool(
            *("kafka-console-producer", "--topic", self.name, "--request-required-acks", "1"),
            *("--property", "parse.key=true", "--property", "key.separator=|"),
            stdin="".join(f"{number}|{record}\n" for number, record in enumerate(records)),
        )
        assert sent.status == 0, sent.stderr


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@pytest.fixture
def group(real_kafka: Callable[..., RealCluster], tmp_path: Path) -> Iterator[Group]:
    cluster = real_kafka("0.8.2.2")
    assert cluster.zookeeper_connect is not None
    hosts = cluster.zookeeper_connect
    name = f"guarded-{uuid.uuid4().hex[:8]}"
    with kazoo_client(hosts) as client, ExitStack() as stack:
        yield Group(cluster, name, tmp_path, TreeReader(client, hosts, 10), stack)


@pytest.mark.parametrize(
    ("guarded", "joining", "form"),
    [("c", "d", "watcher"), pytest.param("a", "a", "start-up", marks=pytest.mark.long)],
)
def test_a_consumer_whose_rebalance_failed_owns_partitions_again_and_reads(
    group: Group, guarded: str, joining: str, form: str, wait_until: Wait
) -> None:
    """After the failure such a process sits there, or ends with 0, until somebody restarts it."""
    killed = group.start("b")
    wait_until(lambda: group.shares() == {"b": 6}, limit_s=LIMIT_S)
    processes = {"c": group.start_guarded("c") if guarded == "c" else group.start("c")}
    wait_until(lambda: group.shares() == {"b": 3, "c": 3}, limit_s=LIMIT_S)

    killed.kill()
    processes[joining] = group.start_guarded(joining) if guarded == joining else group.start(joining)
    wait_until(lambda: f"saw rebalance-failed ({form})" in group.said(guarded), limit_s=LIMIT_S)
    wait_until(lambda: group.shares() == dict.fromkeys(processes, 3), limit_s=LIMIT_S)

    failure = "kafka.common.ConsumerRebalanceFailedException: x can't rebalance after 2 retries"
    restarts = group.said(guarded).count("starts it again in")
    group.produce(*(f"record {number} {failure}" for number in range(60)))
    read = {f"record {number} {failure}" for number in range(60)}
    wait_until(lambda: set().union(*map(group.records, processes)) >= read, limit_s=LIMIT_S)
    assert group.records(guarded), "the consumer that was brought back reads its share"
    assert group.said(guarded).count("starts it again in") == restarts, "a record restarts nothing"
    assert [process.poll() for process in processes.values()] == [None, None]
