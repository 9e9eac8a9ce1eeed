"""The probe as a library: a cluster that changes while it is looked at."""

import asyncio

import pytest

from kelpie.client.nodes import Nodes
from kelpie.client.probe.probe import Probe, ProbeTarget
from kelpie.client.probe.report import ChapterStatus
from kelpie.client.settings import Settings
from kelpie.lab import Cluster
from kelpie.model.partitioning import partition_for
from kelpie.observations import OFFSETS_TOPIC
from kelpie.questions.metadata import AskMetadata
from tests.client.inhabitants import Inhabitants

PARTITIONS = 4
CONFIG = {"offsets.topic.replication.factor": 1, "group.initial.rebalance.delay.ms": 0}


def test_coordinator_that_is_new_to_the_list_of_brokers_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """FindCoordinator names a broker that came back after the probe got its list of brokers."""
    opening = Nodes.open

    async def open_without_coordinator(settings: Settings) -> Nodes:
        nodes = await opening(settings)
        topic = (await nodes.put_any(AskMetadata((OFFSETS_TOPIC,)))).topics[OFFSETS_TOPIC]
        coordinator = topic.partitions[partition_for("billing", PARTITIONS)].leader
        assert coordinator is not None
        del nodes.brokers[coordinator]
        return nodes

    async def test() -> None:
        async with Cluster(3, offsets_partitions=PARTITIONS, config=CONFIG) as cluster:
            cluster.create_topic("orders", 1, replication=1)
            settings = Settings.of(cluster.bootstrap_servers, request_timeout_s=2.0)
            async with await Nodes.open(settings) as nodes:
                await Inhabitants(nodes).commit("billing", "orders", {0: 0})
            monkeypatch.setattr(Nodes, "open", open_without_coordinator)
            report = await Probe(settings, ProbeTarget("billing", joins=False)).run()
        (chapter,) = [each for each in report.chapters if each.name == "group"]
        assert chapter.verdict is ChapterStatus.OK, chapter.why
        assert [step.times for step in chapter.steps] == [2]

    asyncio.run(asyncio.wait_for(test(), 60.0))
