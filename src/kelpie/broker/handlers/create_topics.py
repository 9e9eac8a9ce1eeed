"""CreateTopics: only the controller grants them, so a broker that cannot reach it answers NOT_CONTROLLER."""

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.broker.declined import Declined
from kelpie.broker.image import TopicImage
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.wire.api import create_topics as wire

TOPIC_CONFIG, DEFAULT_CONFIG = 1, 5


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: wire.CreateTopicsRequest = call.message
    names = [topic.name for topic in request.topics]
    results = [
        _refused(topic.name, ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        if names.count(topic.name) > 1
        else _create(broker, topic, dry_run=request.validate_only)
        for topic in request.topics
    ]
    broker.links.publish(now)
    call.answer(wire.CreateTopicsResponse(topics=results))


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
