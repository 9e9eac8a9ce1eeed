"""`kelpie migrate-offsets`: groups in a real ZooKeeper, moved to lab clusters and to real Kafka 0.9."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kelpie.cli import main
from kelpie.client.nodes import Nodes
from kelpie.lab import SyncCluster
from kelpie.model.names import TopicPartition
from kelpie.real.cluster import RealCluster
from kelpie.real.zookeeper import RealZooKeeper
from kelpie.repair.applying import RepairResult
from kelpie.repair.change_records import records
from kelpie.repair.migrate_offsets import Migration, migrate_offsets
from kelpie.repair.plan import CannotRepair, Plan
from kelpie.repair.reset import planned
from tests.client.inhabitants import Inhabitants
from tests.client.zookeeper_client import kazoo_client
from tests.documents import checked
from tests.repair.scene import GROUP, a_cluster, commit, committed, do, undone, with_nodes

pytestmark = pytest.mark.real
LIMIT_S = 60.0
ROOT = f"/consumers/{GROUP}"


class Tree:
    """The nodes of the group, written as consumers of Kafka 0.8 write them."""

    def __init__(self, hosts: str, client: Any) -> None:
        self.hosts, self._client = hosts, client

    def write(self, offsets: dict[int, object], topic: str = "orders") -> None:
        for partition, offset in offsets.items():
            path = f"{ROOT}/offsets/{topic}/{partition}"
            self._client.ensure_path(path)
            self._client.set(path, str(offset).encode())

    def register(self, member: str) -> None:
        self._client.create(f"{ROOT}/ids/{member}", b"{}", ephemeral=True, makepath=True)

    def brokers(self, *nodes: int) -> None:
        for node in nodes:
            self._client.create(f"/brokers/ids/{node}", b"{}", makepath=True)

    def migration(self, **options: Any) -> Migration:
        return Migration(self.hosts, GROUP, **{"name": GROUP, **options})


@pytest.fixture
def tree(real_zookeeper: RealZooKeeper) -> Iterator[Tree]:
    with kazoo_client(real_zookeeper.connect) as client:
        yield Tree(real_zookeeper.connect, client)


def plan_of(cluster: Any, migration: Migration) -> Plan:
    return with_nodes(cluster, lambda nodes: migrate_offsets(nodes, migration)).plan


def apply_of(
    cluster: Any, migration: Migration, between: Callable[[], object] = lambda: None
) -> RepairResult:
    """A migration that is planned and applied; `between` the two, something happens."""

    async def work(nodes: Nodes) -> RepairResult:
        repair = await migrate_offsets(nodes, migration)
        between()
        return await do(repair)

    return with_nodes(cluster, work)


@pytest.mark.parametrize("persona", ["0.9", "4.3"])
def test_offsets_are_planned_moved_and_put_back(persona: str, tree: Tree) -> None:
    """What Kafka's group had before is noted, and the record puts it back."""
    tree.write({0: 4, 1: 7})
    with a_cluster(persona) as cluster:
        commit(cluster, GROUP, {0: 2})
        plan = plan_of(cluster, tree.migration())
        assert planned(plan) == {TopicPartition("orders", 0): 4, TopicPartition("orders", 1): 7}
        assert committed(cluster, GROUP) == {0: 2}, "a plan changes nothing"
        result = apply_of(cluster, tree.migration())
        assert result.failure is None
        assert committed(cluster, GROUP) == {0: 4, 1: 7}
        assert apply_of(cluster, tree.migration()).plan.steps == (), "all is there already"
        (record,) = records()
        assert result.plan.steps[2].undo.lines[0].endswith(record.id)

        back = undone(cluster, record)
        assert back.failure is None
        cannot_delete = persona == "0.9"
        assert committed(cluster, GROUP) == ({0: 2, 1: 7} if cannot_delete else {0: 2})
        assert any("orders-1 had no offset before" in line for line in back.plan.warnings) is cannot_delete


