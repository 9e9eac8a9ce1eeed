"""CreateTopics: only the controller grants them, so a broker that cannot reach it answers NOT_CONTROLLER.

One request makes at most 10,000 partitions, as in Kafka 4 (ReplicationControlManager): what asks for more is
refused as a whole.
"""

from collections import Counter

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.broker.declined import Declined
from kelpie.broker.image import TopicImage
from kelpie.broker.placement import MOST_NEW_PARTITIONS
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.wire.api import create_topics as wire

TOPIC_CONFIG, DEFAULT_CONFIG = 1, 5
_TOO_MANY = "Excessively large number of partitions per request."


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: wire.CreateTopicsRequest = call.message
    times = Counter(topic.name for topic in request.topics)
    default = broker.settings.number("num.partitions")
    asked = sum(_partitions(topic, default) for topic in request.topics if times[topic.name] == 1)
    if asked > MOST_NEW_PARTITIONS:
        results = [_refused(topic.name, ErrorCode.POLICY_VIOLATION, _TOO_MANY) for topic in request.topics]
        call.answer(wire.CreateTopicsResponse(topics=results))
        return
    results = [
        _refused(topic.name, ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        if times[topic.name] > 1
        else _create(broker, topic, dry_run=request.validate_only)
        for topic in request.topics
    ]
    broker.links.publish(now)
    call.answer(wire.CreateTopicsResponse(topics=results))


def _partitions(topic: wire.CreatableTopic, default: int) -> int:
    """How many partitions a topic asks for."""
    if topic.assignments:
        return len(topic.assignments)
    return default if topic.num_partitions == -1 else max(0, topic.num_partitions)


def _create(broker: Broker, topic: wire.CreatableTopic, *, dry_run: bool) -> wire.CreatableTopicResult:
    controller = broker.links.controller()
    if controller is None:
        return _refused(
            topic.name, ErrorCode.NOT_CONTROLLER, "This is not the correct controller for this cluster."
        )
    if topic.assignments and (topic.num_partitions != -1 or topic.replication_factor != -1):
        return _refused(
            topic.name,
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions or replicationFactor "
            "was not set to -1.",
        )
    try:
        made = controller.create_topic(
            topic.name,
            topic.num_partitions,
            topic.replication_factor,
            {config.name: config.value or "" for config in topic.configs},
            {assigned.partition_index: assigned.broker_ids for assigned in topic.assignments} or None,
            dry_run=dry_run,
        )
    except Declined as declined:
        return _refused(topic.name, declined.code, declined.message)
    return _made(broker, made)


def _made(broker: Broker, topic: TopicImage) -> wire.CreatableTopicResult:
    return wire.CreatableTopicResult(
        name=topic.name,
        topic_id=topic.topic_id,
        error_code=ErrorCode.NONE,
        error_message=None,
        num_partitions=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replicas),
        configs=[
            wire.CreatableTopicConfigs(
                name=name,
                value=value,
                read_only=False,
                config_source=TOPIC_CONFIG if name in topic.config else DEFAULT_CONFIG,
                is_sensitive=False,
            )
            for name, value in sorted(broker.settings.topic_config(topic.config).items())
        ],
    )


def _refused(name: str, code: ErrorCode, message: str) -> wire.CreatableTopicResult:
    return wire.CreatableTopicResult(name=name, error_code=code, error_message=message)
