"""The consumer against real Kafka, alone and in one group with others' clients."""

import asyncio
import threading
import uuid
from collections.abc import Callable, Coroutine
from itertools import chain
from typing import Any

import pytest
from confluent_kafka import Consumer as Confluent

from kelpie.client.consumer import Consumer, ConsumerError
from kelpie.client.opening import open_connection
from kelpie.client.settings import Settings
from kelpie.consumer.effects import ProblemKind
from kelpie.consumer.steps import StepKind
from kelpie.model.names import TopicPartition
from kelpie.real.cluster import RealCluster
from kelpie.wire.api.create_topics import CreatableTopic, CreateTopicsRequest
from tests.client.consumer.producing import leader_of, produce
from tests.client.consumer.reading import poll_until, read

pytestmark = pytest.mark.real

QUICK: dict[str, Any] = {
    "auto_offset_reset": "earliest",
    "fetch_max_wait_ms": 50,
    "heartbeat_interval_ms": 100,
    "session_timeout_ms": 20_000,
    "max_poll_interval_ms": 20_000,
}


def _settings(cluster: RealCluster) -> Settings:
    return Settings.of(cluster.bootstrap_servers)


def _name(stem: str) -> str:
    return f"{stem}-{uuid.uuid4().hex[:8]}"


async def _topic(settings: Settings, partitions: int) -> list[TopicPartition]:
    name = _name("hay")
    async with await open_connection(settings.bootstrap[0], settings) as connection:
        new = CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=[]
        )
        (created,) = (await connection.ask(CreateTopicsRequest(topics=[new]), None, 30.0)).topics
        assert created.error_code == 0
    made = [TopicPartition(name, number) for number in range(partitions)]
    for partition in made:
        await leader_of(settings, partition)
    return made


class Librdkafka:
    """A consumer of another make, polled by a thread of its own. While it stops, ours must be polled."""

    def __init__(self, settings: Settings, group: str, topic: str, **config: object) -> None:
        self.owned: set[TopicPartition] = set()
        self._stopped = threading.Event()
        self._consumer = Confluent(
            {
                "bootstrap.servers": str(settings.bootstrap[0]),
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **config,
            }
        )
        self._consumer.subscribe(
            [topic], on_assign=self._gained, on_revoke=self._gave_up, on_lost=self._gave_up
        )
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def stop(self) -> None:
        self._stopped.set()

    def _poll(self) -> None:
        while not self._stopped.is_set():
            self._consumer.poll(0.1)
        self._consumer.close()

    def _gained(self, _: Confluent, partitions: list[Any]) -> None:
        self.owned |= {TopicPartition(each.topic, each.partition) for each in partitions}

    def _gave_up(self, _: Confluent, partitions: list[Any]) -> None:
        self.owned -= {TopicPartition(each.topic, each.partition) for each in partitions}


