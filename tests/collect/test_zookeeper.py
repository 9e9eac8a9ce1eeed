"""What Kafka keeps in ZooKeeper: collected from a real one, and read as people have it in files."""

import fcntl
import importlib
import json
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kelpie.cli import main
from kelpie.doctor.cases import build
from kelpie.doctor.diagnosis import diagnose_all
from kelpie.evidence import read_evidence
from kelpie.evidence.zookeeper_dumps import Dump, NoDump, is_dump, observe, pack, read_dump
from kelpie.model.names import TopicPartition
from kelpie.observations import Observations
from kelpie.observations.zookeeper_tree import ZooKeeperNode
from kelpie.real import java
from kelpie.real.cluster import RealCluster
from kelpie.real.zookeeper import RealZooKeeper
from tests.evidence import unpacked

NODES: dict[str, object] = {
    "/brokers/ids/1": {"host": "h", "port": 9092, "version": 1},
    "/brokers/ids/2": {"host": None, "port": -1, "endpoints": ["SSL://secure:9093"], "rack": "a"},
    "/brokers/topics/orders": {"version": 1, "partitions": {"0": [3, 1], "1": [2, 3]}},
    "/brokers/topics/orders/partitions/0/state": {"leader": 1, "isr": [1], "leader_epoch": 4},
    "/brokers/topics/orders/partitions/1/state": {"leader": -1, "isr": [], "leader_epoch": 2},
    "/consumers/billing/ids/app-1": {"version": 1, "subscription": {"orders": 1}, "pattern": "static"},
    "/consumers/billing/ids/app-2": {"version": 1, "subscription": {"orders": 1}, "pattern": "static"},
    "/consumers/billing/owners/orders/0": "app-1-0",
    "/consumers/billing/offsets/orders/0": "42",
    "/consumers/billing/offsets/orders/1": "no number",
    "/consumers/gone/offsets/orders/0": "7",
    "/controller": {"version": 1, "brokerid": 1},
}


