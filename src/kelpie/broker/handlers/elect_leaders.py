"""ElectLeaders: the preferred leader, or an unclean one where there is none (KIP-460)."""

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.broker.controller import Controller
from kelpie.broker.declined import Declined
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.wire.api import elect_leaders as wire

UNCLEAN = 1


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: wire.ElectLeadersRequest = call.message
    controller = broker.links.controller()
    if controller is None:
        call.answer(
            wire.ElectLeadersResponse(error_code=ErrorCode.NOT_CONTROLLER, replica_election_results=[])
        )
        return
    everything = request.topic_partitions is None
    if everything:
        asked = {topic.name: list(range(len(topic.partitions))) for topic in controller.image.topics.values()}
    else:
        asked = {topic.topic: topic.partitions for topic in request.topic_partitions or []}
    results = []
    for topic, partitions in asked.items():
        outcomes = [
            _elect(controller, TopicPartition(topic, index), unclean=request.election_type == UNCLEAN)
            for index in partitions
        ]
        if everything:
            # Asked for all, Kafka is silent about those that needed none.
            outcomes = [
                outcome for outcome in outcomes if outcome.error_code != ErrorCode.ELECTION_NOT_NEEDED
            ]
        if outcomes:
            results.append(wire.ReplicaElectionResult(topic=topic, partition_result=outcomes))
    broker.links.publish(now)
    call.answer(wire.ElectLeadersResponse(replica_election_results=results))


def _elect(controller: Controller, partition: TopicPartition, *, unclean: bool) -> wire.ElectionResult:
    try:
        controller.elect(partition, unclean=unclean)
    except Declined as declined:
        return wire.ElectionResult(
            partition_id=partition.partition, error_code=declined.code, error_message=declined.message
        )
    return wire.ElectionResult(partition_id=partition.partition, error_code=ErrorCode.NONE)
