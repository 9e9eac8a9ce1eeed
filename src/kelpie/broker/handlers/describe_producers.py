"""DescribeProducers: the active producers of a partition, and where open transactions begin (KIP-664)."""

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.broker.replica import Replica
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.wire.api import describe_producers as wire


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: wire.DescribeProducersRequest = call.message
    call.answer(
        wire.DescribeProducersResponse(
            topics=[
                wire.TopicResponse(
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


def _describe(broker: Broker, partition: TopicPartition) -> wire.PartitionResponse:
    replica = broker.led(partition)
    if not isinstance(replica, Replica):
        return wire.PartitionResponse(
            partition_index=partition.partition, error_code=replica, active_producers=[]
        )
    return wire.PartitionResponse(
        partition_index=partition.partition,
        error_code=ErrorCode.NONE,
        active_producers=[
            wire.ProducerState(
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
