"""From a step to the request that it means on one side."""

from collections.abc import Callable
from typing import Any

from kelpie.wire.api.add_offsets_to_txn import AddOffsetsToTxnRequest
from kelpie.wire.api.delete_groups import DeleteGroupsRequest
from kelpie.wire.api.describe_groups import DescribeGroupsRequest
from kelpie.wire.api.end_txn import EndTxnRequest
from kelpie.wire.api.find_coordinator import FindCoordinatorRequest
from kelpie.wire.api.heartbeat import HeartbeatRequest
from kelpie.wire.api.init_producer_id import InitProducerIdRequest
from kelpie.wire.api.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kelpie.wire.api.leave_group import LeaveGroupRequest, MemberIdentity
from kelpie.wire.api.list_groups import ListGroupsRequest
from kelpie.wire.api.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kelpie.wire.api.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kelpie.wire.api.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kelpie.wire.api.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kelpie.wire.api.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.lab.differential.cast import Cast, Part
from tests.lab.differential.names import Names
from tests.lab.differential.protocols import METADATA, PROTOCOLS
from tests.lab.differential.script import Step

TOPICS = {"a": ("diff-a", 3), "b": ("diff-b", 1)}
"""Those that both sides have, with so many partitions."""
NO_TOPIC = "no-such-topic"


