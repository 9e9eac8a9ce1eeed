"""FindCoordinator: the leader of the partition that the key hashes to, or COORDINATOR_NOT_AVAILABLE.

The way is that of Kafka's handler: the partition from the key, the metadata of the internal topic (created
if it is missing), the leader of that partition. Whatever is missing on it, the answer is 15, node −1, empty
host, port −1.
"""

from contextlib import suppress

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.broker.declined import Declined
from kelpie.broker.image import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, Endpoint
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.partitioning import partition_for
from kelpie.model.time import Instant
from kelpie.wire.api.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

GROUP, TRANSACTION, SHARE = 0, 1, 2
TOPICS = {GROUP: OFFSETS_TOPIC, TRANSACTION: TRANSACTIONS_TOPIC}
NOWHERE = Endpoint(-1, "", -1)


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: FindCoordinatorRequest = call.message
    keys = request.coordinator_keys if call.version >= 4 else [request.key]
    if broker.traffic is not None and request.key_type == GROUP:
        broker.traffic.coordinator_asked(call, keys, now)
    coordinators = [(key, *look_up(broker, request.key_type, key, call.listener, now)) for key in keys]
    if call.version >= 4:
        # Kafka knows the type of share partitions, and refuses it here without a message.
        message = "" if request.key_type in (*TOPICS, SHARE) else _INVALID
        call.answer(
            FindCoordinatorResponse(
                coordinators=[
                    Coordinator(
                        key=key,
                        node_id=node.node_id,
                        host=node.host,
                        port=node.port,
                        error_code=code,
                        error_message=message,
                    )
                    for key, code, node in coordinators
                ]
            )
        )
        return
    _, code, node = coordinators[0]
    call.answer(
        FindCoordinatorResponse(
            error_code=code,
            error_message=_MESSAGES[code],
            node_id=node.node_id,
            host=node.host,
            port=node.port,
        )
    )


_INVALID = (
    "This most likely occurs because of a request being malformed by the client library or the message was "
    "sent to an incompatible broker. See the broker logs for more details."
)
_MESSAGES = {
    ErrorCode.NONE: "NONE",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.INVALID_REQUEST: _INVALID,
}


def look_up(
    broker: Broker, key_type: int, key: str, listener: str, now: Instant
) -> tuple[ErrorCode, Endpoint]:
    name = TOPICS.get(key_type)
    if name is None:
        return ErrorCode.INVALID_REQUEST, NOWHERE
    topic = broker.image.topic(name)
    if topic is None:
        with suppress(Declined):  # The client learns only that there is no coordinator.
            broker.create_internal_topic(name, now)
        return ErrorCode.COORDINATOR_NOT_AVAILABLE, NOWHERE
    leader = broker.image.leader_of(TopicPartition(name, partition_for(key, len(topic.partitions))))
    if leader is None or listener not in leader.listeners:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE, NOWHERE
    return ErrorCode.NONE, leader
