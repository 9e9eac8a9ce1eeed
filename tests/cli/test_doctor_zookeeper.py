"""`kelpie doctor --zookeeper`: what a live ZooKeeper says, beside what brokers say."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from kelpie.cli import main
from kelpie.lab import SyncCluster
from kelpie.real.zookeeper import RealZooKeeper
from tests.client.group_members import consuming
from tests.client.zookeeper_client import create_nodes, kazoo_client

pytestmark = pytest.mark.real
ROOT = "/client_group_id"
HOST = "127.0.0.1"
OF_MAPPINGS = {"KLP401", "KLP402", "KLP403", "KLP404", "KLP405", "KLP407"}

Doctor = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture(scope="module")
def cluster() -> Iterator[SyncCluster]:
    with SyncCluster(1, config={"group.initial.rebalance.delay.ms": 0}) as cluster:
        cluster.create_topic("orders", partitions=8, replication=1)
        yield cluster


@pytest.fixture
def doctor(capsys: pytest.CaptureFixture[str]) -> Doctor:
    def run(*arguments: str) -> tuple[int, dict[str, Any]]:
        capsys.readouterr()
        status = main(["doctor", "--no-store", "--json", *arguments])
        return status, json.loads(capsys.readouterr().out)

    return run


def write(zookeeper: RealZooKeeper, root: str, mappings: Mapping[str, str]) -> None:
    with kazoo_client(zookeeper.connect) as client:
        nodes = {f"{root}/{name}": group.encode() for name, group in mappings.items()}
        create_nodes(client, {root: b""} | nodes)


def told(document: Mapping[str, Any]) -> set[tuple[str, str]]:
    return {(row["code"], row["group"]) for row in document["findings"] if row["code"] in OF_MAPPINGS}


def test_a_live_tree_is_judged_as_a_dump_of_it(
    cluster: SyncCluster, real_zookeeper: RealZooKeeper, doctor: Doctor
) -> None:
    """Missing, wrong, ambiguous and leaked, from members of a cluster and nodes of ZooKeeper."""
    write(
        real_zookeeper,
        ROOT,
        {
            f"{HOST}-right": "billing",
            f"{HOST}-wrong": "other",
            f"{HOST}-shared": "audit",
            f"{HOST}-gone": "billing",
        },
    )
    clients = [("right", "billing"), ("wrong", "audit"), ("missing", "audit"), ("shared", "audit")]
    with consuming(cluster, *clients, ("shared", "other")):
        place = ["-b", cluster.bootstrap_servers, "--zookeeper", real_zookeeper.connect]
        status, document = doctor(*place)
        _, without = doctor(*place[:2])
    assert told(document) == {
        ("KLP402", "audit"),
        ("KLP403", "audit"),
        ("KLP404", "audit"),
        ("KLP404", "other"),
        ("KLP405", "billing"),
    }
    assert status == 1
    assert told(without) == set()
    commands = {remedy["command"] or "" for row in document["findings"] for remedy in row["remedies"]}
    assert any(f"--zookeeper {real_zookeeper.connect}" in command for command in commands)


def test_a_tree_that_agrees_with_the_members_says_nothing(
    cluster: SyncCluster, real_zookeeper: RealZooKeeper, doctor: Doctor
) -> None:
    """The healthy look-alike, below a path of its own."""
    write(real_zookeeper, "/mine", {f"{HOST}-right": "billing"})
    with consuming(cluster, ("right", "billing")):
        place = ["-b", cluster.bootstrap_servers, "--zookeeper", real_zookeeper.connect]
        _, document = doctor(*place, "--mapping-root", "mine")
    assert told(document) == set()
    assert document["unasked"] == []


@pytest.mark.parametrize(
    ("hosts", "words"),
    [("127.0.0.1:1", "did not answer"), ("127.0.0.1:notaport", "is no address")],
)
def test_a_zookeeper_that_cannot_be_asked_costs_no_other_answer(
    cluster: SyncCluster, doctor: Doctor, hosts: str, words: str
) -> None:
    """The groups are judged by what brokers say, and the report names what was not asked, and why."""
    place = ["-b", cluster.bootstrap_servers, "--zookeeper", hosts, "--zookeeper-timeout", "1"]
    status, document = doctor(*place)
    assert status == 0
    (row,) = document["unasked"]
    assert (row["kind"], row["name"]) == ("zookeeper", hosts)
    assert words in row["reason"]


def test_a_zookeeper_without_any_tree_is_not_taken_for_one_of_kop(
    cluster: SyncCluster, real_zookeeper: RealZooKeeper, doctor: Doctor
) -> None:
    """A member without node is no fault where no broker writes nodes."""
    with consuming(cluster, ("right", "billing")):
        place = ["-b", cluster.bootstrap_servers, "--zookeeper", real_zookeeper.connect]
        status, document = doctor(*place)
    assert (status, told(document)) == (0, set())


def test_nobody_answers(doctor: Doctor) -> None:
    """ZooKeeper alone, and it is away: there is nothing to look at."""
    status, document = doctor("--zookeeper", "127.0.0.1:1", "--zookeeper-timeout", "1")
    assert status == 3
    assert document["findings"] == []
