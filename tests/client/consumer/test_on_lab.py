"""The consumer on real sockets, against the lab: in good health, and with every fault that concerns it."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from confluent_kafka import Producer

from kelpie.client.consumer import Change, Consumer, ConsumerError
from kelpie.client.settings import Settings
from kelpie.consumer.effects import PartitionsAssigned, PartitionsLost, PartitionsRevoked, ProblemKind
from kelpie.consumer.steps import ConsumerStep, StepKind
from kelpie.lab.cluster import Cluster
from kelpie.model.names import TopicPartition
from kelpie.model.partitioning import partition_for
from tests.client.consumer.producing import produce
from tests.client.consumer.reading import poll_until, read

TOPIC = "t"
T0, T1 = TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)
QUICK: dict[str, Any] = {
    "auto_offset_reset": "earliest",
    "fetch_max_wait_ms": 50,
    "heartbeat_interval_ms": 50,
    "session_timeout_ms": 30_000,
    "retry_backoff_ms": 20,
    "retry_backoff_max_ms": 100,
}
_CONFIG = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 100,
    "broker.session.timeout.ms": 500,
    "broker.heartbeat.interval.ms": 50,
}


class Lab:
    """A lab cluster with a topic of two partitions, three records in each."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.settings = Settings.of(cluster.bootstrap_servers)

    def consumer(self, group: str | None = "g", **options: Any) -> Consumer:
        given = {**QUICK, **options}
        topics = () if "partitions" in given else (TOPIC,)
        return Consumer(self.settings, group, topics, **given)

    async def add(self, *values: str, partition: TopicPartition = T0) -> None:
        await produce(self.settings, partition, values)

    def offsets_partition(self, group: str = "g") -> int:
        return partition_for(group, 50)

    async def warm_up(self, group: str = "g") -> None:
        """The offsets topic is there, and the group's partition is led and loaded."""
        async with self.consumer(group, partitions=[T0]) as consumer:
            await poll_until(lambda: consumer.positions, consumer)


def on_lab(
    persona: str = "4.3", brokers: int = 3, replication: int = 3
) -> Callable[[Callable[[Lab], Awaitable[None]]], None]:
    def run(test: Callable[[Lab], Awaitable[None]]) -> None:
        async def play() -> None:
            async with Cluster(brokers, persona=persona, config=_CONFIG, replication=replication) as cluster:
                cluster.create_topic(TOPIC, 2)
                lab = Lab(cluster)
                await lab.add("a", "b", "c")
                await lab.add("d", "e", "f", partition=T1)
                await test(lab)

        asyncio.run(play())

    return run


def heard(consumer: Consumer, kind: StepKind, text: str) -> list[ConsumerStep]:
    return [step for step in consumer.steps if step.kind is kind and text in step.answer]


@pytest.mark.parametrize("persona", ["0.9", "2.8", "3.9", "4.3"])
def test_next_consumer_goes_on_where_the_last_one_committed(persona: str) -> None:
    """The whole journey, from the bootstrap address to the commit, with the versions of each release."""

    async def test(lab: Lab) -> None:
        async with lab.consumer() as first:
            assert await read(first, 6) == ["a", "b", "c", "d", "e", "f"]
            assert await first.commit() == {T0: 3, T1: 3}
        await lab.add("g")
        async with lab.consumer() as second:
            assert await read(second, 1) == ["g"]
            assert second.positions == {T0: 4, T1: 3}

    on_lab(persona)(test)


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_two_consumers_share_and_one_takes_over(assignor: str) -> None:
    """Each partition has one reader; when that leaves, the other one has it, at the committed offset."""

    async def test(lab: Lab) -> None:
        changes: list[Change] = []
        async with lab.consumer(assignors=(assignor,), on_change=changes.append) as one:
            two = lab.consumer(assignors=(assignor,))
            await read(one, 6)
            await one.commit()
            await poll_until(lambda: len(one.assignment) == len(two.assignment) == 1, one, two)
            assert set(one.assignment) | set(two.assignment) == {T0, T1}
            revoked = [change for change in changes if isinstance(change, PartitionsRevoked)]
            assert [len(change.partitions) for change in revoked] == [
                1 if assignor == "cooperative-sticky" else 2
            ]
            await two.close()
            await poll_until(lambda: len(one.positions) == 2, one)
            await lab.add("more", partition=T0)
            await lab.add("more", partition=T1)
            assert await read(one, 2) == ["more", "more"]

    on_lab()(test)


def test_leaderless_offsets_partition_stops_it_until_a_leader_comes() -> None:
    """Error 15 from every broker, as in an outage; nothing is raised, and nothing is read."""

    async def test(lab: Lab) -> None:
        await lab.warm_up()
        with lab.cluster.make_leaderless("__consumer_offsets", lab.offsets_partition()) as fault:
            async with lab.consumer() as consumer:
                await poll_until(
                    lambda: heard(consumer, StepKind.LOOKUP, "15 COORDINATOR_NOT_AVAILABLE"), consumer
                )
                assert await consumer.poll(0.2) == []
                assert consumer.assignment == ()
                fault.lift()
                assert len(await read(consumer, 6)) == 6

    on_lab()(test)


