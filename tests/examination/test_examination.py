"""A program examines a cluster without the command line."""

import asyncio
import gc
from dataclasses import replace
from pathlib import Path

from kelpie.client.nodes import Nodes
from kelpie.client.settings import Settings
from kelpie.client.survey import SurveyOptions
from kelpie.doctor.case import Case
from kelpie.examination import Changes, Examination, Examined, changes
from kelpie.examination.kept_answers import KeptAnswers
from kelpie.lab import virtual_time
from kelpie.lab.cluster import Cluster
from kelpie.lab.memory_network import MemoryNetwork
from kelpie.lab.virtual_time import VirtualLoop
from kelpie.observations import OFFSETS_TOPIC, Observations, PartitionView, Setting, Unasked
from kelpie.store import Store
from kelpie.wire.api.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

GROUP = "billing"
LEADERLESS = "KLP101"
NOW = 1_800_000_000_000


async def _commit(settings: Settings, group: str) -> None:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=0, committed_metadata="")
    topics = [OffsetCommitRequestTopic(name="orders", partitions=[partition])]
    request = OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=-1, topics=topics)
    async with await Nodes.open(settings) as nodes:
        for _ in range(100):  # The coordinator loads its partition first.
            answer = await nodes.ask(2, request, version=2)
            if not answer.topics[0].partitions[0].error_code:
                return
            await asyncio.sleep(0.1)
    raise AssertionError(f"The commit is refused: {answer}")


def test_a_program_examines_a_cluster_that_loses_a_coordinator(tmp_path: Path) -> None:
    """Survey, store and rules work together; the second examination recalls the group of the first."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        network = MemoryNetwork()
        async with Cluster(2, network=network, wall=loop.wall) as cluster:
            cluster.create_topic(OFFSETS_TOPIC, assignment={0: (2,)})
            cluster.create_topic("orders", replication=1, assignment={0: (1,)})
            settings = replace(Settings.of(cluster.bootstrap_servers), network=network)
            await _commit(settings, GROUP)

            examination = Examination(
                settings, store=Store(tmp_path), clock=lambda: round(loop.wall() * 1000)
            )
            healthy, saw_anything, _ = await examination.examine()
            assert saw_anything
            assert healthy.groups == (GROUP,)
            assert LEADERLESS not in {finding.code for finding in healthy.findings}

            await cluster.kill(2)
            await asyncio.sleep(30)
            broken, saw_anything, _ = await examination.examine()
            assert saw_anything
            assert (LEADERLESS, GROUP) in {(finding.code, finding.group) for finding in broken.findings}
            new, gone = changes(healthy, broken)
            assert LEADERLESS in {finding.code for finding in new}
            assert LEADERLESS not in {finding.code for finding in gone}
            assert changes(broken, broken) == Changes((), ())

            await cluster.kill(1)
            nothing, saw_anything, _ = await examination.examine()
            assert not saw_anything
            assert nothing.groups == (GROUP,)

    virtual_time.run(main())


def test_a_look_is_freed_without_the_garbage_collector_when_a_broker_is_dead() -> None:
    """Its error held the functions that it went through, and they held the rows of all groups."""

    async def main() -> Examined:
        async with Cluster(2) as cluster:
            await cluster.stop(2)
            known = Observations(known_groups={GROUP: "an earlier survey"})
            return await Examination(Settings.of(cluster.bootstrap_servers), evidence=known).examine()

    def look() -> None:
        examined = asyncio.run(main())
        assert [case.group for case in examined.cases] == [GROUP]

    gc.collect()
    gc.disable()
    try:
        look()
        assert not [each for each in gc.get_objects() if isinstance(each, Case) and each.group == GROUP]
    finally:
        gc.enable()


def test_files_alone_can_be_examined() -> None:
    """Without a cluster there is nothing to survey, and nothing to remember."""
    view = PartitionView(OFFSETS_TOPIC, 0, -1, (1,), ())
    evidence = Observations(partitions=[view], known_groups={GROUP: "a log"})
    diagnosis, saw_anything, _ = asyncio.run(Examination(evidence=evidence).examine())
    assert saw_anything
    assert diagnosis.groups == (GROUP,)
    unreadable = Observations(unasked=[Unasked("file", "x", "It is empty.")])
    assert not asyncio.run(Examination(evidence=unreadable).examine()).saw_anything


def test_a_look_says_what_it_cost_and_asks_nothing_about_the_past_that_is_known(tmp_path: Path) -> None:
    """What an earlier look has kept answers a question about that time; a gentle look asks none."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        network = MemoryNetwork()
        async with Cluster(2, network=network, wall=loop.wall) as cluster:
            cluster.create_topic(OFFSETS_TOPIC, assignment={0: (2,)})
            cluster.create_topic("orders", replication=1, assignment={0: (1,)})
            settings = replace(Settings.of(cluster.bootstrap_servers), network=network)
            await _commit(settings, GROUP)
            examination = Examination(
                settings, store=Store(tmp_path), clock=lambda: round(loop.wall() * 1000)
            )
            first = await _asked_for_offsets(examination)
            await asyncio.sleep(60)
            assert await _asked_for_offsets(examination) == first - 1
            gentle = replace(examination, gentle=True, store=None)
            assert await _asked_for_offsets(gentle) == first - len(SurveyOptions().look_back_s)

    virtual_time.run(main())
    assert asyncio.run(Examination(evidence=Observations()).examine()).diagnosis.cost is None


