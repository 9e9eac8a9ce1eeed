"""The history in the offsets topic, read by Fetch: from the lab of every age, and from real Kafka."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kelpie.client import history, negotiation
from kelpie.client.connection import Connection
from kelpie.client.history import read_history
from kelpie.client.kept_history import KeptHistory, Leadership, Window
from kelpie.client.nodes import Nodes
from kelpie.client.settings import Settings
from kelpie.client.survey import survey
from kelpie.client.versions import BrokerVersions
from kelpie.errors import ErrorCode
from kelpie.lab import Cluster
from kelpie.model.partitioning import partition_for
from kelpie.observations import OFFSETS_TOPIC, Observations
from kelpie.observations.offsets_topic import OffsetsPartition, cost_of
from kelpie.questions.fetch import AskRecords, FetchAnswer, FetchedPartition
from kelpie.real.cluster import RealCluster
from kelpie.wire.api.metadata import MetadataRequest
from kelpie.wire.malformed import TooLarge
from kelpie.wire.records import Codec, read_batches
from tests.client.inhabitants import Inhabitants
from tests.evidence.records import batch, commit

PARTITIONS = 5
GROUPS = ("alpha", "beta", "gamma", "delta", "epsilon")
FAST: dict[str, Any] = {"request_timeout_s": 0.5, "connect_timeout_s": 0.5}


def _run(test: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(60.0):
            await test()

    asyncio.run(limited())


@asynccontextmanager
async def _inhabited(persona: str = "4.3", **settings: Any) -> AsyncIterator[tuple[Cluster, Inhabitants]]:
    """A cluster on which each group has committed three times, and one has a member."""
    config = {"offsets.topic.replication.factor": 1, "group.initial.rebalance.delay.ms": 0}
    async with Cluster(2, persona=persona, offsets_partitions=PARTITIONS, config=config) as cluster:
        cluster.create_topic("orders", 1, replication=1)
        async with await Nodes.open(Settings.of(cluster.bootstrap_servers, **settings)) as nodes:
            living = Inhabitants(nodes)
            for offset in (1, 2, 3):
                for group in GROUPS:
                    await living.commit(group, "orders", {0: offset})
            yield cluster, living


def _offsets(seen: Observations, group: str) -> list[int]:
    return [row.offset for row in seen.commits if row.group == group]


def _reasons(seen: Observations) -> dict[str, str]:
    assert {row.kind for row in seen.unasked} <= {"history"}
    return {row.name: row.reason for row in seen.unasked}


@pytest.mark.parametrize("persona", ["4.3", "2.8", "0.9"])
def test_commits_and_generations_of_every_age_are_read(persona: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka 0.9 knows neither the newer ListOffsets nor batches; what comes out is the same."""
    if persona == "0.9":
        monkeypatch.setattr(negotiation, "PATIENCE_S", 0.05)
        monkeypatch.setattr(negotiation, "GRACE_S", 0.05)

    async def test() -> None:
        async with _inhabited(persona) as (_, living):
            member = await living.join("readers", "orders")
            seen = await read_history(living.nodes)
        assert {group: _offsets(seen, group) for group in GROUPS} == {key: [1, 2, 3] for key in GROUPS}
        newest = [row for row in seen.generations if row.group == "readers"][-1]
        assert (newest.generation, newest.members[0].member_id) == (member.generation, member.member_id)
        assert set(seen.known_groups) == {*GROUPS, "readers"}
        assert seen.unasked == []
        partition = partition_for("alpha", PARTITIONS)
        assert {row.source.partition(", ")[2] for row in seen.commits if row.group == "alpha"} == {
            f"{OFFSETS_TOPIC}-{partition}@{row}" for row in _record_offsets(seen, "alpha")
        }

    _run(test)