class Requests:
    """`make(step)` gives the request."""

    def __init__(self, cast: Cast, names: Names) -> None:
        self.cast = cast
        self.names = names
        self.producers: dict[int, tuple[int, int]] = {}
        """Id and epoch of the producers that were initialised."""

    def make(self, step: Step) -> Any:
        build: Callable[[Step], Any] = getattr(self, step["op"])
        return build(step)

    def _part(self, step: Step) -> Part:
        return self.cast.parts[step["a"]]

    def _group(self, step: Step) -> str:
        return self.cast.group(step["g"]) if "g" in step else self._part(step).group

    def _who(self, step: Step) -> str:
        return self.cast.member_id(self._part(step), step.get("who", "own"))

    def _instance(self, step: Step, since: int) -> str | None:
        asked = step.get("inst", "own") if step["v"] >= since else "none"
        return self.cast.instance(self._part(step), asked)

    def _generation(self, step: Step) -> int:
        return self.cast.generation(self._part(step), step.get("gen", "own"))

    # Members.

    def join(self, step: Step) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=self._group(step),
            session_timeout_ms=step.get("session", 300_000),
            rebalance_timeout_ms=step.get("rebalance", 300_000),
            member_id=self._who(step),
            group_instance_id=self._instance(step, 5),
            protocol_type=step.get("type", "consumer"),
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=METADATA[metadata])
                for name, metadata in PROTOCOLS[step.get("protocols", "range")]
            ],
            reason="why not" if step["v"] >= 8 else None,
        )

    def sync(self, step: Step) -> SyncGroupRequest:
        part = self._part(step)
        given = {"bad": "no-such-protocol", "none": None}
        assignments = []
        if step.get("assign", "leader") == "leader":
            assignments = [
                SyncGroupRequestAssignment(
                    member_id=member_id,
                    assignment=f"{self.names.member(member_id)}@{part.generation}".encode(),
                )
                for member_id in sorted(part.members, key=self.names.member)[step.get("skip", 0) :]
            ]
        elif step["assign"] == "odd":
            assignments = [SyncGroupRequestAssignment(member_id="stranger", assignment=b"odd")]
        named = step["v"] >= 5
        return SyncGroupRequest(
            group_id=self._group(step),
            generation_id=self._generation(step),
            member_id=self._who(step),
            group_instance_id=self._instance(step, 3),
            protocol_type=given.get(step.get("ptype", "own"), part.protocol_type) if named else None,
            protocol_name=given.get(step.get("pname", "own"), part.protocol) if named else None,
            assignments=assignments,
        )

    def heartbeat(self, step: Step) -> HeartbeatRequest:
        return HeartbeatRequest(
            group_id=self._group(step),
            generation_id=self._generation(step),
            member_id=self._who(step),
            group_instance_id=self._instance(step, 3),
        )

    def leave(self, step: Step) -> LeaveGroupRequest:
        leaving = []
        for actor, who, instance in step["leaving"]:
            part = self.cast.parts[actor]
            leaving.append(
                MemberIdentity(
                    member_id=self.cast.member_id(part, who),
                    group_instance_id=self.cast.instance(part, instance),
                )
            )
        if step["v"] >= 3:
            return LeaveGroupRequest(group_id=self._group(step), members=leaving)
        return LeaveGroupRequest(group_id=self._group(step), member_id=leaving[0].member_id)

    def purge(self, step: Step) -> LeaveGroupRequest:
        """Everyone leaves who was ever heard of, so that the group is Empty again."""
        known = [MemberIdentity(member_id=member_id) for member_id in self.names.members(self._group(step))]
        return LeaveGroupRequest(group_id=self._group(step), members=known)

    # Offsets.

    def commit(self, step: Step) -> OffsetCommitRequest:
        version = step["v"]
        topics = [
            OffsetCommitRequestTopic(
                name="" if version >= 10 else _name(topic),
                topic_id=self.names.topic_id(topic) if version >= 10 else bytes(16),
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=offset,
                        committed_leader_epoch=epoch,
                        committed_metadata=_metadata(metadata),
                    )
                    for index, offset, epoch, metadata in partitions
                ],
            )
            for topic, partitions in step["topics"]
        ]
        return OffsetCommitRequest(
            group_id=self._group(step),
            generation_id_or_member_epoch=self._generation(step),
            member_id=self._who(step),
            group_instance_id=self._instance(step, 7),
            retention_time_ms=step.get("retention", -1),
            topics=topics,
        )

    def fetch(self, step: Step) -> OffsetFetchRequest:
        version, topics = step["v"], step["topics"]
        groups = [self.cast.group(group) for group in step["groups"]]
        stable = step.get("stable", False) and version >= 7
        if version < 8:
            single = None
            if topics is not None or version < 2:
                single = [
                    OffsetFetchRequestTopics(name=_name(topic), partition_indexes=parts)
                    for topic, parts in topics or []
                ]
            return OffsetFetchRequest(group_id=groups[0], topics=single, require_stable=stable)
        asked = None
        if topics is not None:
            asked = [
                OffsetFetchRequestTopics(
                    name="" if version >= 10 else _name(topic),
                    topic_id=self.names.topic_id(topic) if version >= 10 else bytes(16),
                    partition_indexes=parts,
                )
                for topic, parts in topics
            ]
        return OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=group, topics=asked) for group in groups],
            require_stable=stable,
        )

    def offset_delete(self, step: Step) -> OffsetDeleteRequest:
        return OffsetDeleteRequest(
            group_id=self._group(step),
            topics=[
                OffsetDeleteRequestTopic(
                    name=_name(topic),
                    partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in parts],
                )
                for topic, parts in step["topics"]
            ],
        )

    # Groups.

    def describe(self, step: Step) -> DescribeGroupsRequest:
        operations = step.get("operations", False) and step["v"] >= 3
        groups = [self.cast.group(group) for group in step["groups"]]
        return DescribeGroupsRequest(groups=groups, include_authorized_operations=operations)

    def list(self, step: Step) -> ListGroupsRequest:
        version = step["v"]
        return ListGroupsRequest(
            states_filter=step.get("states", []) if version >= 4 else [],
            types_filter=step.get("types", []) if version >= 5 else [],
        )

    def delete(self, step: Step) -> DeleteGroupsRequest:
        return DeleteGroupsRequest(groups_names=[self.cast.group(group) for group in step["groups"]])

    def find(self, step: Step) -> FindCoordinatorRequest:
        keys = [self.cast.group(group) for group in step["groups"]]
        kind = step["type"] if step["v"] >= 1 else 0
        if step["v"] >= 4:
            return FindCoordinatorRequest(key_type=kind, coordinator_keys=keys)
        return FindCoordinatorRequest(key=keys[0], key_type=kind)

    # Transactions.

    def transactional_id(self, step: Step) -> str:
        return f"{self.cast.prefix}t{step['p']}"

    def _producer(self, step: Step) -> tuple[int, int]:
        producer_id, epoch = self.producers.get(step["p"], (987_654_321, 0))
        return producer_id, epoch + step.get("epoch", 0)

    def init(self, step: Step) -> InitProducerIdRequest:
        return InitProducerIdRequest(
            transactional_id=self.transactional_id(step), transaction_timeout_ms=step.get("timeout", 600_000)
        )

    def add_offsets(self, step: Step) -> AddOffsetsToTxnRequest:
        producer_id, epoch = self._producer(step)
        return AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id(step),
            producer_id=producer_id,
            producer_epoch=epoch,
            group_id=self._group(step),
        )

    def txn_commit(self, step: Step) -> TxnOffsetCommitRequest:
        producer_id, epoch = self._producer(step)
        named = step["v"] >= 3
        return TxnOffsetCommitRequest(
            transactional_id=self.transactional_id(step),
            group_id=self._group(step),
            producer_id=producer_id,
            producer_epoch=epoch,
            generation_id=self._generation(step) if named else -1,
            member_id=self._who(step) if named else "",
            group_instance_id=self._instance(step, 3),
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=_name(topic),
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=index,
                            committed_offset=offset,
                            committed_leader_epoch=epoch,
                            committed_metadata=_metadata(metadata),
                        )
                        for index, offset, epoch, metadata in partitions
                    ],
                )
                for topic, partitions in step["topics"]
            ],
        )

    def end(self, step: Step) -> EndTxnRequest:
        producer_id, epoch = self._producer(step)
        return EndTxnRequest(
            transactional_id=self.transactional_id(step),
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=step["commit"],
        )


def _name(topic: str) -> str:
    return TOPICS[topic][0] if topic in TOPICS else NO_TOPIC


def _metadata(reference: str | None) -> str | None:
    """`x*4096` stands for so many of these signs."""
    sign, times, count = (reference or "").partition("*")
    return sign * int(count) if times else reference
