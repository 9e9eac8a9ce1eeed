"""CreatePartitions: more partitions for topics that exist."""

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.broker.declined import Declined
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.wire.api import create_partitions as wire


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: wire.CreatePartitionsRequest = call.message
    results = [_add(broker, topic, dry_run=request.validate_only) for topic in request.topics]
    broker.links.publish(now)
    call.answer(wire.CreatePartitionsResponse(results=results))


def _add(
    broker: Broker, topic: wire.CreatePartitionsTopic, *, dry_run: bool
) -> wire.CreatePartitionsTopicResult:
    controller = broker.links.controller()
    if controller is None:
        return wire.CreatePartitionsTopicResult(name=topic.name, error_code=ErrorCode.NOT_CONTROLLER)
    given = None if topic.assignments is None else [assigned.broker_ids for assigned in topic.assignments]
    try:
        controller.add_partitions(topic.name, topic.count, given, dry_run=dry_run)
    except Declined as declined:
        return wire.CreatePartitionsTopicResult(
            name=topic.name, error_code=declined.code, error_message=declined.message
        )
    return wire.CreatePartitionsTopicResult(name=topic.name, error_code=ErrorCode.NONE)
