"""One broker of three is left on real clusters: survey and doctor name exactly the groups that this hits."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kelpie.cli import main
from kelpie.client.nodes import Nodes
from kelpie.client.settings import Settings
from kelpie.client.survey import survey
from kelpie.errors import ErrorCode
from kelpie.model.partitioning import partition_for
from kelpie.observations import OFFSETS_TOPIC, Observations
from kelpie.real.cluster import RealCluster
from tests.client.inhabitants import Inhabitants, until

pytestmark = pytest.mark.real

PARTITIONS = 8
GROUPS = [f"billing-{number}" for number in range(16)]
CONFIG = {
    "default.replication.factor": 3,
    "offsets.topic.num.partitions": PARTITIONS,
    "offsets.topic.replication.factor": 2,
}


async def _populate(cluster: RealCluster) -> Observations:
    async with await Nodes.open(Settings.of(cluster.bootstrap_servers)) as nodes:
        living = Inhabitants(nodes)
        await living.topic("orders", 1, 3)
        await living.produce("orders", 0, 10)
        for group in GROUPS:
            await living.commit(group, "orders", {0: 10})
        return await survey(nodes)


async def _survey_once_fenced(cluster: RealCluster) -> Observations:
    async def fenced() -> Observations | None:
        seen = await survey(Settings.of(cluster.bootstrap_servers), known=GROUPS)
        leaders = {row.leader for row in seen.partitions if row.topic == OFFSETS_TOPIC}
        return seen if leaders <= {1, -1} else None

    seen: Observations = await until(fenced)
    return seen


def _judge(seen: Observations, hit: set[str]) -> None:
    """Kafka's own tools leave the hit groups out, without a word; here each is named, and exactly these."""
    assert {row.name for row in seen.unasked if row.kind == "group"} == hit
    assert {row.group for row in seen.committed} == set(GROUPS) - hit
    assert [row.node_id for row in seen.brokers if row.alive] == [1]
    lookups = [row for row in seen.answers if row.asked == "FindCoordinator"]
    assert {(row.group, row.error) for row in lookups} == {
        (group, ErrorCode.COORDINATOR_NOT_AVAILABLE) for group in hit
    }
    # Topics with replicas on the living broker may have found a leader; Kafka 4 tells who else may lead.
    leaderless = [row for row in seen.partitions if row.topic == OFFSETS_TOPIC and row.leader < 0]
    assert any(row.eligible for row in leaderless)


@pytest.mark.parametrize("version", ["4.3.1", "0.9.0.1"])
def test_the_hit_groups_are_named_when_two_of_three_brokers_are_killed(
    version: str,
    fresh_real_kafka: Callable[..., RealCluster],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    wait_until: Callable[..., None],
) -> None:
    """No broker lists them any more; the store knows them from the look before."""
    cluster = fresh_real_kafka(version, brokers=3, **CONFIG)
    before = asyncio.run(_populate(cluster))
    if version == "4.3.1":
        assert before.unasked == []
    replicas = {row.partition: row.replicas for row in before.partitions if row.topic == OFFSETS_TOPIC}
    hit = {group for group in GROUPS if set(replicas[partition_for(group, PARTITIONS)]) <= {2, 3}}
    assert hit, "no group is on the brokers that die"

    def doctor(*arguments: str) -> tuple[int, dict[str, Any]]:
        options = ["-b", cluster.bootstrap_servers, "--json", "--store", str(tmp_path)]
        status = main(["doctor", *options, *arguments])
        return status, json.loads(capsys.readouterr().out)

    status, healthy = doctor()
    assert status == 0, healthy["summary"]
    assert set(healthy["groups"]) >= set(GROUPS)

    cluster.kill("2")
    cluster.kill("3")
    wait_until(lambda: _dead(doctor()[1]) == {2, 3}, limit_s=60)
    status, outage = doctor()
    assert status == 2, outage["summary"]
    found = {it["group"] for it in outage["findings"] if it["code"] == "KLP101"}
    assert found == hit
    assert set(outage["blast_radius"]["groups"]) >= hit
    if version != "0.9.0.1":  # It never lists groups without members, so their absence means nothing.
        assert {row["group"] for row in outage["unlisted"]} >= hit
    assert {it["name"] for it in outage["unasked"] if it["kind"] == "group"} == hit

    # Without a store nobody would know them; whoever asks by name is told all the same.
    group = min(hit)
    assert main(["doctor", "-b", cluster.bootstrap_servers, "--no-store", group]) == 2
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("CRITICAL: 1 of 1 group has no coordinator")
    assert main(["where", "-b", cluster.bootstrap_servers, group]) == 1
    assert "no: it has no leader (KLP101)" in capsys.readouterr().out

    if "controller" in cluster.nodes:
        port = cluster.nodes["controller"].port
        assert main(["doctor", "-b", f"127.0.0.1:{port}", "--no-store"]) == 3
        said = " ".join(capsys.readouterr().out.split())
        assert f"Not asked: 127.0.0.1:{port} is a controller of the cluster (KRaft)" in said

    if version == "4.3.1":
        _judge(asyncio.run(_survey_once_fenced(cluster)), hit)


def _dead(document: dict[str, Any]) -> set[int]:
    return {broker["node_id"] for broker in document["cluster"]["brokers"] if broker["alive"] is False}