@pytest.mark.parametrize("newest", [3, 6, 9])
def test_reading_creates_no_offsets_topic(newest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka up to 2.0 speaks Metadata up to version 6, and creates an internal topic that a request names."""
    pick, ask = BrokerVersions.pick, Connection.ask
    asked: list[MetadataRequest] = []

    def pick_old(self: BrokerVersions, request: type[Any], *limits: Any, **more: Any) -> int:
        version = pick(self, request, *limits, **more)
        return min(version, newest) if request is MetadataRequest else version

    async def note(self: Connection, request: Any, *more: Any, **others: Any) -> Any:
        if isinstance(request, MetadataRequest):
            asked.append(request)
        return await ask(self, request, *more, **others)

    async def test() -> None:
        async with Cluster(2, persona="2.8") as cluster:
            monkeypatch.setattr(BrokerVersions, "pick", pick_old)
            monkeypatch.setattr(Connection, "ask", note)
            async with await Nodes.open(Settings.of(cluster.bootstrap_servers)) as nodes:
                seen = await read_history(nodes, groups=["alpha"])
                everything = await nodes.ask_any(MetadataRequest(topics=None))
        assert seen.known_groups == {}
        assert everything.topics == []
        named = [topic.name for request in asked for topic in request.topics or ()]
        assert set(named) == ({OFFSETS_TOPIC} if newest >= 7 else set())

    _run(test)


def test_what_was_read_before_is_not_read_again() -> None:
    """A watch of a busy cluster would otherwise fetch megabytes of each partition every ten seconds."""

    async def test() -> None:
        async with _inhabited() as (_, living):
            kept = KeptHistory()
            first = await read_history(living.nodes, kept=kept)
            fetches = living.nodes.counters.by_api["Fetch"]
            assert _rows(await read_history(living.nodes, kept=kept)) == _rows(first)
            assert living.nodes.counters.by_api["Fetch"] == fetches
            await living.commit("alpha", "orders", {0: 4})
            seen = await read_history(living.nodes, kept=kept)
            assert living.nodes.counters.by_api["Fetch"] == fetches + 1
            assert _offsets(seen, "alpha") == [1, 2, 3, 4]
            assert _rows(seen) == _rows(await read_history(living.nodes))

    _run(test)


def _rows(seen: Observations) -> tuple[object, ...]:
    return sorted(seen.commits), sorted(seen.generations, key=repr), seen.known_groups, seen.unasked


def test_what_was_read_of_another_leader_or_a_longer_log_is_not_used() -> None:
    """After an unclean election the log may hold other records at the same offsets."""
    kept, leader, windows = KeptHistory(), Leadership(1, 7), [Window(60), Window(0)]
    kept.keep(5, leader, 100, windows, 1000)
    assert kept.windows(5, leader, 100) == (100, windows)
    assert kept.windows(5, leader, 99) == (0, [])
    assert kept.windows(5, Leadership(1, 8), 100) == (0, [])
    assert kept.windows(5, Leadership(2, 7), 100) == (0, [])
    assert kept.windows(6, leader, 100) == (0, [])


def test_what_is_kept_is_bounded() -> None:
    """A watch goes on for weeks: old windows go when the newer ones are what a look may read."""
    kept, leader = KeptHistory(), Leadership(1, 7)
    windows = [Window(90, cost=400), Window(50, cost=600), Window(0, cost=900)]
    kept.keep(5, leader, 100, windows, 1000)
    assert kept.windows(5, leader, 100) == (100, windows[:2])


def _record_offsets(seen: Observations, group: str) -> list[int]:
    return [int(row.source.rpartition("@")[2]) for row in seen.commits if row.group == group]


def test_only_what_is_asked_for_is_read() -> None:
    """A question about one group costs one partition, and says nothing of its neighbours."""

    async def test() -> None:
        async with _inhabited() as (_, living):
            seen = await read_history(living.nodes, groups=["alpha"])
            assert set(seen.known_groups) == {"alpha"}
            partition = partition_for("beta", PARTITIONS)
            there = {group for group in GROUPS if partition_for(group, PARTITIONS) == partition}
            assert set((await read_history(living.nodes, partitions=[partition])).known_groups) == there

    _run(test)


def test_commits_that_are_pending_name_their_producer() -> None:
    """The transaction that holds a group's offsets back is told from others in the same partition."""

    async def test() -> None:
        async with _inhabited() as (cluster, living):
            producer = await living.commit_in_open_transaction("alpha", "orders", 9)
            seen = await survey(Settings.of(cluster.bootstrap_servers))
            seen.add(await read_history(living.nodes, seen))
            (pending,) = seen.pending_commits
            assert (pending.group, pending.offset, pending.producer_id) == ("alpha", 9, producer)
            assert [row.producer_id for row in seen.transactions] == [producer]
            only_beta = await read_history(living.nodes, seen, groups=["beta"])
            assert only_beta.pending_commits == []

    _run(test)


def test_a_survey_spares_the_question_who_leads() -> None:
    """It was asked a moment ago, of every broker."""

    async def test() -> None:
        async with _inhabited() as (_, living):
            surveyed = await survey(living.nodes)
            before = living.nodes.counters.by_api["Metadata"]
            seen = await read_history(living.nodes, surveyed)
            assert living.nodes.counters.by_api["Metadata"] == before
            assert len(seen.commits) == 3 * len(GROUPS)

    _run(test)


def test_a_quota_that_holds_us_back_is_told_and_not_fought(monkeypatch: pytest.MonkeyPatch) -> None:
    """As seen on 3.9.2: the broker answers without a partition, and reads nothing from the connection for a
    while. Asking on would take seconds for each partition.
    """
    monkeypatch.setattr(history, "_AT_ONCE", 1)
    put = Nodes.put
    asked: list[int] = []

    async def throttled(self: Nodes, node: int, question: Any, *limits: Any) -> Any:
        answer = await put(self, node, question, *limits)
        if not isinstance(question, AskRecords):
            return answer
        asked.append(node)
        return FetchAnswer(0, {}, 4000)

    monkeypatch.setattr(Nodes, "put", throttled)

    async def test() -> None:
        async with _inhabited() as (_, living):
            seen = await read_history(living.nodes)
        reasons = _reasons(seen)
        assert reasons.keys() == {f"{OFFSETS_TOPIC}-{partition_for(group, PARTITIONS)}" for group in GROUPS}
        assert all("a quota of the cluster" in reason and "for 4 s" in reason for reason in reasons.values())
        assert len(asked) == len(set(asked))

    _run(test)


def test_the_newest_come_first_when_there_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a partition is what matters; what was left out is told."""
    monkeypatch.setattr(history, "_FIRST_WINDOW", 64)

    async def test() -> None:
        async with _inhabited() as (_, living):
            for offset in range(4, 120):
                await living.commit("alpha", "orders", {0: offset})
            seen = await read_history(living.nodes, None, 4000, groups=["alpha"])
        offsets = _offsets(seen, "alpha")
        assert offsets == list(range(offsets[0], 120))
        assert 10 < len(offsets) < 100
        (reason,) = _reasons(seen).values()
        assert reason.startswith("Only its end was read: offsets ")

    _run(test)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.ZSTD])
def test_the_limit_is_of_inflated_bytes_and_rows(codec: Codec, monkeypatch: pytest.MonkeyPatch) -> None:
    """35 KB of zstd were 26 MB of rows, and nothing was left out."""
    made = [
        batch([commit("g", 1, partition=number) for number in range(100)], base=100 * base, codec=codec)
        for base in range(50)
    ]
    rows_of_one = sum(1 for _ in OffsetsPartition().read(made[0], "here"))
    cost = sum(cost_of(one, 1 << 30) for batch_ in made[:1] for one in read_batches(batch_))

    async def records(*asked: Any) -> FetchedPartition:
        return FetchedPartition(0, records=b"".join(made[asked[3] // 100 :][:4]))

    monkeypatch.setattr(history, "ask_records", records)
    monkeypatch.setattr(history, "_FIRST_WINDOW", 100)
    reader = history._Reader(None, 10 * cost, None, None)  # type: ignore[arg-type]
    windows = asyncio.run(reader._windows(1, 0, 0, 5000))
    pieces = [piece for window in reversed(windows) for piece in window.pieces]
    read = [placed for piece in pieces for placed in OffsetsPartition().read(piece, "here")]
    assert 5 * rows_of_one <= len(read) <= 10 * rows_of_one
    assert read[-1].offset == 4999


def test_records_without_content_count_as_rows() -> None:
    """Seven bytes each, and an object for each of them."""
    (empty,) = read_batches(batch([(b"", b"")] * 1000))
    assert empty.size < 20_000
    assert cost_of(empty, 1 << 20) == 48_000
    with pytest.raises(TooLarge):
        cost_of(empty, 40_000)


def test_what_is_older_than_asked_for_is_spared() -> None:
    """The broker finds the place by time, where it can."""

    async def test() -> None:
        async with _inhabited() as (_, living):
            everything = await read_history(living.nodes, groups=["alpha"])
            last = everything.commits[-1].at
            assert last is not None
            seen = await read_history(living.nodes, groups=["alpha"], since=last + 3_600_000)
            assert seen.commits == []

    _run(test)


def test_a_dead_broker_costs_its_partitions_and_no_more() -> None:
    """Half the cluster is gone; the other half has its history."""

    async def test() -> None:
        async with _inhabited(**FAST) as (cluster, living):
            surveyed = await survey(living.nodes)
            led = {
                row.partition for row in surveyed.partitions if row.topic == OFFSETS_TOPIC and row.leader == 2
            }
            await cluster.kill(2)
            seen = await read_history(living.nodes, surveyed)
            assert set(_reasons(seen)) == {f"{OFFSETS_TOPIC}-{partition}" for partition in led}
            assert set(seen.known_groups) == {it for it in GROUPS if partition_for(it, PARTITIONS) not in led}

    _run(test)


def test_a_partition_without_a_leader_is_told() -> None:
    """The very partition that matters has nobody who could be asked: disks can."""

    async def test() -> None:
        async with _inhabited() as (cluster, living):
            partition = partition_for("alpha", PARTITIONS)
            with cluster.make_leaderless(OFFSETS_TOPIC, partition):
                seen = await read_history(living.nodes)
            assert _reasons(seen) == {f"{OFFSETS_TOPIC}-{partition}": "It has no leader."}
            assert "alpha" not in seen.known_groups

    _run(test)


@pytest.mark.parametrize("api", ["Fetch", "ListOffsets"])
def test_who_may_not_read_it_is_told_so(api: str) -> None:
    """Reading the offsets topic is a right of its own, and the doctor must do without it."""

    async def test() -> None:
        async with _inhabited() as (cluster, living):
            with cluster.fail(ErrorCode.TOPIC_AUTHORIZATION_FAILED, api=api):
                seen = await read_history(living.nodes)
            assert seen.commits == []
            used = {f"{OFFSETS_TOPIC}-{partition_for(group, PARTITIONS)}" for group in GROUPS}
            assert used <= set(_reasons(seen))
            assert all("TOPIC_AUTHORIZATION_FAILED" in reason for reason in _reasons(seen).values())

    _run(test)


@pytest.mark.real
@pytest.mark.parametrize("version", ["0.9.0.1", "4.3.1"])
def test_real_kafka_gives_its_history(real_kafka: Callable[..., RealCluster], version: str) -> None:
    """The oldest and the newest Fetch, and the records that real coordinators write."""
    cluster = real_kafka(version)
    mark = uuid.uuid4().hex[:6]
    group, topic = f"history-{mark}", f"history-orders-{mark}"

    async def test() -> None:
        async with await Nodes.open(Settings.of(cluster.bootstrap_servers)) as nodes:
            living = Inhabitants(nodes)
            await living.topic(topic)
            member = await living.join(group, topic)
            for offset in (4, 7):
                await living.commit(group, topic, {0: offset}, member=member)
            seen = await read_history(nodes, groups=[group])
        assert [row[:4] for row in seen.commits] == [(group, topic, 0, 4), (group, topic, 0, 7)]
        generation = [row for row in seen.generations if row.members][-1]
        assert generation.members[0].member_id == member.member_id
        assert generation.members[0].subscribed == (topic,)
        assert seen.unasked == []

    _run(test)
