"""Groups, asked of their coordinators: who is in them, what they have committed; and committing for them.

The coordinator is the leader of the group's partition of the offsets topic, by the metadata; it is not asked
for by FindCoordinator, which creates the offsets topic where there is none. Errors that pass by themselves
(loading, just moved) are waited out, within a limit.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import TypeVar

from kelpie.client.client_errors import ClientError, Unsupported
from kelpie.client.nodes import Nodes
from kelpie.client.survey import wall_clock
from kelpie.cluster import ClusterView
from kelpie.errors import ErrorCode, describe, info
from kelpie.model.names import TopicPartition
from kelpie.observations import GroupState, Member
from kelpie.observations.groups import CLASSIC, CONSUMER
from kelpie.observations.positions import NO_OFFSET
from kelpie.questions.offset_commit import AskToCommit
from kelpie.questions.offset_fetch import AskCommitted, CommittedOffsets
from kelpie.repair.applying import StepFailed
from kelpie.repair.claims import Claim, ClaimKind
from kelpie.repair.picture import survey_cluster
from kelpie.wire.api.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from kelpie.wire.api.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kelpie.wire.api.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kelpie.wire.api.offset_fetch import OffsetFetchRequest

T = TypeVar("T")

ABSENT = "Dead"
"""The state of a group that is not there."""
_PASSES = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
}
_HINTS = {
    ErrorCode.UNKNOWN_MEMBER_ID.value: "The group has members by now: stop them first.",
    ErrorCode.COORDINATOR_NOT_AVAILABLE.value: "Perhaps fewer replicas of its partition are in sync than "
    "min.insync.replicas wants: start another broker that holds one.",
}
"""What a refusal to commit means to whoever runs a repair."""
_PAUSE_S = 0.1
_COMMIT_LIMIT_S = 10.0
"""A coordinator may wait five seconds for a follower that has just died before it says so."""
_OLDEST_COMMIT = 2
"""Before, a commit told its own time."""
_ALL_TOPICS = 2
"""Older versions of OffsetFetch must be told which partitions."""
_NO_GENERATION = -1
_MOST_PER_COMMIT = 5_000


class Refused(Exception):
    """A coordinator said no: its error, and for what."""

    def __init__(self, what: str, error: int, message: str = "") -> None:
        super().__init__(f"{what}: {describe(error)}. {message or info(error).meaning}")
        self.error = error


class Coordinators:
    """All groups of a cluster. The cluster is surveyed again when a coordinator has moved."""

    def __init__(self, nodes: Nodes, cluster: ClusterView, limit_s: float = 30.0) -> None:
        self._nodes = nodes
        self._limit_s = limit_s
        self._cluster = cluster

    @property
    def cluster(self) -> ClusterView:
        """As it was surveyed last."""
        return self._cluster

    async def survey_again(self, topics: Collection[str]) -> ClusterView:
        """A newer picture of the cluster, with these topics."""
        self._cluster = await survey_cluster(self._nodes, topics)
        return self._cluster

    # Asking

    async def state(self, group: str) -> GroupState:
        """State and members; ABSENT when there is no such group. Raises Refused, ClientError."""

        async def ask(node: int) -> GroupState:
            versions = await self._nodes.versions(node)
            version = versions.pick(DescribeGroupsRequest, at_most=5)
            classic: DescribeGroupsResponse = await self._nodes.ask(
                node, DescribeGroupsRequest(groups=[group]), version
            )
            told = classic.groups[0]
            _check(f"Group {group} cannot be described", told.error_code)
            members = tuple(
                Member(it.member_id, it.client_id, it.client_host, it.group_instance_id)
                for it in told.members
            )
            if told.group_state == ABSENT and versions.speaks(ConsumerGroupDescribeRequest):
                newer = await self._newer_state(node, group)
                if newer is not None:
                    return newer
            return GroupState(
                group,
                told.group_state or ABSENT,
                CLASSIC,
                told.protocol_type,
                told.protocol_data,
                members=members,
                coordinator=node,
                at=wall_clock(),
                source=self.cluster.broker_name(node),
            )

        return await self._patiently(group, ask)

    async def _newer_state(self, node: int, group: str) -> GroupState | None:
        response: ConsumerGroupDescribeResponse = await self._nodes.ask(
            node, ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=False)
        )
        told = response.groups[0]
        if told.error_code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
            return None
        _check(f"Group {group} cannot be described", told.error_code)
        return GroupState(
            group,
            told.group_state,
            CONSUMER,
            "consumer",
            told.assignor_name,
            told.group_epoch,
            tuple(Member(it.member_id, it.client_id, it.client_host, it.instance_id) for it in told.members),
            node,
            at=wall_clock(),
            source=self.cluster.broker_name(node),
        )

    async def committed(
        self, group: str, partitions: Iterable[TopicPartition] = ()
    ) -> dict[TopicPartition, Claim]:
        """All offsets of a group. Kafka 0.9 and 0.10.1 tell only of partitions that are named."""

        async def ask(node: int) -> dict[TopicPartition, Claim]:
            tells_all = (await self._nodes.versions(node)).speaks(OffsetFetchRequest, at_least=_ALL_TOPICS)
            # What a transaction is about to commit is waited for: it decides where the group goes on.
            question = AskCommitted(group, None if tells_all else tuple(sorted(set(partitions))))
            answer = await self._nodes.put(node, question)
            return _claims(group, answer, self.cluster.broker_name(node), wall_clock())

        return await self._patiently(group, ask)

    # Changing

    async def commit(self, group: str, claims: Sequence[Claim]) -> None:
        """Commits as nobody's member, which a group without members takes. Raises StepFailed, ClientError."""
        for start in range(0, len(claims), _MOST_PER_COMMIT):
            part = claims[start : start + _MOST_PER_COMMIT]

            async def ask(node: int, part: Sequence[Claim] = part) -> None:
                await self._commit(node, group, part)

            try:
                await self._patiently(group, ask)
            except Refused as refused:
                done = f" {start} of {len(claims)} offsets were committed before." if start else ""
                raise StepFailed(f"{refused}{done}") from None

    async def _commit(self, node: int, group: str, claims: Sequence[Claim]) -> None:
        offsets = {it.partition: (it.offset, it.leader_epoch, it.metadata) for it in claims}
        question = AskToCommit(group, _NO_GENERATION, "", None, offsets)
        answer = await self._nodes.put(node, question, _COMMIT_LIMIT_S, _OLDEST_COMMIT)
        for name, error in answer.items():
            _check(f"{name} cannot be committed for {group}", error, _HINTS.get(error, ""))

    async def delete(self, group: str) -> None:
        """Deletes a group without members, offsets and all. Raises StepFailed, ClientError."""

        async def ask(node: int) -> None:
            response: DeleteGroupsResponse = await self._nodes.ask(
                node, DeleteGroupsRequest(groups_names=[group])
            )
            for it in response.results:
                if it.error_code != ErrorCode.GROUP_ID_NOT_FOUND:
                    _check(f"Group {group} cannot be deleted", it.error_code)

        try:
            await self._patiently(group, ask)
        except Refused as refused:
            raise StepFailed(str(refused)) from None

    async def can_delete(self, group: str) -> bool:
        """Whether groups can be deleted at all: since Kafka 1.1."""
        node = self.cluster.coordinator_of(group)
        return node is not None and (await self._nodes.versions(node)).speaks(DeleteGroupsRequest)

    async def _patiently(self, group: str, ask: Callable[[int], Awaitable[T]]) -> T:
        """The answer of the coordinator, once it gives one that lasts. Raises Refused, ClientError."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._limit_s
        while True:
            node = self.cluster.coordinator_of(group)
            failure: Exception = Refused(
                f"Nobody alive coordinates group {group}", ErrorCode.COORDINATOR_NOT_AVAILABLE
            )
            if node is not None:
                try:
                    return await ask(node)
                except Refused as refused:
                    if refused.error not in _PASSES:
                        raise
                    failure = refused
                except Unsupported:
                    raise
                except ClientError as error:
                    failure = error
                    self._nodes.forget_failures([node])
            if loop.time() + _PAUSE_S > deadline:
                raise failure
            await asyncio.sleep(_PAUSE_S)
            await self.survey_again(self.cluster.topics)


def _check(what: str, error: int, message: str = "") -> None:
    if error != ErrorCode.NONE:
        raise Refused(what, error, message)


def _claims(group: str, answer: CommittedOffsets, source: str, at: int) -> dict[TopicPartition, Claim]:
    _check(f"The offsets of group {group} cannot be fetched", answer.error)
    found = {}
    for name, it in answer.partitions.items():
        if it.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            continue  # Kafka 0.9 was asked for a partition that is gone.
        _check(f"The offset of {name} of group {group} cannot be fetched", it.error)
        if it.offset != NO_OFFSET:
            found[name] = Claim(
                name,
                it.offset,
                source,
                at,
                ClaimKind.COORDINATOR,
                leader_epoch=-1 if it.epoch is None else it.epoch,
                metadata=it.metadata or "",
            )
    return found
