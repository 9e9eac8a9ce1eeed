"""A group of real console consumers of Kafka 0.8.2.2, some of them guarded, and what ZooKeeper has of it."""

import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from kelpie.client.zookeeper_nodes import TreeReader
from kelpie.real.cluster import RealCluster

PARTITIONS = 6
# As in the recording, but for the session, of 30 s there. It must last until a JVM has started.
SETTINGS = {
    "zookeeper.session.timeout.ms": 12_000,
    "rebalance.max.retries": 2,
    "rebalance.backoff.ms": 500,
    "auto.commit.interval.ms": 200,
}


class ConsoleGroup:
    """`settings` win over SETTINGS."""

    def __init__(
        self,
        cluster: RealCluster,
        name: str,
        folder: Path,
        tree: TreeReader,
        stack: ExitStack,
        *,
        settings: Mapping[str, int] | None = None,
    ) -> None:
        self._cluster, self.name, self._folder = cluster, name, folder
        self._tree, self._stack = tree, stack
        self._settings = {**SETTINGS, **(settings or {})}
        self.hosts = str(cluster.zookeeper_connect)
        created = cluster.tool(
            *("kafka-topics", "--create", "--topic", name),
            *("--partitions", str(PARTITIONS), "--replication-factor", "1"),
        )
        assert created.status == 0, created.stdout + created.stderr

    def _command(self, member: str) -> list[str]:
        file = self._folder / f"{member}.properties"
        settings = {"group.id": self.name, "consumer.id": member, **self._settings}
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

    def members(self) -> set[str]:
        """Those that are registered: killed ones until their session expires."""
        nodes = self._tree.tree(f"/consumers/{self.name}/ids") or {}
        return {path.rpartition("/")[2].removeprefix(f"{self.name}_") for path in nodes}

    def owners(self) -> dict[int, str]:
        """The member that owns each partition."""
        nodes = self._tree.tree(f"/consumers/{self.name}/owners/{self.name}") or {}
        return {
            int(path.rpartition("/")[2]): node.value.decode().removeprefix(f"{self.name}_").removesuffix("-0")
            for path, node in nodes.items()
        }

    def shares(self) -> dict[str, int]:
        """How many partitions each member owns."""
        return dict(Counter(self.owners().values()))

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
