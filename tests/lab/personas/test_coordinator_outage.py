"""The outage that was recorded on Kafka 0.9.0.1, made again: on the lab, and on 0.9.0.1 itself.

Two of three brokers die, and with them both replicas of a third of `__consumer_offsets`. Groups on those
partitions have no coordinator; others go on. What each broker says before, during and after is compared.
"""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from kelpie.lab import SyncCluster
from kelpie.lab.scenarios import Stage, scenarios
from kelpie.model.partitioning import partition_for
from kelpie.real.cluster import RealCluster
from kelpie.wire.api.find_coordinator import FindCoordinatorRequest
from tests.lab.personas import KINDS
from tests.lab.personas.client import Client
from tests.lab.personas.cluster import OFFSETS_TOPIC, Cluster, newest
from tests.lab.personas.conftest import CONFIG as QUICK
from tests.lab.personas.conftest import compare
from tests.lab.personas.member import Member, assemble
from tests.lab.personas.outage import (
    CONFIG,
    DATA_TOPIC,
    PARTITIONS,
    ask_everything,
    coordinators_heard,
    described,
    hit_groups,
    is_on_disk,
    metadata,
    prepare,
    settled,
)

EVERYONE, SURVIVOR = (1, 2, 3), 1


@pytest.fixture(params=[pytest.param(kind, marks=[pytest.mark.real] * (kind == "real")) for kind in KINDS])
def cluster(
    request: pytest.FixtureRequest,
    fresh_real_kafka: Callable[..., RealCluster],
    said: dict[str, tuple[str, list[str]]],
) -> Iterator[Cluster]:
    """Three brokers, with the topics of the recording."""
    brokers: SyncCluster | RealCluster
    if request.param == "real":
        settings = {name.replace(".", "_"): value for name, value in CONFIG.items()}
        brokers = fresh_real_kafka("0.9.0.1", brokers=3, **settings)
    else:
        brokers = SyncCluster(3, persona="0.9", replication=2, config={**QUICK, **CONFIG}).open()
    try:
        prepare(brokers)
        cluster = Cluster("0.9", request.param, brokers, "outage", newest("0.9"))
        settled(cluster, EVERYONE)
        cluster.warm_up_everywhere(PARTITIONS)
        yield cluster
        cluster.close()
        compare(said, request.node.name.replace(request.param, ""), request.param, cluster.transcript.lines)
    finally:
        if isinstance(brokers, SyncCluster):
            brokers.__exit__(None, None, None)


def test_groups_of_dead_partitions_have_no_coordinator_and_others_go_on(cluster: Cluster) -> None:
    """Document 000: error 15, node −1, no host, port −1, until a replica is back."""
    members = {}
    for group in hit_groups():
        home = coordinator_of(cluster, group).node_id
        members[group] = Member(cluster, f"{group} at {home}", group=group, node=home - 1)
        assemble(members[group])
        assert members[group].commit(10, topic=DATA_TOPIC) == 0
        refused_elsewhere(cluster, group, home)
    creates_topics_anywhere(cluster)
    before = ask_everything(cluster, EVERYONE)
    assert {answer.error_code for heard in before.values() for answer in heard.values()} == {0}

    for group in hit_groups():
        partition = partition_for(group, PARTITIONS)
        for node in described("before")[OFFSETS_TOPIC][partition].replicas:
            cluster.until(partial(is_on_disk, cluster.brokers, node, partition, 2))
    for node in (2, 3):
        cluster.brokers.kill(node)
    settled(cluster, [SURVIVOR])
    cannot_create_topics(cluster)
    during = ask_everything(cluster, [SURVIVOR])[SURVIVOR]
    rows = described("during")[OFFSETS_TOPIC]
    for partition, answer in during.items():
        if SURVIVOR in rows[partition].replicas:
            assert (answer.error_code, answer.node_id) == (0, rows[partition].leader)
        else:
            assert (answer.error_code, answer.node_id, answer.host, answer.port) == (15, -1, "", -1)
    for group, is_hit in hit_groups().items():
        answer = coordinator_of(cluster, group)
        assert (answer.error_code == 15) == is_hit
        # Kelpie's brokers are counted from 1; the recording's from 0.
        node = answer.node_id if is_hit else answer.node_id - 1
        assert coordinators_heard(group) == {(answer.error_code, node, answer.host)}
        if is_hit:
            refused_elsewhere(cluster, group, 0, alive=[SURVIVOR])
        else:
            member = members[group]
            assert member.heartbeat() == 0
            # A commit waits for the ISR, in which the dead are until the controller has taken them out.
            cluster.until(partial(member.commit, 11, topic=DATA_TOPIC, kept=False), lambda code: code == 0)
            assert member.commit(11, topic=DATA_TOPIC) == 0
            assert member.committed(topic=DATA_TOPIC) == (11, 0)

    cluster.brokers.start(2)
    settled(cluster, [SURVIVOR, 2], in_sync=False)
    cluster.warm_up_everywhere(PARTITIONS, nodes=[SURVIVOR, 2])
    ask_everything(cluster, [SURVIVOR, 2], in_sync=False)

    cluster.brokers.start(3)
    settled(cluster, EVERYONE)
    cluster.warm_up_everywhere(PARTITIONS)
    after = ask_everything(cluster, EVERYONE)
    assert {answer.error_code for heard in after.values() for answer in heard.values()} == {0}
    for group, is_hit in hit_groups().items():
        home = coordinator_of(cluster, group).node_id
        again = Member(cluster, f"{group} again", group=group, node=home - 1)
        assert again.committed(topic=DATA_TOPIC) == (10 if is_hit else 11, 0)