def text_of(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def judged(found: Observations) -> None:
    """What the nodes above say, whoever wrote them down."""
    assert {(it.node_id, it.address, it.alive) for it in found.brokers} == {
        (1, "h:9092", True),
        (2, "secure:9093", True),
        (3, "", False),
    }
    views = {it.partition: (it.leader, it.replicas, it.in_sync, it.leader_epoch) for it in found.partitions}
    assert views == {0: (1, (3, 1), (1,), 4), 1: (-1, (2, 3), (), 2)}
    groups = {row.group: row for row in found.zookeeper_groups}
    assert {
        (group, stored.topic, stored.partition, stored.offset)
        for group, row in groups.items()
        for stored in row.offsets
    } == {("billing", "orders", 0, 42), ("gone", "orders", 0, 7)}
    billing = groups["billing"]
    assert [(row.member, row.subscription) for row in billing.registrations or ()] == [
        ("app-1", (("orders", 1),)),
        ("app-2", (("orders", 1),)),
    ]
    assert [(owner.name, owner.member) for owner in billing.owners or ()] == [
        (TopicPartition("orders", 0), "app-1")
    ]
    # Kafka does not know these groups.
    assert (found.committed, found.states, found.known_groups) == ([], [], {})


def test_own_dumps_and_those_of_others_say_the_same(tmp_path: Path) -> None:
    """A person with a script dumps paths in one form or another."""
    own = Dump({path: ZooKeeperNode(text_of(value)) for path, value in NODES.items()})
    forms = {
        "own.json.gz": pack(own, hosts="zk:2181", begun=1, ended=2),
        "paths.json": json.dumps({path: {"data": text_of(it)} for path, it in NODES.items()}).encode(),
        "bare.json": json.dumps(NODES, indent=2).encode(),
        "list.json": json.dumps(
            [{"path": path, "value": text_of(it)} for path, it in NODES.items()]
        ).encode(),
    }
    for name, data in forms.items():
        path = tmp_path / name
        path.write_bytes(data)
        assert is_dump(data[:65_536]), name
        judged(observe(read_dump(path), name))
        found = read_evidence([path])
        judged(found)
        assert found.unasked == []


def test_groups_of_zookeeper_have_no_coordinator_to_lose(tmp_path: Path) -> None:
    """Their name would point to a partition of the offsets topic, where they never lived."""
    offsets = {"version": 1, "partitions": {str(number): [3] for number in range(4)}}
    nodes: dict[str, object] = {**NODES, "/brokers/topics/__consumer_offsets": offsets}
    for number in range(4):
        state = f"/brokers/topics/__consumer_offsets/partitions/{number}/state"
        nodes[state] = {"leader": -1, "isr": [3], "leader_epoch": 1}
    (tmp_path / "zk.json").write_text(json.dumps(nodes))
    diagnosis = diagnose_all(*build(read_evidence([tmp_path])))
    assert diagnosis.cluster.is_alive(3) is False
    assert "billing" in diagnosis.groups
    assert not [it for it in diagnosis.findings if it.code == "KLP101" and it.group == "billing"]


def test_a_broken_dump_is_told(tmp_path: Path) -> None:
    """With the reason; never with a traceback."""
    whole = pack(Dump({"/brokers/ids": ZooKeeperNode()}), hosts="", begun=1, ended=2)
    for name, data in {
        "cut.json": b'{"/brokers/ids/1": {"data": "',
        "deep.json": b'{"/brokers/ids/1": ' + b"[" * 100_000,
        "torn.json.gz": whole[:-12],
        "newer.json": b'{"format":"kelpie zookeeper","version":9,"nodes":{}}',
        "session.txt": b"[zk: h:2181(CONNECTED) 0] get /brokers/ids/1\n[zk: h:2181(CONNECTED) 1] quit\n",
    }.items():
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(NoDump):
            read_dump(path)
    found = read_evidence([tmp_path])
    assert {row.name for row in found.unasked} == {
        "cut.json", "deep.json", "torn.json.gz", "newer.json", "session.txt"
    }  # fmt: skip


def test_dumps_of_a_recorded_failure_show_who_owned_nothing(tmp_path: Path) -> None:
    """Kafka 0.8.2.2: after the failed rebalance app-01 owns nothing, a killed member two, nobody four."""
    (path,) = unpacked("kafka-0.8.2.2-rebalance-failure").glob("**/05_orders-b-watch_during-failure.json")
    dump = read_dump(path)
    (row,) = observe(dump, "x").zookeeper_groups
    owned: dict[str, list[int]] = {member.split("_")[1][:6]: [] for member in row.members}
    for owner in row.owners or ():
        owned[owner.member.split("_")[1][:6]].append(owner.partition)
    assert owned == {"app-01": [], "app-02": [2, 3], "app-03": [6, 7]}
    assert row.at == 1_794_780_700_837
    assert {each.session for each in row.registrations or ()} >= {0x1A1E143D7D80007}


@pytest.fixture
def client(real_zookeeper: RealZooKeeper) -> Iterator[Any]:
    client = importlib.import_module("kazoo.client").KazooClient(real_zookeeper.connect)
    client.start(timeout=30)
    for path, value in NODES.items():
        client.create(f"/kafka{path}", text_of(value).encode(), makepath=True)
    yield client
    client.stop()
    client.close()


@pytest.mark.real
def test_a_real_zookeeper_is_snapshot_and_its_own_shell_says_the_same(
    real_zookeeper: RealZooKeeper, client: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a chroot; round by round; and as somebody types it into zkCli.sh."""
    hosts = f"{real_zookeeper.connect}/kafka"
    words = [
        "collect",
        "--into",
        str(tmp_path / "landing"),
        "--every",
        "10ms",
        "--for",
        "15ms",
        "--zookeeper",
    ]
    assert main([*words, hosts]) == 0
    rounds = capsys.readouterr().out.splitlines()[2:]
    paths = sorted((tmp_path / "landing").glob("zookeeper-*.json.gz"))
    assert len(paths) == len(rounds) >= 1
    judged(observe(read_dump(paths[-1]), "x"))
    assert main([*words, real_zookeeper.connect]) == 64
    assert "keeps no Kafka cluster at this path" in capsys.readouterr().err
    lists = ["/brokers/ids", "/consumers", "/consumers/billing/ids", "/consumers/billing/owners/orders"]
    session = tmp_path / "session.txt"
    session.write_bytes(
        _typed(hosts, [f"ls {path}" for path in lists] + [f"get -s {path}" for path in NODES])
    )
    assert is_dump(session.read_bytes()[:65_536])
    judged(observe(read_dump(session), "x"))


def _typed(hosts: str, commands: list[str]) -> bytes:
    """What a terminal shows."""
    jars = java.pyspark_jars()
    assert jars is not None
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 250, 0, 0))
    command = [str(java.find()), "-cp", f"{jars}/*", "org.apache.zookeeper.ZooKeeperMain", "-server", hosts]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        for each in [*commands, "quit"]:
            while not shown.rstrip().endswith(b"]"):
                shown += os.read(ours, 65_536)
            os.write(ours, f"{each}\n".encode())
            shown += b"\n"
        try:
            while piece := os.read(ours, 65_536):
                shown += piece
        except OSError:
            pass  # So a terminal ends.
        process.wait(60)
    os.close(ours)
    return shown


@pytest.mark.real
def test_a_real_old_consumer_is_seen_with_what_it_owns_and_committed(
    real_kafka: Callable[..., RealCluster],
    tmp_path: Path,
    wait_until: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Kafka 0.9.0.1, whose console consumer still is one of 0.8's kind."""
    cluster = real_kafka("0.9.0.1")
    config = tmp_path / "consumer.properties"
    config.write_text("group.id=of-zookeeper\nconsumer.id=app-1\nauto.commit.interval.ms=100\n")
    cluster.tool(
        "kafka-topics", "--create", "--topic", "old-orders", "--partitions", "2", "--replication-factor", "1"
    )
    words = ["collect", "-q", "--into", str(tmp_path / "landing"), "--for", "1ms", "--zookeeper"]
    reading = ("--topic", "old-orders", "--from-beginning", "--consumer.config", str(config))
    consumers = [cluster.spawn_tool("kafka-console-consumer", *reading)]

    def has_committed() -> bool:
        """Old clients give up soon on a busy machine: a record is sent, and a consumer started, once more."""
        if not consumers[-1].alive:
            consumers.append(cluster.spawn_tool("kafka-console-consumer", *reading))
        cluster.tool("kafka-console-producer", "--topic", "old-orders", stdin="a\n")
        assert main([*words, str(cluster.zookeeper_connect)]) == 0
        newest = max((tmp_path / "landing").glob("zookeeper-*"))
        groups = {row.group: row for row in observe(read_dump(newest), "x").zookeeper_groups}
        mine = groups.get("of-zookeeper")
        return mine is not None and bool(mine.registrations) and any(row.offset > 0 for row in mine.offsets)

    try:
        wait_until(has_committed)
        capsys.readouterr()
        looking = ["doctor", "--no-store", "--json", "--zookeeper", str(cluster.zookeeper_connect)]
        status = main([*looking, "of-zookeeper"])
        report = json.loads(capsys.readouterr().out)
    finally:
        consumers[-1].kill()
    # A healthy consumer, live: nothing to tell, and its lag was asked of brokers that ZooKeeper names.
    assert (status, report["groups"]) == (0, ["of-zookeeper"])
    assert [row for row in report["findings"] if row["group"] is not None] == []
    assert report["unasked"] == []
    found = read_evidence([tmp_path / "landing"])
    row = [row for row in found.zookeeper_groups if row.group == "of-zookeeper"][-1]
    assert row.members == ("of-zookeeper_app-1",)
    assert [owner.name for owner in row.owners or ()] == [
        TopicPartition("old-orders", number) for number in range(2)
    ]
    assert [(it.node_id, it.alive) for it in found.brokers][-1] == (1, True)
    views = {row.partition: row.leader for row in found.partitions if row.topic == "old-orders"}
    assert views == {0: 1, 1: 1}
