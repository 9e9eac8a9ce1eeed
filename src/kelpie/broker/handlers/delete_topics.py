"""DeleteTopics: by name, and since version 6 also by id."""

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.broker.declined import Declined
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.wire.api.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
from kelpie.wire.schema import NO_UUID


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: DeleteTopicsRequest = call.message
    asked = [(topic.name, topic.topic_id) for topic in request.topics]
    asked += [(name, NO_UUID) for name in request.topic_names]
    if broker.settings.switch("delete.topic.enable"):
        results = [_delete(broker, name, topic_id) for name, topic_id in asked]
    else:
        disabled = ErrorCode.TOPIC_DELETION_DISABLED if call.version >= 3 else ErrorCode.INVALID_REQUEST
        results = [
            _result(name, topic_id, disabled, "Topic deletion is disabled.") for name, topic_id in asked
        ]
    broker.links.publish(now)
    call.answer(DeleteTopicsResponse(responses=results))


def _delete(broker: Broker, name: str | None, topic_id: bytes) -> DeletableTopicResult:
    if name is not None and topic_id != NO_UUID:
        return _result(name, topic_id, ErrorCode.INVALID_REQUEST, "A topic has either a name or an id here.")
    if name is None:
        name = broker.image.names.get(topic_id)
        if name is None:
            return _result(
                None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID."
            )
    topic = broker.image.topic(name)
    topic_id = topic.topic_id if topic else topic_id
    controller = broker.links.controller()
    if controller is None:
        return _result(name, topic_id, ErrorCode.NOT_CONTROLLER, "The controller cannot be reached.")
    try:
        controller.delete_topic(name)
    except Declined as declined:
        return _result(name, topic_id, declined.code, declined.message)
    return _result(name, topic_id, ErrorCode.NONE, None)


def _result(name: str | None, topic_id: bytes, code: ErrorCode, message: str | None) -> DeletableTopicResult:
    return DeletableTopicResult(name=name, topic_id=topic_id, error_code=code, error_message=message)
