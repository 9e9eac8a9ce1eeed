"""DescribeCluster: brokers and controller, as this broker sees them."""

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.wire.api import describe_cluster as wire

BROKERS = 1


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: wire.DescribeClusterRequest = call.message
    image = broker.image
    if request.endpoint_type != BROKERS:
        call.answer(
            wire.DescribeClusterResponse(
                error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
                error_message="The request was sent to an endpoint of the wrong type.",
                cluster_id="",
                brokers=[],
            )
        )
        return
    shown = set(image.brokers) if request.include_fenced_brokers else image.alive
    call.answer(
        wire.DescribeClusterResponse(
            error_code=ErrorCode.NONE,
            cluster_id=image.cluster_id,
            controller_id=image.controller_id,
            brokers=[
                wire.DescribeClusterBroker(
                    broker_id=node,
                    host=image.brokers[node].host,
                    port=image.brokers[node].port,
                    rack=image.brokers[node].rack,
                    is_fenced=node not in image.alive,
                )
                for node in sorted(shown)
            ],
        )
    )
