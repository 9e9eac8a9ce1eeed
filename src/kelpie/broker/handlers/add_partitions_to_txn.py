"""AddPartitionsToTxn: from producers up to version 3; since version 4 from brokers, for many transactions at
once.
"""

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call, Gather
from kelpie.broker.shard_host import ShardHost
from kelpie.coordinator.transactions import add_partitions_result
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.wire.api import add_partitions_to_txn as wire
from kelpie.wire.structs import NamedTopicPartitions


def handle(broker: Broker, call: Call, now: Instant) -> None:
    if call.version >= 4:
        _many(broker, call, now)
        return
    request: wire.AddPartitionsToTxnRequest = call.message
    asked = _partitions(request.v3_and_below_topics)
    unknown = {partition for partition in asked if broker.image.partition(partition) is None}
    if unknown:
        errors = {
            partition: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if partition in unknown
            else ErrorCode.OPERATION_NOT_ATTEMPTED
            for partition in asked
        }
        call.answer(_of_client(request, errors))
        return
    host = broker.transactions.host_for(request.v3_and_below_transactional_id)
    if isinstance(host, ShardHost):
        host.carry_out(host.shard.add_partitions(call, request, call.version, now), now)
    else:
        call.answer(_of_client(request, dict.fromkeys(asked, host)))


def _many(broker: Broker, call: Call, now: Instant) -> None:
    request: wire.AddPartitionsToTxnRequest = call.message
    wanted = request.transactions

    def finish(errors: list[dict[TopicPartition, ErrorCode]]) -> None:
        results = [
            add_partitions_result(transaction.transactional_id, errors_by_partition)
            for transaction, errors_by_partition in zip(wanted, errors, strict=True)
        ]
        call.answer(wire.AddPartitionsToTxnResponse(results_by_transaction=results))

    gather = Gather(len(wanted), finish)
    for index, transaction in enumerate(wanted):
        to = gather.part(index)
        partitions = _partitions(transaction.topics)
        host = broker.transactions.host_for(transaction.transactional_id)
        if not isinstance(host, ShardHost):
            to.answer(dict.fromkeys(partitions, host))
            continue
        outcome = host.shard.verify_or_add(
            to,
            transaction.transactional_id,
            producer_id=transaction.producer_id,
            producer_epoch=transaction.producer_epoch,
            partitions=partitions,
            verify_only=transaction.verify_only,
            now=now,
        )
        host.carry_out(outcome, now)


def _partitions(topics: list[NamedTopicPartitions]) -> list[TopicPartition]:
    return [TopicPartition(topic.name, index) for topic in topics for index in topic.partitions]


def _of_client(
    request: wire.AddPartitionsToTxnRequest, errors: dict[TopicPartition, ErrorCode]
) -> wire.AddPartitionsToTxnResponse:
    return wire.AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            wire.AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    wire.AddPartitionsToTxnPartitionResult(
                        partition_index=index, partition_error_code=errors[TopicPartition(topic.name, index)]
                    )
                    for index in topic.partitions
                ],
            )
            for topic in request.v3_and_below_topics
        ]
    )
