"""A producer with a transactional id, step by step, so that a scenario can leave a step out."""

from typing import Any

from kelpie.errors import ErrorCode
from kelpie.lab.cluster import Cluster
from kelpie.lab.scenarios.administering import TRANSACTION, coordinator
from kelpie.lab.scenarios.producing import leaders, write
from kelpie.lab.scenarios.stage import Stage
from kelpie.model.names import TopicPartition
from kelpie.wire.api.add_offsets_to_txn import AddOffsetsToTxnRequest
from kelpie.wire.api.add_partitions_to_txn import AddPartitionsToTxnRequest
from kelpie.wire.api.end_txn import EndTxnRequest
from kelpie.wire.api.init_producer_id import InitProducerIdRequest
from kelpie.wire.api.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kelpie.wire.records import Record, write_batch
from kelpie.wire.structs import NamedTopicPartitions


class TransactionalProducer:
    def __init__(self, stage: Stage, cluster: Cluster, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self.producer_id = -1
        self.epoch = -1
        self._stage, self._cluster = stage, cluster
        self._sequences: dict[TopicPartition, int] = {}

    async def start(self) -> None:
        """Gets its producer id. The coordinator aborts what it has left open."""
        request = InitProducerIdRequest(transactional_id=self.transactional_id, transaction_timeout_ms=60_000)
        answer = await self._ask_coordinator(request, 1, retried=True)
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch

    async def send(self, name: TopicPartition, count: int) -> None:
        """Add the partition to the transaction, and write so many records into it."""
        topic = NamedTopicPartitions(name=name.topic, partitions=[name.partition])
        adding = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[topic],
        )
        added = await self._ask_coordinator(adding, 1)
        _check(added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)
        now = self._cluster.driver.clock.now()
        first = self._sequences.get(name, 0)
        self._sequences[name] = first + count
        batch = write_batch(
            [Record(offset=at, timestamp=now, value=b"%d" % at) for at in range(count)],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=first,
            transactional=True,
        )
        key = self.transactional_id
        async with await self._stage.nodes(self._cluster, key) as nodes:

            async def find_leader() -> int | None:
                return (await leaders(nodes, name.topic)).get(name)

            leader = await self._stage.until(find_leader, lambda leader: leader is not None)
            if leader is None:
                raise ConnectionError(f"{name} has no leader")
            await write(nodes, leader, name, batch, transactional_id=key)

    async def send_offsets(self, group: str, name: TopicPartition, offset: int) -> None:
        """Commit an offset of the group as part of the transaction."""
        adding = AddOffsetsToTxnRequest(group_id=group, **self._producer)
        added = await self._ask_coordinator(adding, 1)
        _check(added.error_code)
        part = TxnOffsetCommitRequestPartition(
            partition_index=name.partition, committed_offset=offset, committed_metadata=""
        )
        request = TxnOffsetCommitRequest(
            group_id=group,
            **self._producer,
            topics=[TxnOffsetCommitRequestTopic(name=name.topic, partitions=[part])],
        )
        async with await self._stage.nodes(self._cluster, self.transactional_id) as nodes:
            node = await coordinator(self._stage, nodes, group)
            answer = await nodes.ask(node, request, 2)
        _check(answer.topics[0].partitions[0].error_code)

    async def end(self, *, committed: bool = True) -> None:
        request = EndTxnRequest(**self._producer, committed=committed)
        answer = await self._ask_coordinator(request, 1)
        _check(answer.error_code)

    @property
    def _producer(self) -> dict[str, Any]:
        return {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
        }

    async def _ask_coordinator(self, request: Any, version: int, *, retried: bool = False) -> Any:
        key = self.transactional_id
        async with await self._stage.nodes(self._cluster, key) as nodes:
            node = await coordinator(self._stage, nodes, key, TRANSACTION)

            async def ask() -> Any:
                return await nodes.ask(node, request, version)

            if retried:
                return await self._stage.until(ask, lambda answer: answer.error_code == 0)
            # The end of the transaction before may still be on its way (51): clients try again.
            return await self._stage.until(ask, lambda answer: not _is_early(answer))


def _is_early(answer: Any) -> bool:
    codes = {getattr(answer, "error_code", 0)}
    for topic in getattr(answer, "results_by_topic_v3_and_below", ()):
        codes |= {row.partition_error_code for row in topic.results_by_partition}
    return ErrorCode.CONCURRENT_TRANSACTIONS in codes


def _check(code: int) -> None:
    assert code == 0, f"a step of a transaction was refused: {ErrorCode(code).name}"
