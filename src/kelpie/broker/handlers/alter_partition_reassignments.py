"""AlterPartitionReassignments: replicas move; the old ones stay until the new ones are in sync."""

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.broker.controller import Controller
from kelpie.broker.declined import Declined
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.wire.api.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: AlterPartitionReassignmentsRequest = call.message
    controller = broker.links.controller()
    if controller is None:
        call.answer(AlterPartitionReassignmentsResponse(error_code=ErrorCode.NOT_CONTROLLER, responses=[]))
        return
    responses = [
        ReassignableTopicResponse(
            name=topic.name,
            partitions=[_move(broker, controller, topic.name, part) for part in topic.partitions],
        )
        for topic in request.topics
    ]
    broker.links.publish(now)
    call.answer(AlterPartitionReassignmentsResponse(error_code=ErrorCode.NONE, responses=responses))


def _move(
    broker: Broker, controller: Controller, topic: str, asked: ReassignablePartition
) -> ReassignablePartitionResponse:
    partition = TopicPartition(topic, asked.partition_index)
    try:
        if asked.replicas is None:
            controller.cancel_reassignment(partition)
        else:
            controller.reassign(partition, asked.replicas)
            broker.links.appended(partition)  # A new replica has everything to fetch.
    except Declined as declined:
        return ReassignablePartitionResponse(
            partition_index=asked.partition_index, error_code=declined.code, error_message=declined.message
        )
    return ReassignablePartitionResponse(partition_index=asked.partition_index, error_code=ErrorCode.NONE)
