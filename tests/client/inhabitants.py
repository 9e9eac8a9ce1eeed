"""Topics, records, members and commits for a survey to find, on any release, over the raw protocol."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kelpie.client.nodes import Nodes
from kelpie.errors import ErrorCode
from kelpie.wire import consumer_protocol
from kelpie.wire.api.add_offsets_to_txn import AddOffsetsToTxnRequest
from kelpie.wire.api.add_partitions_to_txn import AddPartitionsToTxnRequest
from kelpie.wire.api.create_topics import CreatableTopic, CreateTopicsRequest
from kelpie.wire.api.find_coordinator import FindCoordinatorRequest
from kelpie.wire.api.init_producer_id import InitProducerIdRequest
from kelpie.wire.api.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kelpie.wire.api.metadata import MetadataRequest, MetadataRequestTopic
from kelpie.wire.api.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kelpie.wire.api.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kelpie.wire.api.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kelpie.wire.api.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kelpie.wire.records import Record, write_batch, write_message_set
from kelpie.wire.structs import NamedTopicPartitions, TopicPartitions
from tests.waiting import pause_s

LIMIT_S = 30.0
SESSION_MS = 20_000
_NOT_YET = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER)


async def until(attempt: Callable[[], Awaitable[Any]]) -> Any:
    """The first answer that is not None, within the limit."""
    async with asyncio.timeout(LIMIT_S):
        asked = time.monotonic()
        while (answer := await attempt()) is None:
            await asyncio.sleep(pause_s(time.monotonic() - asked))
            asked = time.monotonic()
        return answer


@dataclass
class Inhabitants:
    nodes: Nodes

    async def topic(self, name: str, partitions: int = 1, replicas: int = 1) -> None:
        """Kafka 0.9 has no request for it, and creates topics that it is asked for."""
        if await self._speaks(CreateTopicsRequest):
            topic = CreatableTopic(
                name=name, num_partitions=partitions, replication_factor=replicas, assignments=[], configs=[]
            )
            await self.nodes.ask_any(CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
        await until(lambda: self._leaders(name, partitions))

    async def produce(self, topic: str, partition: int = 0, count: int = 10, **batch: Any) -> None:
        leaders = await until(lambda: self._leaders(topic, partition + 1))
        now = int(time.time() * 1000)
        old = not await self._speaks(ProduceRequest, at_least=3)
        records = [Record(offset=at, timestamp=-1 if old else now, value=b"v") for at in range(count)]
        raw = write_message_set(records, magic=0) if old else write_batch(records, **batch)
        data = [PartitionProduceData(index=partition, records=raw)]
        request = ProduceRequest(
            transactional_id="tx" if batch else None,
            acks=-1,
            timeout_ms=10_000,
            topic_data=[TopicProduceData(name=topic, partition_data=data)],
        )

        async def taken() -> bool | None:
            """A broker hears a moment after the others that it leads a new topic."""
            response = await self.nodes.ask(leaders[partition], request, 1 if old else 7)
            error = response.responses[0].partition_responses[0].error_code
            assert error in (ErrorCode.NONE, *_NOT_YET), ErrorCode(error).name
            return True if error == ErrorCode.NONE else None

        await until(taken)

    async def leave_transaction_open(self, topic: str, partition: int = 0) -> int:
        """Records of a transaction that nobody ends. Back comes the producer's id."""
        node = await until(lambda: self._coordinator("tx", key_type=1))
        request = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=600_000)
        given = await until(lambda: self._well(node, request, 1))
        producer = {"producer_id": given.producer_id, "producer_epoch": given.producer_epoch}
        add = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="tx",
            v3_and_below_producer_id=given.producer_id,
            v3_and_below_producer_epoch=given.producer_epoch,
            v3_and_below_topics=[NamedTopicPartitions(name=topic, partitions=[partition])],
        )
        await self.nodes.ask(node, add, 3)
        await self.produce(topic, partition, 3, transactional=True, base_sequence=0, **producer)
        return int(given.producer_id)

    async def commit_in_open_transaction(self, group: str, topic: str, offset: int) -> int:
        """A commit that is pending for ever. Back comes the producer's id."""
        node = await until(lambda: self._coordinator("tx", key_type=1))
        request = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=600_000)
        given = await until(lambda: self._well(node, request, 1))
        producer = {"producer_id": given.producer_id, "producer_epoch": given.producer_epoch}
        add = AddOffsetsToTxnRequest(transactional_id="tx", group_id=group, **producer)
        await until(lambda: self._well(node, add, 2))
        partition = TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=""
        )
        topics = [TxnOffsetCommitRequestTopic(name=topic, partitions=[partition])]
        commit = TxnOffsetCommitRequest(transactional_id="tx", group_id=group, topics=topics, **producer)
        response = await self.nodes.ask(await self.coordinator(group), commit, 2)
        assert response.topics[0].partitions[0].error_code == ErrorCode.NONE
        return int(given.producer_id)

    async def commit(
        self,
        group: str,
        topic: str,
        offsets: Mapping[int, int],
        epoch: int = -1,
        member: "Member | None" = None,
    ) -> None:
        partitions = [
            OffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=offset,
                committed_leader_epoch=epoch,
                committed_metadata="",
            )
            for partition, offset in offsets.items()
        ]
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=member.generation if member else -1,
            member_id=member.member_id if member else "",
            topics=[OffsetCommitRequestTopic(name=topic, partitions=partitions)],
        )

        async def attempt() -> bool | None:
            node = await until(lambda: self._coordinator(group))
            response = await self.nodes.ask(node, request, 2 if epoch < 0 else 6)
            codes = {entry.error_code for each in response.topics for entry in each.partitions}
            return True if codes == {ErrorCode.NONE} else None

        await until(attempt)

    async def join(self, group: str, topic: str, partitions: int = 1) -> "Member":
        """A member that reads all partitions of a topic, and its group stable."""
        subscription = consumer_protocol.Subscription(topics=[topic])
        assignment = consumer_protocol.Assignment(
            assigned_partitions=[TopicPartitions(topic=topic, partitions=list(range(partitions)))]
        )
        blobs = consumer_protocol.encode(subscription, 0), consumer_protocol.encode(assignment, 0)
        return await self.join_as(group, "consumer", "range", *blobs)

    async def join_as(
        self, group: str, protocol_type: str, protocol: str, metadata: bytes, assignment: bytes
    ) -> "Member":
        """A member of any protocol type, and its group stable."""
        node = await until(lambda: self._coordinator(group))
        join = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=SESSION_MS,
            member_id="",
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name=protocol, metadata=metadata)],
        )
        joined = await until(lambda: self._well(node, join, 0))
        own = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=assignment)
        sync = SyncGroupRequest(
            group_id=group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            assignments=[own],
        )
        await until(lambda: self._well(node, sync, 0))
        return Member(joined.member_id, joined.generation_id)

    async def coordinator(self, group: str) -> int:
        return int(await until(lambda: self._coordinator(group)))

    async def _well(self, node: int, request: Any, version: int) -> Any:
        response = await self.nodes.ask(node, request, version)
        return response if response.error_code == ErrorCode.NONE else None

    async def _coordinator(self, key: str, key_type: int = 0) -> int | None:
        version = 0 if key_type == 0 else 1
        response = await self.nodes.ask_any(FindCoordinatorRequest(key=key, key_type=key_type), version)
        return response.node_id if response.error_code == ErrorCode.NONE else None

    async def _leaders(self, topic: str, partitions: int) -> dict[int, int] | None:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
        response = await self.nodes.ask_any(request, 0)
        found = {entry.partition_index: entry.leader_id for entry in response.topics[0].partitions}
        return found if len(found) >= partitions and min(found.values()) >= 0 else None

    async def _speaks(self, request: type[Any], at_least: int = 0) -> bool:
        versions = await self.nodes.versions(min(self.nodes.brokers))
        return versions.speaks(request, at_least=at_least)


@dataclass(frozen=True)
class Member:
    member_id: str
    generation: int
