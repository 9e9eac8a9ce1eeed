"""ListPartitionReassignments: the moves that have not ended."""

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.wire.api import list_partition_reassignments as wire


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: wire.ListPartitionReassignmentsRequest = call.message
    asked = (
        None if request.topics is None else {topic.name: topic.partition_indexes for topic in request.topics}
    )
    topics = []
    for topic in broker.image.topics.values():
        moving = [
            wire.OngoingPartitionReassignment(
                partition_index=index,
                replicas=list(state.replicas),
                adding_replicas=list(state.adding),
                removing_replicas=list(state.removing),
            )
            for index, state in enumerate(topic.partitions)
            if (state.adding or state.removing) and (asked is None or index in asked.get(topic.name, ()))
        ]
        if moving:
            topics.append(wire.OngoingTopicReassignment(name=topic.name, partitions=moving))
    call.answer(wire.ListPartitionReassignmentsResponse(error_code=ErrorCode.NONE, topics=topics))
