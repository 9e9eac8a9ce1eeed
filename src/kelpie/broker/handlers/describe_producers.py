"""DescribeProducers: the active producers of a partition, and where open transactions begin (KIP-664)."""

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.broker.replica import Replica
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.wire.api.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: DescribeProducersRequest = call.message
    call.answer(
        DescribeProducersResponse(
            topics=[
                TopicResponse(
                    name=topic.name,
                    partitions=[
                        _describe(broker, TopicPartition(topic.name, index))
                        for index in topic.partition_indexes
                    ],
                )
                for topic in request.topics
            ]
        )
    )


def _describe(broker: Broker, partition: TopicPartition) -> PartitionResponse:
    replica = broker.led(partition)
    if not isinstance(replica, Replica):
        return PartitionResponse(partition_index=partition.partition, error_code=replica, active_producers=[])
    return PartitionResponse(
        partition_index=partition.partition,
        error_code=ErrorCode.NONE,
        active_producers=[
            ProducerState(
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=-1
                if producer.transaction_start is None
                else producer.transaction_start,
            )
            for producer in replica.log.producers()
        ],
    )
