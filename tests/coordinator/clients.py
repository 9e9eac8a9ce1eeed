"""Requests as members send them, in short. `Group` is one group on a driver."""

from collections.abc import Sequence

from kelpie.errors import ErrorCode
from kelpie.wire.api.heartbeat import HeartbeatRequest
from kelpie.wire.api.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from kelpie.wire.api.leave_group import LeaveGroupRequest, MemberIdentity
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
from kelpie.wire.api.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kelpie.wire.api.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kelpie.wire.api.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kelpie.wire.consumer_protocol import Assignment, Subscription, encode
from kelpie.wire.structs import TopicPartitions
from tests.coordinator.driver import Call, Driver

SESSION_MS = 10_000
REBALANCE_MS = 60_000
DELAY_MS = 3_000
TOPIC = "orders"
PARTITIONS = 6


def subscription(*topics: str) -> bytes:
    return encode(Subscription(topics=list(topics)), 1)


def assignment(partitions: Sequence[int], topic: str = TOPIC) -> bytes:
    assigned = [TopicPartitions(topic=topic, partitions=list(partitions))]
    return encode(Assignment(assigned_partitions=assigned), 1)


RANGE = (("range", subscription(TOPIC)),)


def assigned_by(joined: JoinGroupResponse) -> dict[str, bytes]:
    """What a leader hands in: partitions in turn, to the members it was told of."""
    count = len(joined.members)
    return {
        member.member_id: assignment(range(index, PARTITIONS, count))
        for index, member in enumerate(joined.members)
    }


class Group:
    def __init__(self, driver: Driver, group_id: str = "g") -> None:
        self.driver = driver
        self.group_id = group_id
        self.generation = -1

    # One request each.

    def join(
        self,
        member_id: str = "",
        *,
        version: int = 9,
        instance: str | None = None,
        protocols: Sequence[tuple[str, bytes]] = RANGE,
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        client_id: str = "c",
    ) -> Call:
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms if version >= 1 else -1,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=blob) for name, blob in protocols],
        )
        return self.driver.ask("join", request, version, client_id, "/10.0.0.1")

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        *,
        instance: str | None = None,
        protocol_type: str | None = None,
        protocol: str | None = None,
    ) -> Call:
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocol_name=protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=each, assignment=blob)
                for each, blob in (assignments or {}).items()
            ],
        )
        return self.driver.ask("sync", request)

    def heartbeat(self, member_id: str, generation: int, instance: str | None = None) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=self.group_id,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
        )
        return self.driver.ask("heartbeat", request).error

    def leave(self, *members: str, instances: Sequence[str] = (), version: int = 5) -> Call:
        """Members by their id, or, as administrators do, by their instance."""
        if version < 3:
            request = LeaveGroupRequest(group_id=self.group_id, member_id=members[0])
        else:
            leaving = [MemberIdentity(member_id=each) for each in members]
            leaving += [MemberIdentity(member_id="", group_instance_id=each) for each in instances]
            request = LeaveGroupRequest(group_id=self.group_id, members=leaving)
        return self.driver.ask("leave", request, version)

    def commit_call(
        self,
        offset: int = 1,
        *,
        member_id: str = "",
        generation: int = -1,
        instance: str | None = None,
        partitions: Sequence[int] = (0,),
        topic: str = TOPIC,
        metadata: str | None = "",
        version: int = 8,
        retention_ms: int = -1,
        timestamp: int = -1,
        topic_id: bytes = bytes(16),
    ) -> Call:
        request = OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance,
            retention_time_ms=retention_ms,
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    topic_id=topic_id,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=index,
                            committed_offset=offset,
                            commit_timestamp=timestamp,
                            committed_metadata=metadata,
                        )
                        for index in partitions
                    ],
                )
            ],
        )
        return self.driver.ask("commit_offsets", request, version)

    def commit(self, offset: int = 1, **how: object) -> ErrorCode:
        call = self.commit_call(offset, **how)  # type: ignore[arg-type]
        return ErrorCode(call.answer.topics[0].partitions[0].error_code)

    def commit_in_transaction_call(
        self,
        offset: int,
        producer_id: int = 7,
        *,
        member_id: str = "",
        generation: int = -1,
        instance: str | None = None,
        partitions: Sequence[int] = (0,),
        metadata: str = "",
    ) -> Call:
        request = TxnOffsetCommitRequest(
            transactional_id="t",
            group_id=self.group_id,
            producer_id=producer_id,
            producer_epoch=0,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=TOPIC,
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=index, committed_offset=offset, committed_metadata=metadata
                        )
                        for index in partitions
                    ],
                )
            ],
        )
        return self.driver.ask("commit_offsets_in_transaction", request)

    def commit_in_transaction(self, offset: int, producer_id: int = 7, **how: object) -> ErrorCode:
        call = self.commit_in_transaction_call(offset, producer_id, **how)  # type: ignore[arg-type]
        return ErrorCode(call.answer.topics[0].partitions[0].error_code)

    def fetch_call(self, partitions: Sequence[int] | None = (0,), *, stable: bool = False) -> Call:
        topics = None
        if partitions is not None:
            topics = [OffsetFetchRequestTopics(name=TOPIC, partition_indexes=list(partitions))]
        asked = OffsetFetchRequestGroup(group_id=self.group_id, topics=topics)
        return self.driver.ask("fetch_offsets", asked, stable)

    def fetched(self, partition: int = 0, *, stable: bool = False) -> tuple[int, ErrorCode]:
        (topic,) = self.fetch_call([partition], stable=stable).answer.topics
        (found,) = topic.partitions
        return found.committed_offset, ErrorCode(found.error_code)

    def delete(self) -> Call:
        return self.driver.ask("delete_group", self.group_id)

    def delete_offsets(self, *partitions: int, topic: str = TOPIC) -> Call:
        wanted = [OffsetDeleteRequestPartition(partition_index=index) for index in partitions]
        request = OffsetDeleteRequest(
            group_id=self.group_id, topics=[OffsetDeleteRequestTopic(name=topic, partitions=wanted)]
        )
        return self.driver.ask("delete_offsets", request)

    @property
    def state(self) -> str:
        return self.driver.shard.describe(self.group_id, 5).group_state

    # Ways into a state.

    def with_id(self, **how: object) -> tuple[str, Call]:
        """Asks for a member id, then joins with it."""
        member_id = self.join(**how).answer.member_id  # type: ignore[arg-type]
        return member_id, self.join(member_id, **how)  # type: ignore[arg-type]

    def preparing(self, count: int = 1) -> list[str]:
        """New members, parked in the first rebalance."""
        return [self.with_id()[0] for _ in range(count)]

    def completing(self, count: int = 1) -> list[str]:
        """New members that have joined; the leader, who comes first, has not assigned."""
        calls = [self.with_id() for _ in range(count)]
        self.driver.pass_time(DELAY_MS * (2 if count > 1 else 1))
        self.generation = calls[0][1].answer.generation_id
        return [member_id for member_id, _ in calls]

    def stable(self, count: int = 1) -> list[str]:
        members = self.completing(count)
        for member_id in reversed(members):
            shares = {each: assignment([index]) for index, each in enumerate(members)}
            self.sync(member_id, self.generation, shares if member_id == members[0] else None)
        assert self.state == "Stable"
        return members
