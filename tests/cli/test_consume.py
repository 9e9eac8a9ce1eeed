"""`kelpie consume` as a person uses it: records on standard output, what happens on standard error."""

import asyncio
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable

import pytest

from kelpie.cli import main
from kelpie.cli.consume_output import RecordPrinter
from kelpie.client.settings import Settings
from kelpie.consumer.effects import ConsumedRecord
from kelpie.lab import SyncCluster
from kelpie.model.names import TopicPartition
from kelpie.real.cluster import RealCluster
from kelpie.real.ports import free
from kelpie.wire.records import TimestampType
from tests.client.consumer.producing import produce
from tests.client.zookeeper_client import kazoo_client
from tests.client.zookeeper_consumer.group import GroupTree


def _produce(bootstrap: str, topic: str, *values: str) -> None:
    asyncio.run(produce(Settings.of(bootstrap), TopicPartition(topic, 0), values))


def _consume(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["consume", *arguments])
    return status, *capfd.readouterr()


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid.uuid4().hex[:8]}"


def test_a_group_of_today_is_read_and_goes_on_where_it_stood(capfd: pytest.CaptureFixture[str]) -> None:
    """What was not printed, because enough had been, is not committed."""
    with SyncCluster(1, config={"group.initial.rebalance.delay.ms": 0}) as cluster:
        cluster.create_topic("orders", 1, 1)
        address = cluster.bootstrap_servers
        _produce(address, "orders", "a", "b", "c")
        common = ("-b", address, "--group", "g", "--topic", "orders", "--from-beginning")
        status, out, told = _consume(capfd, *common, "--max-messages", "2")
        assert (status, out) == (0, "a\nb\n")
        assert told.index("JoinGroup(g") < told.index("Reads orders-0.") < told.index("Read 2 records.")
        status, out, told = _consume(capfd, *common, "--max-messages", "2", "--idle", "2", "-q")
        assert (status, out, told) == (1, "c\n", ""), "fewer came than were asked for"
        assert _consume(capfd, *common, "--idle", "2", "--count")[:2] == (0, "total             0\n")


@pytest.mark.real
def test_a_group_of_kafka_0_8_is_read_and_leaves_nothing_behind(
    capfd: pytest.CaptureFixture[str], real_kafka: Callable[..., RealCluster], topic: str
) -> None:
    """The same command; it says what it does in ZooKeeper."""
    cluster = real_kafka("0.9.0.1")
    hosts = str(cluster.zookeeper_connect)
    _produce(cluster.bootstrap_servers, topic, "a", "b\x1b[2J", "c")
    common = ("--zookeeper", hosts, "--group", topic, "--topic", topic, "--from-beginning")
    status, out, told = _consume(capfd, *common, "--max-messages", "2")
    assert (status, out) == (0, "a\nb\x1b[2J\n"), "raw, where no terminal is"
    assert "Rebalances, try #0: the consumer starts." in told
    assert "Closes: stops reading, commits, ends the session." in told
    with kazoo_client(hosts) as client:
        tree = GroupTree(client, topic, topic)
        assert (tree.members(), tree.owners(), tree.offsets()) == (set(), {}, {0: 2})
        status, out, _ = _consume(capfd, *common, "--count", "--max-messages", "1")
        assert (status, out.split()) == (0, [f"{topic}-0", "1", "total", "1"])
        assert tree.offsets() == {0: 3}


@pytest.mark.real
def test_ctrl_c_leaves_the_group_at_once(
    real_kafka: Callable[..., RealCluster], topic: str, wait_until: Callable[..., None]
) -> None:
    """Otherwise the others would wait for the end of the session."""
    cluster = real_kafka("0.9.0.1")
    hosts = str(cluster.zookeeper_connect)
    _produce(cluster.bootstrap_servers, topic, "a")
    command = ["consume", "--zookeeper", hosts, "--group", topic, "--topic", topic, "-q"]
    process = subprocess.Popen([sys.executable, "-m", "kelpie", *command], stderr=subprocess.PIPE, text=True)
    with process, kazoo_client(hosts) as client:
        tree = GroupTree(client, topic, topic)
        wait_until(tree.owners)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert (tree.members(), tree.owners()) == (set(), {})
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_terminals_get_no_control_characters(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A record may hold anything, and a terminal obeys it."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    printer = RecordPrinter()
    for value in (b"\x1b[2Jclear", b"two\nlines", b"\xff", None):
        printer.show([ConsumedRecord("t", 0, 0, 0, TimestampType.NONE, None, value)])
    assert capsys.readouterr().out == "\\x1b[2Jclear\ntwo\\x0alines\n\\xff\nnull\n"


@pytest.mark.parametrize(
    ("arguments", "status", "reason"),
    [
        ((), 64, "Name one of the two"),
        (("-b", "x:1", "--zookeeper", "x:2"), 64, "Name one of the two"),
        (("--zookeeper", "127.0.0.1:1", "--timeout", "0.2"), 3, "did not answer within 0.2 s"),
        (("--zookeeper", "127.0.0.1:1", "--group", "a/b"), 64, "group.id 'a/b' cannot be the name of a node"),
        (("-b", f"127.0.0.1:{free(1)[0]}"), 3, "nothing listens there"),
    ],
)
def test_what_cannot_work_is_said_in_one_sentence(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], status: int, reason: str
) -> None:
    """No traceback for a mistake, or for a cluster that is down."""
    assert main(["consume", "--group", "g", "--topic", "t", *arguments]) == status
    assert reason in " ".join(capsys.readouterr().err.split())