def _shared_out(partitions: list[TopicPartition], theirs: set[TopicPartition], *ours: Consumer) -> bool:
    """Whether everyone has something, and every partition one owner."""
    shares = [sorted(theirs), *(list(consumer.assignment) for consumer in ours)]
    return all(shares) and sorted(chain.from_iterable(shares)) == sorted(partitions)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"assignors": ("range",)}, {"partition.assignment.strategy": "range"}),
        (
            {"assignors": ("cooperative-sticky",)},
            {"partition.assignment.strategy": "cooperative-sticky"},
        ),
        ({"group_protocol": "consumer"}, {"group.protocol": "consumer"}),
    ],
    ids=["eager", "cooperative", "KIP-848"],
)
def test_two_of_ours_and_one_of_librdkafka_share_a_group(
    real_kafka: Callable[..., RealCluster], ours: dict[str, Any], theirs: dict[str, object]
) -> None:
    """Whoever leads, all come to the same; and what one leaves, the others take over, where it stood."""
    if "group.protocol" not in theirs:
        theirs |= {"session.timeout.ms": 20_000, "heartbeat.interval.ms": 100}
    settings = _settings(real_kafka())

    async def play() -> None:
        partitions = await _topic(settings, 6)
        topic, group = partitions[0].topic, _name("g")
        for partition in partitions:
            await produce(settings, partition, ["early"])
        one = Consumer(settings, group, [topic], **QUICK, **ours)
        await poll_until(lambda: len(one.positions) == 6, one)
        await read_all(one)
        await one.commit()
        two = Consumer(settings, group, [topic], **QUICK, **ours)
        other = Librdkafka(settings, group, topic, **theirs)
        await poll_until(lambda: _shared_out(partitions, other.owned, one, two), one, two)
        await poll_until(lambda: len(one.positions) == len(two.positions) == 2, one, two)
        other.stop()
        await poll_until(lambda: other.is_over, one, two)
        await one.close()
        await poll_until(lambda: len(two.positions) == 6, two)
        assert set(two.positions.values()) == {1}, "it goes on where the first one committed"
        for partition in partitions:
            await produce(settings, partition, ["late"])
        assert await read(two, 6) == ["late"] * 6
        await two.close()

    async def read_all(consumer: Consumer) -> None:
        await poll_until(lambda: set(consumer.positions.values()) == {1}, consumer)

    _run(play())


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_static_member_comes_back_to_what_it_had(
    real_kafka: Callable[..., RealCluster], protocol: str
) -> None:
    """It closes without leaving for good, and a new process of the same name goes on."""
    settings = _settings(real_kafka())
    options = {**QUICK, "group_protocol": protocol, "group_instance_id": "i"}

    async def play() -> None:
        partitions = await _topic(settings, 2)
        group = _name("g")
        first = Consumer(settings, group, [partitions[0].topic], **options)
        await poll_until(lambda: len(first.positions) == 2, first)
        before = first.identity
        await first.close()
        async with Consumer(settings, group, [partitions[0].topic], **options) as second:
            await poll_until(lambda: len(second.positions) == 2, second)
            if protocol == "classic":
                assert second.identity.generation == before.generation, "no rebalance"
            assert second.identity.member_id != before.member_id

    _run(play())


def test_slow_member_of_the_newer_protocol_leaves_and_returns(
    real_kafka: Callable[..., RealCluster],
) -> None:
    """It is not polled in time: it leaves by itself, may not commit, and joins again with the next poll."""
    settings = _settings(real_kafka())

    async def play() -> None:
        partitions = await _topic(settings, 1)
        options = {**QUICK, "group_protocol": "consumer", "max_poll_interval_ms": 1_000}
        async with Consumer(settings, _name("g"), [partitions[0].topic], **options) as consumer:
            await poll_until(lambda: consumer.positions, consumer)
            await _until(lambda: any(step.kind is StepKind.LEAVE for step in consumer.steps))
            assert consumer.assignment == ()
            with pytest.raises(ConsumerError) as refused:
                await consumer.commit({partitions[0]: 0})
            assert refused.value.problem.kind is ProblemKind.COMMIT_FAILED
            await poll_until(lambda: consumer.positions, consumer)

    _run(play())


def test_kafka_0_9_is_read_from_the_committed_offset(real_kafka: Callable[..., RealCluster]) -> None:
    """The first release with groups: the oldest versions, message sets of magic 0, no ApiVersions."""
    settings = _settings(real_kafka("0.9.0.1"))

    async def play() -> None:
        partition = TopicPartition(_name("hay"), 0)
        group = _name("g")
        await produce(settings, partition, ["a", "b", "c"])
        async with Consumer(settings, group, [partition.topic], **QUICK) as first:
            assert await read(first, 3) == ["a", "b", "c"]
            assert await first.commit({partition: 2}) == {partition: 2}
        async with Consumer(settings, group, [partition.topic], **QUICK) as second:
            assert await read(second, 1) == ["c"]
            assert second.identity.is_member

    _run(play())


async def _until(condition: Callable[[], object], limit_s: float = 30.0) -> None:
    async with asyncio.timeout(limit_s):
        while not condition():
            await asyncio.sleep(0.02)


def _run(play: Coroutine[Any, Any, None]) -> None:
    asyncio.run(play)
