"""The examples of docs/admin.md run as they stand."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from kelpie.client import Settings, SyncAdmin
from kelpie.client.nodes import Nodes
from kelpie.lab import SyncCluster
from kelpie.model.names import TopicPartition
from kelpie.real.cluster import RealCluster
from tests.client.inhabitants import Inhabitants

DOCUMENT = Path(__file__).parents[3] / "docs" / "admin.md"
ADDRESS = '"localhost:9092"'
EXAMPLES = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
GROUPS = ("alpha", "beta", "gamma", "delta", "billing")


def _prepare(bootstrap: str) -> None:
    with SyncAdmin(bootstrap, patience_s=30.0) as admin:
        for group in GROUPS:
            admin.commit(group, {TopicPartition("orders", 0): 0})


def _printed(example: str, bootstrap: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert ADDRESS in example
    exec(compile(example.replace(ADDRESS, repr(bootstrap)), str(DOCUMENT), "exec"), {})
    return capsys.readouterr().out


def test_examples_on_the_lab_with_a_dead_broker(capsys: pytest.CaptureFixture[str]) -> None:
    """Three brokers, one of them dead: the answers are partial, and say so."""
    config = {"offsets.topic.replication.factor": 1}
    with SyncCluster(3, offsets_partitions=6, config=config) as cluster:
        cluster.create_topic("orders", 3, replication=3)
        _prepare(cluster.bootstrap_servers)
        overview, lag, partial, changes = (
            _printed(example, cluster.bootstrap_servers, capsys) for example in EXAMPLES
        )
        assert "billing Empty []" in overview
        assert "orders-0 0 lag 0" in lag
        assert "failed" not in partial
        assert "{}" in changes
        with SyncAdmin(cluster.bootstrap_servers) as admin:
            (row,) = admin.coordinators(["alpha"])
        cluster.kill(row.node_id)
        partial = _printed(EXAMPLES[2], cluster.bootstrap_servers, capsys)
        assert "group alpha failed" in partial
        assert "described: [" in partial


def test_examples_on_a_real_broker(
    real_kafka: Callable[..., RealCluster], capsys: pytest.CaptureFixture[str]
) -> None:
    """Kafka 4.3.1."""
    cluster = real_kafka(version="4.3.1", brokers=1)

    async def create() -> None:
        async with await Nodes.open(Settings.of(cluster.bootstrap_servers)) as nodes:
            await Inhabitants(nodes).topic("orders", 3)

    asyncio.run(create())
    _prepare(cluster.bootstrap_servers)
    printed = [_printed(example, cluster.bootstrap_servers, capsys) for example in EXAMPLES]
    assert "billing Empty []" in printed[0]
    assert "failed" not in printed[2]
    assert "{}" in printed[3]
