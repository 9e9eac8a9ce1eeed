"""How long a survey waits for a broker that answers late, or never. On the virtual clock of the lab."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

from kelpie.client.admin.admin import Admin
from kelpie.client.connection import Counters
from kelpie.client.nodes import Nodes
from kelpie.client.settings import InProcessNetwork, Settings
from kelpie.client.survey import SurveyOptions, survey
from kelpie.lab import virtual_time
from kelpie.lab.cluster import Cluster
from kelpie.lab.memory_network import MemoryNetwork
from kelpie.lab.virtual_time import VirtualLoop
from kelpie.model.names import TopicPartition
from kelpie.observations import OFFSETS_TOPIC
from tests.client.inhabitants import Inhabitants

LIMIT_S = 5.0
GROUPS = tuple(f"group-{number}" for number in range(12))
SLOW = 2
ONE_BY_ONE = SurveyOptions(groups_per_request=1)


@asynccontextmanager
async def _inhabited() -> AsyncIterator[tuple[Cluster, Settings]]:
    """Broker 2 coordinates all groups, and leads one of two partitions of the topic that they read."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    network = MemoryNetwork()
    async with Cluster(2, network=network, wall=loop.wall) as cluster:
        cluster.create_topic(OFFSETS_TOPIC, assignment={0: (SLOW,)})
        cluster.create_topic("orders", replication=1, assignment={0: (1,), 1: (SLOW,)})
        settings = replace(Settings.of(cluster.bootstrap_servers), network=network, client_id="patient")
        async with await Nodes.open(settings) as nodes:
            living = Inhabitants(nodes)
            for group in GROUPS:
                await living.commit(group, "orders", {0: 0, 1: 0})
        yield cluster, settings


def _run(test: Callable[[Cluster, Settings], Awaitable[None]]) -> None:
    async def play() -> None:
        async with _inhabited() as (cluster, settings):
            await test(cluster, settings)

    virtual_time.run(play())


def test_a_broker_that_answers_late_once_is_told_in_full() -> None:
    """A pause of its garbage collector used to hide all groups that it coordinates, for the whole look."""

    async def test(cluster: Cluster, settings: Settings) -> None:
        late = cluster.delay(round(LIMIT_S * 1200), api="OffsetFetch", node=SLOW, count=1)
        seen = await survey(settings, options=ONE_BY_ONE)
        assert late.hits == 1
        assert {row.group for row in seen.committed} == set(GROUPS)
        assert {row.name for row in seen.ends} == {TopicPartition("orders", 0), TopicPartition("orders", 1)}
        assert seen.unasked == []
        assert {row.node_id for row in seen.brokers if row.alive} == {1, SLOW}

    _run(test)


def test_a_broker_that_is_late_at_the_first_question_is_met() -> None:
    """It listed no groups in time, so nobody would know that there are any."""

    async def test(cluster: Cluster, settings: Settings) -> None:
        cluster.delay(round(LIMIT_S * 1200), api="ListGroups", node=SLOW, count=1)
        seen = await survey(settings)
        assert {row.group for row in seen.committed} == set(GROUPS)
        assert seen.unasked == []

    _run(test)


class _LateNetwork:
    """The first connection to one port is there after a while."""

    def __init__(self, network: InProcessNetwork, port: int, late_s: float) -> None:
        self._network, self._port, self._late_s = network, port, late_s

    async def connect(self, host: str, port: int, protocol: asyncio.Protocol) -> None:
        if port == self._port:
            await asyncio.sleep(self._late_s)
        await self._network.connect(host, port, protocol)


def test_a_connection_that_is_ready_late_is_used() -> None:
    """The broker takes the connection, and goes on with it when its pause is over."""

    async def test(cluster: Cluster, settings: Settings) -> None:
        first, second = settings.bootstrap
        assert settings.network is not None
        network = _LateNetwork(settings.network, second.port, LIMIT_S * 1.2)
        seen = await survey(replace(settings, bootstrap=(first,), network=network))
        assert {row.group for row in seen.committed} == set(GROUPS)
        assert seen.unasked == []

    _run(test)


def test_a_broker_that_never_answers_costs_three_time_limits_at_most() -> None:
    """However many questions there are: one limit, one more, and what was asked in between."""

    async def test(cluster: Cluster, settings: Settings) -> None:
        asked = cluster.observe(api="OffsetFetch", node=SLOW)
        silence = cluster.silence(api="OffsetFetch", node=SLOW)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        seen = await survey(settings, options=ONE_BY_ONE)
        assert silence.hits
        assert loop.time() - begun < 3 * LIMIT_S + 4, "and the pauses of asking again what may pass"
        assert {row.name for row in seen.unasked if row.kind == "group"} == set(GROUPS)
        assert len(asked.requests) <= 2, f"one request for each of {len(GROUPS)} groups would be too many"

    _run(test)


def test_who_stays_late_is_given_up() -> None:
    """There is one second chance in a look: a broker that needs six seconds for each answer costs no hour."""

    async def test(cluster: Cluster, settings: Settings) -> None:
        cluster.delay(round(LIMIT_S * 1200), api="OffsetFetch", node=SLOW)
        counters = Counters()
        loop = asyncio.get_running_loop()
        begun = loop.time()
        async with await Nodes.open(settings, counters=counters) as nodes:
            seen = await survey(nodes, options=ONE_BY_ONE)
        assert loop.time() - begun < 4 * LIMIT_S
        assert {row.name for row in seen.unasked if row.kind == "group"}
        assert counters.by_api["OffsetFetch"] <= 4

    _run(test)


def test_only_a_survey_asks_twice() -> None:
    """The admin client also changes things: what it sent is not sent again."""

    async def test(cluster: Cluster, settings: Settings) -> None:
        late = cluster.delay(round(LIMIT_S * 1200), api="OffsetFetch", node=SLOW)
        async with await Nodes.open(settings) as nodes:
            offsets = await Admin(nodes).committed(GROUPS[:1])
        assert late.hits == 1
        assert not offsets

    _run(test)