def test_a_look_that_follows_another_asks_what_has_changed(tmp_path: Path) -> None:
    """A watch looks every ten seconds, for days: what stays as it is costs the brokers little."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        network = MemoryNetwork()
        async with Cluster(2, network=network, wall=loop.wall) as cluster:
            cluster.create_topic(OFFSETS_TOPIC, assignment={0: (2,), 1: (2,)})
            cluster.create_topic("orders", replication=1, assignment={0: (1,)})
            settings = replace(Settings.of(cluster.bootstrap_servers), network=network)
            await _commit(settings, GROUP)
            examination = Examination(
                settings, store=Store(tmp_path), clock=lambda: round(loop.wall() * 1000)
            ).repeated()
            first = await _asked(examination)
            await asyncio.sleep(10)
            second = await _asked(examination)
            spared = {api: count - second.get(api, 0) for api, count in first.items()}
            assert {api: count for api, count in spared.items() if count} == {
                "DescribeConfigs": first["DescribeConfigs"],
                "DescribeLogDirs": 1,
                "Fetch": 1,
                "ListOffsets": len(SurveyOptions().look_back_s),
            }
            await asyncio.sleep(20)
            await _commit(settings, GROUP)
            assert (await _asked(examination))["Fetch"] == 1, "what is new is read"
            await asyncio.sleep(40)
            assert (await _asked(examination))["DescribeConfigs"] == first["DescribeConfigs"], "a minute ago"

    virtual_time.run(main())


def test_answers_of_one_cluster_are_not_kept_for_another() -> None:
    """A name may point to another cluster by the time of the next look."""
    kept = KeptAnswers()
    kept.begin("first")
    setting = Setting("broker 1", "group.max.size", "5")
    kept.take(Observations(settings=[setting]), [], NOW)
    kept.begin("first")
    assert kept.fresh(NOW + 1000).settings == [setting]
    kept.begin("second")
    assert kept.fresh(NOW + 1000) == Observations()


async def _asked(examination: Examination) -> dict[str, int]:
    cost = (await examination.examine()).diagnosis.cost
    assert cost is not None
    return dict(cost.by_api)


async def _asked_for_offsets(examination: Examination) -> int:
    cost = (await examination.examine()).diagnosis.cost
    assert cost is not None
    assert cost.requests == sum(cost.by_api.values())
    assert cost.bytes_received > 0
    return cost.by_api["ListOffsets"]