def test_loading_coordinator_is_waited_for() -> None:
    """14: ask again, of the same one."""

    async def test(lab: Lab) -> None:
        await lab.warm_up()
        partition = lab.offsets_partition()
        lab.cluster.slow_load(400, partition)
        lab.cluster.make_leaderless("__consumer_offsets", partition).lift()
        async with lab.consumer() as consumer:
            await read(consumer, 6)
            assert heard(consumer, StepKind.JOIN, "14 COORDINATOR_LOAD_IN_PROGRESS")

    on_lab()(test)


def test_coordinator_that_dies_is_replaced() -> None:
    """The member finds the new one, and is still a member: nothing is rebalanced."""

    async def test(lab: Lab) -> None:
        async with lab.consumer() as consumer:
            await read(consumer, 6)
            before = consumer.identity
            assert consumer.coordinator is not None
            dead = consumer.coordinator.node_id
            await lab.cluster.kill(dead)
            await poll_until(
                lambda: consumer.coordinator is not None and consumer.coordinator.node_id != dead, consumer
            )
            assert await consumer.commit() == {T0: 3, T1: 3}
            assert consumer.identity == before

    on_lab()(test)


def test_broker_with_stale_metadata_leads_to_the_old_coordinator() -> None:
    """It names one that is none any more, which answers 16: the coordinator is looked for again.

    Whether another broker is asked then is a matter of luck, as with Kafka's own client: one that is
    connected is preferred, and it may be the stale one, for ever.
    """

    async def test(lab: Lab) -> None:
        await lab.warm_up()
        cluster, number = lab.cluster, lab.offsets_partition()
        state = cluster.describe()["topics"]["__consumer_offsets"][number]
        old = state["leader"]
        new, stale = (lab for lab in state["replicas"] if lab != old)
        frozen = cluster.freeze_metadata(stale)
        cluster.shrink_isr("__consumer_offsets", number, [new])
        lab.settings = Settings.of(cluster.bootstrap_servers.split(",")[stale - 1])
        async with lab.consumer() as consumer:
            await poll_until(lambda: heard(consumer, StepKind.JOIN, "16 NOT_COORDINATOR"), consumer)
            assert heard(consumer, StepKind.LOOKUP, f"broker {old} at")
            frozen.lift()
            await poll_until(lambda: len(consumer.positions) == 2, consumer)
            assert consumer.coordinator is not None
            assert consumer.coordinator.node_id == new

    on_lab()(test)


def test_slow_application_is_put_out_and_comes_back() -> None:
    """max.poll.interval.ms: heartbeats go on, and yet it must leave."""

    async def test(lab: Lab) -> None:
        changes: list[Change] = []
        async with lab.consumer(max_poll_interval_ms=400, on_change=changes.append) as consumer:
            await read(consumer, 6)
            await lab.cluster.wait_for_group("g", "Empty")  # It is not polled.
            with pytest.raises(ConsumerError) as refused:
                await consumer.commit({T0: 3})
            assert refused.value.problem.kind is ProblemKind.COMMIT_FAILED
            assert len(await read(consumer, 6)) == 6, "nothing was committed, so all comes again"
        assert [type(change) for change in changes][:3] == [
            PartitionsAssigned,
            PartitionsLost,
            PartitionsAssigned,
        ]

    on_lab()(test)


def test_consumer_that_hangs_is_expired_and_learns_it_later() -> None:
    """Without heartbeats the session ends; the next one is answered 25."""

    async def test(lab: Lab) -> None:
        async with lab.consumer(session_timeout_ms=300) as consumer:
            await read(consumer, 6)
            first = consumer.identity.member_id
            consumer.hold_heartbeats()
            await lab.cluster.wait_for_group("g", "Empty")
            consumer.release_heartbeats()
            await poll_until(lambda: consumer.identity.member_id not in ("", first), consumer)
            assert heard(consumer, StepKind.HEARTBEAT, "25 UNKNOWN_MEMBER_ID")

    on_lab()(test)


def test_consumer_that_crashes_is_missed_only_when_its_session_ends() -> None:
    """It says nothing: the group waits for it."""

    async def test(lab: Lab) -> None:
        consumer = lab.consumer(session_timeout_ms=400)
        await read(consumer, 6)
        await consumer.crash()
        await lab.cluster.wait_for_group("g", "Stable", members=1)
        await lab.cluster.wait_for_group("g", "Empty")

    on_lab()(test)


def test_static_member_returns_without_a_rebalance() -> None:
    """KIP-345: same instance, same generation, same partitions; the old process is fenced."""

    async def test(lab: Lab) -> None:
        old = lab.consumer(group_instance_id="i", session_timeout_ms=60_000)
        await read(old, 6)
        generation = old.identity.generation
        async with lab.consumer(group_instance_id="i", session_timeout_ms=60_000) as new:
            await poll_until(lambda: len(new.positions) == 2, new)
            assert new.identity.generation == generation
            with pytest.raises(ConsumerError) as fenced:
                await poll_until(lambda: False, old)
            assert fenced.value.problem.kind is ProblemKind.FENCED
        await old.close()

    on_lab()(test)