def test_another_name_and_a_topic_can_be_chosen(tree: Tree) -> None:
    """Both ages can then run side by side."""
    tree.write({0: 4, 1: 7})
    with a_cluster() as cluster:
        result = apply_of(cluster, tree.migration(name="billing-2", topics=["orders:1"]))
        assert result.failure is None
        assert committed(cluster, "billing-2") == {1: 7}
        assert committed(cluster, GROUP) == {}


def test_offsets_outside_the_log_are_told_and_moved_only_on_request(tree: Tree) -> None:
    """Ten records each: a consumer would start at its auto.offset.reset, and nobody would know why."""
    tree.write({0: 11, 1: 10, 9: 3})
    tree.write({0: 5}, topic="gone")
    with a_cluster() as cluster:
        plan = plan_of(cluster, tree.migration())
        assert planned(plan) == {TopicPartition("orders", 1): 10}
        told = "\n".join(plan.warnings)
        assert "orders-0 is left out: its offset in ZooKeeper is 11, and its log has 0 to 10" in told
        assert "orders-9 is left out: it is gone from the cluster" in told
        assert "gone-0 is left out: it is gone from the cluster" in told
        plan = plan_of(cluster, tree.migration(into_log=True))
        assert planned(plan) == {TopicPartition("orders", 0): 10, TopicPartition("orders", 1): 10}


def test_an_offset_of_kafka_goes_back_only_on_request(tree: Tree) -> None:
    """Dual commits of 0.8.2: what is newer in Kafka must not be read again."""
    tree.write({0: 4, 1: 7})
    with a_cluster() as cluster:
        commit(cluster, GROUP, {0: 6})
        plan = plan_of(cluster, tree.migration())
        assert planned(plan) == {TopicPartition("orders", 1): 7}
        assert "Kafka's group is at 6, ZooKeeper's at 4; --backwards" in plan.warnings[0]
        assert apply_of(cluster, tree.migration(backwards=True)).failure is None
        assert committed(cluster, GROUP) == {0: 4, 1: 7}


def test_nothing_is_moved_while_consumers_are_registered(tree: Tree) -> None:
    """In ZooKeeper; also if they come after the plan was made, or go on consuming."""
    tree.write({0: 4})
    with a_cluster() as cluster:
        late = apply_of(cluster, tree.migration(), lambda: tree.write({0: 5}))
        assert late.failure is not None
        assert "have changed since the plan was made" in late.failure
        late = apply_of(cluster, tree.migration(), lambda: tree.register("billing_app-1"))
        assert late.failure is not None
        assert "1 consumer registered in ZooKeeper: billing_app-1. Stop them first" in late.failure
        plan = plan_of(cluster, tree.migration())
        assert not plan.applicable
        assert "billing_app-1" in plan.obstacles[0]
        assert committed(cluster, GROUP) == {}


def test_nothing_is_moved_while_kafkas_group_has_members(tree: Tree) -> None:
    """They would go on from elsewhere, and commit over it."""
    tree.write({0: 4})
    with a_cluster() as cluster:

        async def plan(nodes: Nodes) -> Plan:
            await Inhabitants(nodes).join(GROUP, "orders")
            return (await migrate_offsets(nodes, tree.migration())).plan

        assert "Stop them first" in with_nodes(cluster, plan).obstacles[0]


def test_the_zookeeper_of_another_cluster_is_refused(tree: Tree) -> None:
    """Its offsets would mean other records. A cluster that has left ZooKeeper is not registered there."""
    tree.write({0: 4})
    with a_cluster() as cluster:
        assert plan_of(cluster, tree.migration()).obstacles == ()
        tree.brokers(7, 8)
        (obstacle,) = plan_of(cluster, tree.migration()).obstacles
        assert "is that of another cluster: its brokers are 7 and 8" in obstacle
        tree.brokers(1)
        assert plan_of(cluster, tree.migration()).obstacles == ()


def test_nodes_that_hold_no_offset_are_told(tree: Tree) -> None:
    """Whatever stands there, the others are moved."""
    tree.write({0: 4, 1: "seven", 2: -1})
    with a_cluster() as cluster:
        plan = plan_of(cluster, tree.migration())
        assert planned(plan) == {TopicPartition("orders", 0): 4}
        assert [warning.split()[0] for warning in plan.warnings] == [
            f"{ROOT}/offsets/orders/1",
            f"{ROOT}/offsets/orders/2",
        ]


