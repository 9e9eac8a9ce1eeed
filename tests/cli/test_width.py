"""Every command that only reads, on terminals of 80 and of 160 columns."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kelpie.cli.catalogue import COMMANDS
from kelpie.client import SyncAdmin
from kelpie.lab import SyncCluster
from kelpie.model.cells import cells
from kelpie.model.names import TopicPartition
from tests.cli.screen import Screen
from tests.evidence import unpacked

LONG = "com.example.retail.checkout.payments-settlement-service.production.eu-west-1"
WIDE = "订单服务-结算"
TOPIC = "com.example.retail.checkout.payment-authorised.v2"
OF_THE_CLUSTER = (
    ("doctor",),
    ("doctor", "--full"),
    ("groups",),
    ("groups", LONG),
    ("where", "billing", LONG, WIDE),
    ("probe", "billing", "--timeout", "20"),
    ("peek", TOPIC, "0", "0"),
    ("rehome", LONG),
    ("reset", LONG, "--to-earliest"),
    ("elect", f"{TOPIC}-0", "--unclean"),
    ("reassign-offsets-topic",),
    ("ack", "--list"),
    ("undo", "--list"),
)
ALONE = (
    ("explain",),
    ("explain", "KLP504"),
    ("names", "--partition", "43", "--partitions", "50", "--prefix", LONG),
    ("where", LONG, "--partitions", "50"),
    ("lab", "list"),
    ("real", "list"),
    ("simulate", "zookeeper-rebalance", "--seeds", "2", "--members", "2"),
    *((command, "--help") for command in COMMANDS),
)
_AT_ONCE = {"group.initial.rebalance.delay.ms": 0}
_COMMAND = re.compile(r"\s*(\$ )?(kelpie|kafka-[a-z-]+\.sh|zookeeper-shell\.sh|curl) .*")


@pytest.fixture(scope="module")
def cluster() -> Iterator[SyncCluster]:
    """One of three brokers is dead; a group and a topic have long names, another group a wide one."""
    with SyncCluster(3, replication=3, offsets_partitions=4, config=_AT_ONCE) as cluster:
        cluster.create_topic("orders", partitions=2)
        cluster.create_topic(TOPIC, partitions=2)
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        for _ in range(10):
            producer.produce(TOPIC, b"v", partition=0)
        assert producer.flush(30) == 0
        with SyncAdmin(cluster.bootstrap_servers, patience_s=30) as admin:
            for group in ("billing", LONG, WIDE):
                names = [TopicPartition(topic, number) for topic in ("orders", TOPIC) for number in (0, 1)]
                admin.commit(group, dict.fromkeys(names, 0))
        cluster.kill(3)
        yield cluster


@pytest.fixture(params=[80, 160])
def screen(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Screen:
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "KELPIE_BOOTSTRAP"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("KELPIE_STATE", str(tmp_path))
    return Screen(monkeypatch, request.param)


def too_long(lines: list[str], columns: int) -> list[str]:
    """Commands to paste stay whole, and so does a name or a path that alone is wider than the terminal."""
    return [
        line
        for line in lines
        if cells(line) > columns and not _COMMAND.fullmatch(line) and len(line.lstrip(" -").split()) > 1
    ]


def test_what_a_cluster_shows_fits_the_terminal(screen: Screen, cluster: SyncCluster) -> None:
    """With names that are longer than a column, and with letters that take two cells."""
    for words in OF_THE_CLUSTER:
        lines = screen.run([*words, "-b", cluster.bootstrap_servers])
        assert any(lines), words
        assert too_long(lines, screen.columns) == [], words


def test_what_needs_no_cluster_fits_the_terminal(screen: Screen) -> None:
    """Help of every command, too."""
    for words in ALONE:
        lines = screen.run(words)
        assert any(lines), words
        assert too_long(lines, screen.columns) == [], words


@pytest.mark.parametrize("screen", [80], indirect=True)
@pytest.mark.parametrize("recording", ["kafka-0.8.2.2-rebalance-failure", "kop-3.2-scrapes"])
def test_what_files_show_fits_the_terminal(screen: Screen, recording: str) -> None:
    """Groups of ZooKeeper, and KoP's."""
    words = ["doctor", "--full", "--evidence", str(unpacked(recording)), "--no-store"]
    assert too_long(screen.run(words), screen.columns) == []
