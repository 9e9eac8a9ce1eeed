"""Groups that their coordinators assign, on real Kafka 4.3.1: KIP-848, share groups, the Streams protocol."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Sequence

import pytest

from kelpie.client.admin.asking import Asking
from kelpie.client.admin.groups import describe_groups
from kelpie.client.nodes import Nodes
from kelpie.client.settings import Settings
from kelpie.client.survey import survey
from kelpie.doctor.cases import build
from kelpie.doctor.diagnosis import diagnose_all
from kelpie.doctor.finding import Finding
from kelpie.doctor.report import unjudged
from kelpie.doctor.rules import rebalance_stuck
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.observations import GroupState
from kelpie.real.cluster import RealCluster
from kelpie.wire.api.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kelpie.wire.api.metadata import MetadataRequest, MetadataRequestTopic
from kelpie.wire.api.share_group_heartbeat import ShareGroupHeartbeatRequest
from kelpie.wire.api.streams_group_heartbeat import (
    HeartbeatSubtopology,
    HeartbeatTopology,
    StreamsGroupHeartbeatRequest,
)
from kelpie.wire.structs import TaskIds, TopicIdPartitions
from tests.client.inhabitants import Inhabitants, until
from tests.doctor.building import a_case, a_cluster

pytestmark = pytest.mark.real

Test = Callable[[Nodes, str, str], Awaitable[None]]


def _on(cluster: RealCluster, test: Test) -> None:
    """With a topic of two partitions and ten records, and the name of a group."""
    mark = uuid.uuid4().hex[:6]
    group, topic = f"other-{mark}", f"other-orders-{mark}"

    async def run() -> None:
        async with asyncio.timeout(120.0), await Nodes.open(Settings.of(cluster.bootstrap_servers)) as nodes:
            living = Inhabitants(nodes)
            await living.topic(topic, 2)
            await living.produce(topic, 0, 10)
            await living.coordinator(group)
            await test(nodes, group, topic)

    asyncio.run(run())


async def _described(nodes: Nodes, group: str, topic: str) -> GroupState | None:
    """The group, once its members have both partitions."""
    seen = await survey(nodes, groups=[group])
    state = next((row for row in seen.states if row.group == group), None)
    assigned = {name for member in state.members for name in member.assigned or ()} if state else set()
    return state if assigned == {TopicPartition(topic, 0), TopicPartition(topic, 1)} else None


async def _kinds_by_name(nodes: Nodes, group: str) -> dict[str, str]:
    """Of this group and of one that does not exist, where only their names are known. One row each."""
    asking = Asking(nodes)
    await asking.meet()
    await describe_groups(asking, 1, [group, "other-nobody"], {})
    assert len(asking.seen.states) == 2
    return {row.group: row.kind for row in asking.seen.states}


def test_a_share_group_is_described_with_its_positions(real_kafka: Callable[..., RealCluster]) -> None:
    """A member that acquires no record: brokers tell no start, and so the group is not judged as well."""

    async def test(nodes: Nodes, group: str, topic: str) -> None:
        member, epoch = str(uuid.uuid4()), 0

        async def settled() -> GroupState | None:
            nonlocal epoch
            request = ShareGroupHeartbeatRequest(
                group_id=group, member_id=member, member_epoch=epoch, subscribed_topic_names=[topic]
            )
            response = await nodes.ask(1, request)
            if response.error_code == ErrorCode.NONE:
                epoch = response.member_epoch
            state = await _described(nodes, group, topic)
            return state if state is not None and state.share_positions else None

        state = await until(settled)
        assert (state.kind, state.state, state.protocol_type) == ("share", "Stable", "share")
        assert [(each.member_id, each.subscribed) for each in state.members] == [(member, (topic,))]
        assert state.epoch >= 1
        assert {(row.name, row.start, row.lag) for row in state.share_positions} == {
            (TopicPartition(topic, 0), -1, -1),
            (TopicPartition(topic, 1), -1, -1),
        }
        seen = await survey(nodes, groups=[group])
        assert unjudged(diagnose_all(*build(seen, groups=[group]))) == (group,)
        assert seen.unasked == []
        assert await _kinds_by_name(nodes, group) == {group: "share", "other-nobody": "consumer"}

    _on(real_kafka(), test)


def test_a_group_of_the_streams_protocol_is_described_by_the_partitions_of_its_tasks(
    real_kafka: Callable[..., RealCluster],
) -> None:
    """Its members are live: it is no empty group, and its topics are surveyed."""

    async def test(nodes: Nodes, group: str, topic: str) -> None:
        member, process = str(uuid.uuid4()), str(uuid.uuid4())
        epoch = 0
        owned: list[TaskIds] = []
        subtopology = HeartbeatSubtopology(
            subtopology_id="0",
            source_topics=[topic],
            source_topic_regex=[],
            state_changelog_topics=[],
            repartition_sink_topics=[],
            repartition_source_topics=[],
            copartition_groups=[],
        )

        async def settled() -> GroupState | None:
            nonlocal epoch, owned
            request = StreamsGroupHeartbeatRequest(
                group_id=group,
                member_id=member,
                member_epoch=epoch,
                endpoint_information_epoch=-1,
                rebalance_timeout_ms=60_000,
                topology=HeartbeatTopology(epoch=0, subtopologies=[subtopology]) if not epoch else None,
                active_tasks=owned,
                standby_tasks=[],
                warmup_tasks=[],
                process_id=process if not epoch else None,
                client_tags=[] if not epoch else None,
            )
            response = await nodes.ask(1, request)
            if response.error_code == ErrorCode.NONE:
                epoch = response.member_epoch
                owned = owned if response.active_tasks is None else response.active_tasks
            state = await _described(nodes, group, topic)
            return state if state is not None and state.state == "Stable" else None

        state = await until(settled)
        assert (state.kind, state.protocol_type, state.is_streams) == ("streams", "streams", True)
        only = state.members[0]
        assert (only.member_id, only.subscribed, only.target) == (member, (topic,), only.assigned)
        seen = await survey(nodes, groups=[group])
        assert {row.partition for row in seen.ends if row.topic == topic} == {0, 1}
        cluster, cases = build(seen, groups=[group])
        assert cases[0].members is not None
        assert len(cases[0].members) == 1
        assert unjudged(diagnose_all(cluster, cases)) == ()
        assert await _kinds_by_name(nodes, group) == {group: "streams", "other-nobody": "consumer"}

    _on(real_kafka(), test)


class _Members:
    """Members of a KIP-848 group that send heartbeats and nothing else."""

    def __init__(self, nodes: Nodes, group: str, topic: str) -> None:
        self._nodes, self._group, self._topic = nodes, group, topic
        self._epochs: dict[str, int] = {}
        self._topic_id = b""

    async def heartbeat(self, member: str, owned: Sequence[int], instance: str | None = None) -> int:
        """The error, or 0."""
        if not self._topic_id:
            asked = MetadataRequest(topics=[MetadataRequestTopic(name=self._topic)])
            self._topic_id = (await self._nodes.ask_any(asked)).topics[0].topic_id
        is_new = member not in self._epochs
        # Whoever joins owns nothing.
        owned = [] if is_new else owned
        has = [TopicIdPartitions(topic_id=self._topic_id, partitions=list(owned))] if owned else []
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group,
            member_id=member,
            member_epoch=self._epochs.get(member, 0),
            instance_id=instance,
            rebalance_timeout_ms=300_000 if is_new else -1,
            subscribed_topic_names=[self._topic] if is_new else None,
            topic_partitions=has,
        )
        response = await self._nodes.ask(1, request)
        if response.error_code == ErrorCode.NONE:
            self._epochs[member] = response.member_epoch
        return int(response.error_code)


def test_a_member_that_does_not_give_up_its_partition_is_named(
    real_kafka: Callable[..., RealCluster],
) -> None:
    """KIP-848: app-1 goes on with both partitions, of which one is meant for app-2."""

    async def test(nodes: Nodes, group: str, topic: str) -> None:
        members = _Members(nodes, group, topic)

        async def alone() -> GroupState | None:
            await members.heartbeat("app-1", [0, 1])
            state = await _described(nodes, group, topic)
            return state if state is not None and state.state == "Stable" else None

        await until(alone)

        async def waiting() -> GroupState | None:
            await members.heartbeat("app-2", [])
            await members.heartbeat("app-1", [0, 1])
            state = next(row for row in (await survey(nodes, groups=[group])).states if row.group == group)
            both = {member.epoch for member in state.members if member.member_id == "app-2"} == {state.epoch}
            return state if state.state == "Reconciling" and both else None

        state = await until(waiting)
        assert state.at is not None
        looks = [state._replace(at=state.at - 100_000), state]
        finding = rebalance_stuck.judge(a_case(group, a_cluster(now=state.at), states=looks))
        assert isinstance(finding, Finding), (finding, state)
        assert finding.members == ("kelpie (member app-1)",)
        assert len(finding.partitions) == 1
        assert "(member app-1) has not yet given up" in finding.summary

    _on(real_kafka(), test)


def test_the_second_one_with_an_instance_id_is_refused(real_kafka: Callable[..., RealCluster]) -> None:
    """With KIP-848 the first one stays, as KLP205 says."""

    async def test(nodes: Nodes, group: str, topic: str) -> None:
        members = _Members(nodes, group, topic)

        async def joined() -> bool | None:
            return await members.heartbeat("app-1", [], "a") == ErrorCode.NONE or None

        await until(joined)
        assert await members.heartbeat("app-2", [], "a") == ErrorCode.UNRELEASED_INSTANCE_ID
        assert await members.heartbeat("app-1", [], "a") == ErrorCode.NONE

    _on(real_kafka(), test)