@pytest.mark.parametrize("group", ["nobody", "", "..", "a/b", "a\x00b"])
def test_a_group_that_is_not_there_is_told(group: str, tree: Tree, cluster: SyncCluster) -> None:
    """Names are hostile, and chroots are forgotten."""
    with pytest.raises(CannotRepair, match=r"has no group|is no name of a group"):
        plan_of(cluster, Migration(tree.hosts, group, "x"))


def test_a_zookeeper_that_is_not_there_is_told(cluster: SyncCluster) -> None:
    """Within the time limit."""
    with pytest.raises(CannotRepair, match="did not answer"):
        plan_of(cluster, Migration("127.0.0.1:1", GROUP, GROUP, limit_s=0.5))


def test_kafkas_own_consumer_goes_on_where_that_of_zookeeper_stopped(
    fresh_real_kafka: Callable[..., RealCluster],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    wait_until: Callable[..., None],
) -> None:
    """Real Kafka 0.9.0.1, which has both: and a cluster in which there was no group of Kafka's before."""
    cluster = fresh_real_kafka("0.9.0.1")
    settings = tmp_path / "consumer.properties"
    settings.write_text("group.id=billing\nzookeeper.session.timeout.ms=6000\n")

    async def fill(nodes: Nodes) -> None:
        for topic in ("orders", "others"):
            await Inhabitants(nodes).topic(topic)
            await Inhabitants(nodes).produce(topic, 0, 20)

    with_nodes(cluster, fill)

    def consume(topic: str, *words: str) -> list[str]:
        return ["kafka-console-consumer", "--topic", topic, "--consumer.config", str(settings), *words]

    read = cluster.tool(*consume("orders", "--from-beginning", "--max-messages", "7"))
    assert len(read.stdout.splitlines()) == 7, read.stderr

    def migrate(*words: str) -> tuple[int, dict[str, Any]]:
        assert cluster.zookeeper_connect is not None
        options = ["--zookeeper", cluster.zookeeper_connect, "--group", "billing", "--json", *words]
        status = main(["migrate-offsets", "-b", cluster.bootstrap_servers, *options])
        return status, checked("plan", capsys.readouterr().out)

    other = cluster.spawn_tool(*consume("others"))
    ids = "/consumers/billing/ids"
    with kazoo_client(str(cluster.zookeeper_connect)) as client:
        wait_until(lambda: client.exists(ids) and client.get_children(ids))
    status, plan = migrate("--apply")
    assert (status, plan["applied"]) == (1, False)
    assert "1 consumer registered in ZooKeeper: billing_" in plan["obstacles"][0]
    other.signal(signal.SIGTERM)
    assert other.wait(LIMIT_S)

    status, plan = migrate("--topic", "orders")
    assert [row["offset"] for row in plan["details"]["offsets"]] == [7]
    assert "There is no topic __consumer_offsets yet" in plan["seen"][1]
    assert "kelpie undo cannot take this back" in plan["warnings"][0]
    topics = cluster.tool("kafka-topics", "--list").stdout.split()
    assert "__consumer_offsets" not in topics, "a plan makes no topic"
    status, plan = migrate("--topic", "orders", "--apply")
    assert (status, plan["applied"]) == (0, True), plan["failure"]
    assert committed(cluster, "billing") == {0: 7}

    new = cluster.tool(
        *("kafka-console-consumer", "--new-consumer", "--bootstrap-server", cluster.bootstrap_servers),
        *("--topic", "orders", "--consumer.config", str(settings), "--max-messages", "13"),
    )
    assert len(new.stdout.splitlines()) == 13, new.stderr

    def is_done() -> bool:
        """The coordinator may take a moment to see that Kafka's own consumer has left."""
        status, plan = migrate("--topic", "orders")
        return (status, plan["steps"]) == (0, [])

    wait_until(is_done)
