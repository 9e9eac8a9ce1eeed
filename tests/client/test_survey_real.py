"""The survey on real Kafka, old and new, whole and broken."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable

import pytest
from confluent_kafka import Producer

from kelpie.client.nodes import Nodes
from kelpie.client.settings import Settings
from kelpie.client.survey import SurveyOptions, survey
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.observations import OFFSETS_TOPIC, GroupState, Observations
from kelpie.real.cluster import RealCluster
from kelpie.wire.api.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kelpie.wire.api.metadata import MetadataRequest, MetadataRequestTopic
from kelpie.wire.structs import TopicIdPartitions
from tests.client.inhabitants import Inhabitants, until

pytestmark = pytest.mark.real


def _run(test: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(120.0):
            await test()

    asyncio.run(limited())


def _state(seen: Observations, group: str) -> GroupState:
    return next(row for row in seen.states if row.group == group)


@pytest.mark.parametrize(("version", "release"), [("0.9.0.1", "0.9"), ("2.8.2", "2.8"), ("4.3.1", "4.x")])
def test_real_kafka_of_every_age_is_told_in_full(
    real_kafka: Callable[..., RealCluster], version: str, release: str
) -> None:
    """The lab judges the survey only as far as the lab is Kafka."""
    cluster = real_kafka(version)
    mark = uuid.uuid4().hex[:6]
    group, topic = f"survey-{mark}", f"survey-orders-{mark}"

    async def test() -> None:
        async with await Nodes.open(Settings.of(cluster.bootstrap_servers)) as nodes:
            living = Inhabitants(nodes)
            await living.topic(topic)
            await living.produce(topic, 0, 10)
            member = await living.join(group, topic)
            await living.commit(group, topic, {0: 4}, member=member)
            seen = await survey(nodes, groups=[group, "survey-nobody"])
        assert [(row.node_id, row.alive, row.release) for row in seen.brokers] == [(1, True, release)]
        count = sum(row.topic == OFFSETS_TOPIC for row in seen.partitions)
        assert {row.partition for row in seen.partitions if row.topic == OFFSETS_TOPIC} == set(range(count))
        assert group in {name for row in seen.listings for name in row.groups}
        state = _state(seen, group)
        assert (state.state, state.protocol_type, state.protocol) == ("Stable", "consumer", "range")
        assert state.members[0].subscribed == (topic,)
        assert state.members[0].assigned == (TopicPartition(topic, 0),)
        assert _state(seen, "survey-nobody").state == "Dead"
        assert [row[:5] for row in seen.committed] == [(group, topic, 0, 4, 0)]
        now = [row for row in seen.ends if "timestamps" not in row.source]
        assert [(row.topic, row.earliest, row.latest, row.stable) for row in now] == [(topic, 0, 10, 10)]
        settings = {(row.of, row.name) for row in seen.settings}
        if version == "0.9.0.1":
            assert [(row.kind, row.name) for row in seen.unasked] == [("settings", "all")]
        else:
            assert ("broker 1", "offsets.retention.minutes") in settings
            assert (f"topic {OFFSETS_TOPIC}", "min.insync.replicas") in settings
            assert (f"topic {topic}", "retention.ms") in settings
            assert seen.unasked == []
            past = [row.latest for row in seen.ends if "timestamps" in row.source]
            assert past[0] == 0, "a day ago the topic was empty"

    _run(test)


def test_groups_of_the_newer_protocol_are_described_too(real_kafka: Callable[..., RealCluster]) -> None:
    """KIP-848: another API, and groups that the classic one does not know."""
    cluster = real_kafka()
    mark = uuid.uuid4().hex[:6]
    group, topic = f"newer-{mark}", f"newer-orders-{mark}"

    async def test() -> None:
        async with await Nodes.open(Settings.of(cluster.bootstrap_servers)) as nodes:
            living = Inhabitants(nodes)
            await living.topic(topic, 2)
            await living.coordinator(group)
            request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
            topic_id = (await nodes.ask_any(request)).topics[0].topic_id
            member = str(uuid.uuid4())

            async def heartbeat(epoch: int, owned: list[int], topics: list[str] | None = None) -> int | None:
                partitions = [TopicIdPartitions(topic_id=topic_id, partitions=owned)] if owned else []
                request = ConsumerGroupHeartbeatRequest(
                    group_id=group,
                    member_id=member,
                    member_epoch=epoch,
                    rebalance_timeout_ms=60_000 if topics else -1,
                    subscribed_topic_names=topics,
                    topic_partitions=partitions,
                )
                response = await nodes.ask(1, request)
                return response.member_epoch if response.error_code == ErrorCode.NONE else None

            epoch = await until(lambda: heartbeat(0, [], [topic]))
            everything = {TopicPartition(topic, 0), TopicPartition(topic, 1)}

            async def settled() -> Observations | None:
                """The coordinator hears of the topic a moment later, and then makes another epoch."""
                nonlocal epoch
                epoch = await heartbeat(epoch, [0, 1]) or epoch
                seen = await survey(nodes, groups=[group], options=SurveyOptions(ends=False))
                state = _state(seen, group)
                assigned = {name for member in state.members for name in member.assigned or ()}
                return seen if state.state == "Stable" and assigned == everything else None

            seen = await until(settled)
            state = _state(seen, group)
            assert state.kind == "consumer"
            assert state.epoch >= 1
            assert [entry.member_id for entry in state.members] == [member]
            assert state.members[0].subscribed == (topic,)
            assert state.members[0].epoch == state.epoch
            # Known by name only, so its type is not: the classic API is asked first, in vain.
            await heartbeat(-1, [])
            seen = await survey(nodes, groups=["newer-nobody"], options=SurveyOptions(ends=False))
            absent = _state(seen, "newer-nobody")
            assert (absent.state, absent.error) == ("Dead", ErrorCode.GROUP_ID_NOT_FOUND)

    _run(test)


def test_a_transaction_that_the_caller_may_not_see_is_not_told_as_unknown(
    fresh_real_kafka: Callable[..., RealCluster],
) -> None:
    """ListTransactions answers without an error and without the transaction; it is there all the same."""
    cluster = fresh_real_kafka(
        "4.3.1",
        **{
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "true",
        },
    )
    servers = cluster.bootstrap_servers
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "tx", "log_level": 0})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("held", b"v")
    producer.flush(60)

    async def look() -> tuple[list[str], list[str]]:
        async with await Nodes.open(Settings.of(servers)) as nodes:
            await Inhabitants(nodes).commit("reader", "held", {0: 0})
            seen = await survey(nodes)
        reasons = [row.reason for row in seen.unasked if row.kind == "partition"]
        return [row.state for row in seen.transactions], reasons

    assert asyncio.run(look()) == (["Ongoing"], [])
    # As soon as anyone is named for all ids, nobody else may see them.
    allow = ("--add", "--allow-principal", "User:auditor", "--operation", "Describe")
    granted = cluster.tool("kafka-acls", *allow, "--transactional-id", "*")
    assert granted.status == 0, granted.stdout + granted.stderr
    states, reasons = asyncio.run(look())
    assert states == ["?"]
    assert ["may not describe every transactional id" in reason for reason in reasons] == [True]
