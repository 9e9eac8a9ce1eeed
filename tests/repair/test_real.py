"""Repairs on real Kafka, old and new: one cluster each, broken and mended step by step."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Message

from kelpie.cli import main
from kelpie.model.names import TopicPartition
from kelpie.model.partitioning import partition_for
from kelpie.observations import OFFSETS_TOPIC
from kelpie.real.cluster import RealCluster
from kelpie.repair import offsets_file
from kelpie.repair.picture import survey_cluster
from tests.client.inhabitants import Inhabitants
from tests.repair.scene import commit, committed, with_nodes

pytestmark = pytest.mark.real

PARTITIONS = 6
LIMIT_S = 60.0
WaitUntil = Callable[..., None]


class Kelpie:
    """Runs commands against a cluster, and reads their JSON."""

    def __init__(self, cluster: RealCluster, capsys: pytest.CaptureFixture[str]) -> None:
        self._cluster, self._capsys = cluster, capsys

    def __call__(self, command: str, *arguments: str) -> dict[str, Any]:
        status = main([command, "-b", self._cluster.bootstrap_servers, "--json", *arguments])
        said = self._capsys.readouterr()
        assert status == 0, said.err + said.out
        found: dict[str, Any] = json.loads(said.out)
        assert found["applied"] is ("--apply" in arguments)
        return found


def replicas(cluster: RealCluster) -> dict[int, tuple[int, tuple[int, ...]]]:
    """Leader and replicas of the partitions of the offsets topic, as living brokers tell."""

    async def ask(nodes: Any) -> dict[int, tuple[int, tuple[int, ...]]]:
        seen = await survey_cluster(nodes)
        views = [seen.view(name) for name in seen.topics.get(OFFSETS_TOPIC, ())]
        return {
            view.partition: (view.leader if seen.is_alive(view.leader) else -1, view.replicas)
            for view in views
            if view is not None
        }

    return with_nodes(cluster, ask)


def populate(cluster: RealCluster, groups: dict[str, int]) -> None:
    """Twenty records in orders-0, numbered by their offsets; groups that have committed there."""

    async def fill(nodes: Any) -> None:
        living = Inhabitants(nodes)
        await living.topic("orders", 1, 3)
        await living.produce("orders", 0, 20)
        for group, offset in groups.items():
            await living.commit(group, "orders", {0: offset})

    with_nodes(cluster, fill)


def a_group_on(partition: int) -> str:
    return next(
        f"billing{at}" for at in range(1000) if partition_for(f"billing{at}", PARTITIONS) == partition
    )


def test_kafka_4(
    fresh_real_kafka: Callable[..., RealCluster],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    wait_until: WaitUntil,
) -> None:
    """Files in both directions, a move off dead disks, an unclean election with its loss, new replicas."""
    cluster = fresh_real_kafka(
        "4.3.1",
        3,
        **{"offsets.topic.num.partitions": PARTITIONS, "offsets.topic.replication.factor": 2},
    )
    kelpie = Kelpie(cluster, capsys)
    populate(cluster, {"warm": 1})
    where, (leader, nodes) = next((at, it) for at, it in replicas(cluster).items() if 1 not in it[1])
    (follower,) = set(nodes) - {leader}
    group = a_group_on(where)
    commit(cluster, group, {0: 3})
    commit(cluster, "other", {0: 5})

    # Kafka's own tool reads what reset exports, and the other way round.
    ours, theirs = tmp_path / "ours.csv", tmp_path / "theirs.csv"
    kelpie("reset", group, "--shift-by", "4", "--export", str(ours), "--apply")
    assert committed(cluster, group) == {0: 7}
    words = ["--reset-offsets", "--export", "--dry-run"]
    read = cluster.tool("kafka-consumer-groups", *words, "--group", group, "--from-file", str(ours))
    assert read.stdout.strip() == ours.read_text().strip() == "orders,0,7"
    several = cluster.tool(
        "kafka-consumer-groups", *words, "--group", group, "--group", "other", "--to-current", "--all-topics"
    )
    theirs.write_text(several.stdout)
    assert offsets_file.read(theirs.read_text(), "other", "theirs.csv") == {TopicPartition("orders", 0): 5}
    assert kelpie("reset", group, "--from-file", str(theirs))["steps"] == []

    # The follower dies, the leader takes one more commit, and dies as well: the group is stricken.
    cluster.kill(str(follower))
    wait_until(lambda: _without(cluster, follower), limit_s=LIMIT_S)
    commit(cluster, group, {0: 12})
    cluster.kill(str(leader))
    wait_until(lambda: replicas(cluster)[where][0] == -1, limit_s=LIMIT_S)
    disks = [str(cluster.nodes[str(node)].folder) for node in (leader, follower)]
    moved = kelpie("rehome", group, "--offsets-from", *disks, "--apply")["details"]
    assert [(it["offset"], it["sure"]) for it in moved["offsets"]] == [(12, "certain")]
    for protocol in ("classic", "consumer"):
        assert _first_record(cluster, moved["new_name"], protocol).offset() == 12
    assert kelpie("rehome", group, "--offsets-from", *disks)["details"]["new_name"] == moved["new_name"]

    # The follower comes back: behind, and not allowed to lead. Its copy can be read all the same.
    cluster.start(str(follower))
    partition = f"{OFFSETS_TOPIC}-{where}"
    plan = kelpie("elect", partition, "--unclean", "--evidence", disks[0])["details"]["elections"][0]
    assert (plan["leader"], plan["clean"]) == (follower, False)
    assert group in plan["groups"]
    assert [log["log_end"] for log in plan["living_logs"]] == [plan["log_end"]] != [-1], "followers tell it"
    lost = [(it["group"], it["committed"], it["goes_back_to"]) for it in plan["commits_lost"]]
    assert lost == [(group, 12, 7)]
    kelpie("elect", partition, "--unclean", "--apply")
    assert committed(cluster, group) == {0: 7}
    known = kelpie("reset", group, "--to-last-known", disks[0])["details"]["offsets"]
    assert [it["offset"] for it in known] == [12], "the dead disk knows it still"

    # Who lives gets replicas of what has a leader.
    kelpie("reassign-offsets-topic", "--throttle", "50000000", "--apply")
    alive = frozenset({1, follower})
    wait_until(  # The controller knows it at once, a broker a moment later.
        lambda: {frozenset(nodes) for led_by, nodes in replicas(cluster).values() if led_by >= 0} == {alive},
        limit_s=LIMIT_S,
    )
    assert replicas(cluster)[where][0] == follower
    assert kelpie("reassign-offsets-topic")["steps"] == []


def test_kafka_0_9(
    fresh_real_kafka: Callable[..., RealCluster],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    wait_until: WaitUntil,
) -> None:
    """Replicas moved through ZooKeeper, then a move off dead disks, judged by the release's own consumer."""
    cluster = fresh_real_kafka(
        "0.9.0.1",
        3,
        **{
            "offsets.topic.num.partitions": PARTITIONS,
            "offsets.topic.replication.factor": 1,
            "default.replication.factor": 3,
        },
    )
    kelpie = Kelpie(cluster, capsys)
    populate(cluster, {"warm": 1})
    zookeeper = cluster.zookeeper_connect
    assert zookeeper is not None
    kelpie("reassign-offsets-topic", "--replication", "2", "--zookeeper", zookeeper, "--apply")
    assert {len(nodes) for _, nodes in replicas(cluster).values()} == {2}
    assert kelpie("reassign-offsets-topic", "--replication", "2", "--zookeeper", zookeeper)["steps"] == []

    where, (_, nodes) = next((at, it) for at, it in replicas(cluster).items() if 1 not in it[1])
    group = a_group_on(where)
    commit(cluster, group, {0: 3})
    commit(cluster, group, {0: 12})
    for node in nodes:
        cluster.kill(str(node))
    wait_until(lambda: replicas(cluster)[where][0] == -1, limit_s=LIMIT_S)
    disks = [str(cluster.nodes[str(node)].folder) for node in nodes]
    moved = kelpie("rehome", group, "--offsets-from", *disks, "--apply")["details"]
    assert [it["offset"] for it in moved["offsets"]] == [12]
    config = tmp_path / "consumer.properties"
    config.write_text(f"group.id={moved['new_name']}\n")
    goes_on = cluster.tool(
        "kafka-console-consumer",
        *("--new-consumer", "--topic", "orders", "--consumer.config", str(config), "--max-messages", "8"),
    )
    assert goes_on.stdout.split() == ["v"] * 8, "from 12 to the end there are eight"


def _without(cluster: RealCluster, node: int) -> bool:
    async def ask(nodes: Any) -> bool:
        seen = await survey_cluster(nodes)
        views = [seen.view(name) for name in seen.topics.get(OFFSETS_TOPIC, ())]
        return all(view is not None and node not in view.in_sync for view in views)

    return with_nodes(cluster, ask)


def _first_record(cluster: RealCluster, group: str, protocol: str) -> Message:
    """What a consumer of this group reads first. Without a committed offset it fails."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "error",
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.subscribe(["orders"])
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                return message
        raise AssertionError(f"group {group} read nothing within {LIMIT_S:.0f} s")
    finally:
        consumer.close()