def test_the_scenario_of_the_lab_hits_the_groups_of_the_recording() -> None:
    """Who runs it sees what the people of the incident saw."""
    told: list[str] = []

    async def play() -> None:
        async with Stage("0.9", told.append) as stage:
            await scenarios()["coordinator-outage"].run(stage)
            assert stage.failures == []

    asyncio.run(play())
    text = " ".join(" ".join(told).split())
    for group, is_hit in hit_groups().items():
        heard = "error_code=15, node_id=-1, host='', port=-1" if is_hit else "coordinator is broker 0"
        assert f"ok: {group}: {heard}" in text


def coordinator_of(cluster: Cluster, group: str) -> Any:
    with Client(cluster.ports[SURVIVOR - 1], cluster.transcript, "lookup") as client:
        return client.ask(FindCoordinatorRequest(key=group), 0)


def creates_topics_anywhere(cluster: Cluster) -> None:
    """Every broker creates what it is asked for, whichever of them is the controller."""
    for node in EVERYONE:
        with Client(cluster.ports[node - 1], cluster.transcript, f"creator at {node}") as client:
            (topic,) = metadata(client, f"made-by-{node}", kept=False).topics
            assert (topic.error_code, topic.partitions) == (5, [])


def cannot_create_topics(cluster: Cluster) -> None:
    """There are too few brokers left, and 0.9 trips over that: it tells nothing of what it was asked."""
    with Client(cluster.ports[SURVIVOR - 1], cluster.transcript, "creator") as client:
        for names in (["too-late"], [DATA_TOPIC, "too-late"], ["no name"]):
            answer = metadata(client, *names)
            assert (answer.brokers, {topic.error_code for topic in answer.topics}) == ([], {-1})


def refused_elsewhere(
    cluster: Cluster, group: str, home: int, alive: tuple[int, ...] | list[int] = EVERYONE
) -> None:
    """Whoever does not lead the group's partition is not its coordinator."""
    for node in alive:
        if node == home:
            continue
        lost = Member(cluster, f"{group} lost at {node}", group=group, node=node - 1)
        lost.id, lost.generation = "whoever", 1
        assert lost.client.receive(lost.start_join()).error_code == 16
        assert lost.sync().error_code == lost.heartbeat() == lost.leave() == 16
        assert lost.commit(1, topic=DATA_TOPIC) == 16
        assert lost.committed(topic=DATA_TOPIC) == (-1, 16)
        assert lost.described().error_code == 16


def test_the_recording_is_of_the_same_groups() -> None:
    """What is asked above is what was recorded: names and partitions agree with the truth beside it."""
    rows = described("before")[OFFSETS_TOPIC]
    assert len(rows) == PARTITIONS
    for group, is_hit in hit_groups().items():
        assert (SURVIVOR not in rows[partition_for(group, PARTITIONS)].replicas) == is_hit
        assert coordinators_heard(group)