def test_lost_log_end_is_noticed_and_told() -> None:
    """An unclean election: what was read is not there any more, and it goes on where the log ends now."""

    async def test(lab: Lab) -> None:
        cluster = lab.cluster
        cluster.create_topic("u", assignment={0: (1, 2)}, config={"unclean.leader.election.enable": "true"})
        partition = TopicPartition("u", 0)
        await produce(lab.settings, partition, ["kept"])
        cluster.lag(2, "u", 0)
        async with lab.consumer(partitions=[partition]) as consumer:
            await read(consumer, 1)
            cluster.shrink_isr("u", 0, [1])
            await produce(lab.settings, partition, ["lost", "lost"], acks=1)
            await read(consumer, 2)
            await cluster.kill(1)
            await cluster.wait_until(lambda state: state["topics"]["u"][0]["leader"] == 2)
            await poll_until(lambda: consumer.positions == {partition: 1}, consumer)
            checked = [step for step in consumer.steps if step.kind is StepKind.VALIDATE]
            assert "2 offsets before 3 are gone" in checked[-1].follows

    on_lab(replication=1)(test)


def test_connection_that_goes_silent_is_replaced() -> None:
    """No answer within request.timeout.ms: another connection, and on it goes."""

    async def test(lab: Lab) -> None:
        async with lab.consumer(request_timeout_ms=500) as consumer:
            await read(consumer, 6)
            lab.cluster.silence(api="Fetch", count=1)
            await poll_until(lambda: heard(consumer, StepKind.FETCH, "did not answer Fetch"), consumer)
            await lab.add("more")
            assert await read(consumer, 1) == ["more"]

    on_lab()(test)


def test_expired_offsets_send_it_to_the_policy() -> None:
    """The coordinator says −1, as it does of a group that it has never seen."""

    async def test(lab: Lab) -> None:
        async with lab.consumer() as consumer:
            await read(consumer, 6)
            await consumer.commit()
        lab.cluster.lose_offsets("g")
        async with lab.consumer(auto_offset_reset="none") as consumer:
            with pytest.raises(ConsumerError) as raised:
                await poll_until(lambda: False, consumer)
            assert raised.value.problem.kind is ProblemKind.NO_OFFSET

    on_lab()(test)


def test_readers_of_committed_records_stop_at_an_open_transaction() -> None:
    """Aborted records are passed over, and nothing behind an open transaction is read before it ends."""

    def transact(bootstrap: str, begun: threading.Event, over: threading.Event) -> None:
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "x", "linger.ms": 0})
        producer.init_transactions(30)
        for value, ends in (("aborted", producer.abort_transaction), ("done", producer.commit_transaction)):
            producer.begin_transaction()
            producer.produce(TOPIC, value, partition=1)
            producer.flush(30)
            ends(30)
        producer.begin_transaction()
        producer.produce(TOPIC, "open", partition=1)
        producer.flush(30)
        begun.set()
        over.wait(30)
        producer.commit_transaction(30)

    async def test(lab: Lab) -> None:
        begun, over = threading.Event(), threading.Event()
        work = asyncio.create_task(asyncio.to_thread(transact, lab.cluster.bootstrap_servers, begun, over))
        await asyncio.to_thread(begun.wait, 30)
        async with lab.consumer(partitions=[T1], isolation_level="read_committed") as consumer:
            assert await read(consumer, 4) == ["d", "e", "f", "done"]
            assert await consumer.poll(0.3) == []
            over.set()
            assert await read(consumer, 1) == ["open"]
        async with lab.consumer(partitions=[T1], isolation_level="read_uncommitted") as consumer:
            assert await read(consumer, 6) == ["d", "e", "f", "aborted", "done", "open"]
        await work

    on_lab()(test)


def test_cluster_that_is_not_there_costs_a_poll_its_limit_and_nothing_more() -> None:
    """Nothing is raised: a cluster may come back. The steps say what was tried."""

    async def test() -> None:
        settings = Settings.of("127.0.0.1:1")
        async with Consumer(settings, "g", [TOPIC], **QUICK) as consumer:
            assert await consumer.poll(0.3) == []
            assert consumer.steps
            assert all(step.failed for step in consumer.steps)

    asyncio.run(test())


def test_misuse_is_refused() -> None:
    """Two polls at once, or a poll after the end, are mistakes of the caller."""

    async def test(lab: Lab) -> None:
        consumer = lab.consumer()
        polling = asyncio.create_task(consumer.poll(5.0))
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="one caller"):
            await consumer.poll(0.1)
        await polling
        await consumer.close()
        await consumer.close()
        with pytest.raises(RuntimeError, match="closed"):
            await consumer.poll(0.1)

    on_lab()(test)
