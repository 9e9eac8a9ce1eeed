"""Metadata: brokers, topics and leaders, as this broker's own image has them.

The error of a partition follows its leader (broker and version decide):

- leader unknown or dead: LEADER_NOT_AVAILABLE, leader −1; the ISR is shown since 2.4;
- leader alive, but without the listener that the client came through: LISTENER_NOT_FOUND, leader −1, since
  version 6, LEADER_NOT_AVAILABLE before;
- version 0 only: replicas and ISR are cut to those alive, and REPLICA_NOT_AVAILABLE says so, though the
  leader is there. Clients must take that for success.

Kafka 0.9 answers every topic with −1, and no brokers, in two cases: one living replica does not have the
listener; or a topic has to be created and there are too few brokers.

Topics that do not exist are created, where broker and request both allow it (the request since version 4).
Kafka 0.9 creates the offsets topic even if that is switched off.
"""

from kelpie.broker import topic_names
from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.broker.declined import Declined
from kelpie.broker.image import (
    INTERNAL_TOPICS,
    NO_LEADER,
    OFFSETS_TOPIC,
    Image,
    PartitionImage,
    TopicImage,
)
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.wire.api import metadata as wire
from kelpie.wire.schema import NO_UUID

LISTENER_KNOWN = 6


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: wire.MetadataRequest = call.message
    image = broker.image
    everything = request.topics is None or (call.version == 0 and not request.topics)
    asked = [] if everything else request.topics or []
    if broker.persona.name == "0.9" and _fails_whole(
        broker, call.listener, [topic.name or "" for topic in asked]
    ):
        names = [topic.name for topic in asked] or list(image.topics)
        call.answer(
            wire.MetadataResponse(
                brokers=[], topics=[_absent(name, ErrorCode.UNKNOWN_SERVER_ERROR) for name in names]
            )
        )
        return
    if everything:
        topics = [describe(topic, call, broker) for topic in image.topics.values()]
    else:
        topics = [_asked(broker, topic, call, now) for topic in asked]
    call.answer(
        wire.MetadataResponse(
            brokers=[
                wire.MetadataResponseBroker(
                    node_id=endpoint.node_id, host=endpoint.host, port=endpoint.port, rack=endpoint.rack
                )
                for endpoint in (image.brokers[node] for node in sorted(image.alive))
                if call.listener in endpoint.listeners
            ],
            cluster_id=image.cluster_id,
            controller_id=image.controller_id,
            topics=topics,
        )
    )


def _fails_whole(broker: Broker, listener: str, names: list[str]) -> bool:
    """Whether Kafka 0.9 fails the whole answer. `names` are the topics asked for; none means every topic."""
    return _hides_a_replica(broker.image, listener, names) or _has_too_few_brokers(broker, names)


def _has_too_few_brokers(broker: Broker, names: list[str]) -> bool:
    """Whether one of these would have to be created, and cannot. The offsets topic takes what there is."""
    image, settings = broker.image, broker.settings
    return (
        any(name not in image.topics and name != OFFSETS_TOPIC for name in names)
        and settings.switch("auto.create.topics.enable")
        and settings.number("default.replication.factor") > len(image.alive)
    )


def _hides_a_replica(image: Image, listener: str, names: list[str]) -> bool:
    """Whether a living replica of these topics, or of any, cannot be reached through this listener."""
    topics = (
        [image.topics[name] for name in names if name in image.topics] if names else image.topics.values()
    )
    return any(
        node in image.alive and listener not in image.brokers[node].listeners
        for topic in topics
        for state in topic.partitions
        for node in state.replicas
    )


def _asked(
    broker: Broker, asked: wire.MetadataRequestTopic, call: Call, now: Instant
) -> wire.MetadataResponseTopic:
    image, request = broker.image, call.message
    if asked.topic_id != NO_UUID:
        known_name = image.names.get(asked.topic_id)
        if known_name is None:
            return _absent(None, ErrorCode.UNKNOWN_TOPIC_ID, topic_id=asked.topic_id)
        return describe(image.topics[known_name], call, broker)
    name = asked.name or ""
    topic = image.topics.get(name)
    if topic is not None:
        return describe(topic, call, broker)
    allowed = broker.settings.switch("auto.create.topics.enable") and (
        call.version < 4 or request.allow_auto_topic_creation
    )
    if broker.persona.name == "0.9":
        allowed = allowed or name == OFFSETS_TOPIC
        if not allowed:  # Kafka checks names only when it creates a topic.
            return _absent(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if topic_names.problem(name):
        return _absent(name, ErrorCode.INVALID_TOPIC_EXCEPTION)
    return _absent(name, _create(broker, name, now) if allowed else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _create(broker: Broker, name: str, now: Instant) -> ErrorCode:
    """A broker that forwards the creation to the controller does not know its result."""
    forwarded = broker.persona.forwards_creation
    try:
        broker.create_missing_topic(name, now)
    except Declined as declined:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if forwarded else declined.code
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if forwarded else ErrorCode.LEADER_NOT_AVAILABLE


def _absent(name: str | None, code: ErrorCode, topic_id: bytes = NO_UUID) -> wire.MetadataResponseTopic:
    return wire.MetadataResponseTopic(
        error_code=code, name=name, topic_id=topic_id, is_internal=name in INTERNAL_TOPICS, partitions=[]
    )


def describe(topic: TopicImage, call: Call, broker: Broker) -> wire.MetadataResponseTopic:
    return wire.MetadataResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[_partition(index, state, call, broker) for index, state in enumerate(topic.partitions)],
    )


def _partition(
    index: int, state: PartitionImage, call: Call, broker: Broker
) -> wire.MetadataResponsePartition:
    image = broker.image
    reachable = {node for node in image.alive if call.listener in image.brokers[node].listeners}
    replicas, isr = list(state.replicas), list(state.isr)
    error = ErrorCode.NONE
    leader = state.leader
    if call.version == 0:
        replicas = [node for node in replicas if node in reachable]
        isr = [node for node in isr if node in reachable]
    if leader not in reachable:
        known = leader in image.alive and call.version >= LISTENER_KNOWN
        error = ErrorCode.LISTENER_NOT_FOUND if known else ErrorCode.LEADER_NOT_AVAILABLE
        leader = NO_LEADER
        if not broker.persona.isr_of_leaderless:
            isr = []
    elif call.version == 0 and (len(replicas) < len(state.replicas) or len(isr) < len(state.isr)):
        error = ErrorCode.REPLICA_NOT_AVAILABLE
    return wire.MetadataResponsePartition(
        error_code=error,
        partition_index=index,
        leader_id=leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=[node for node in state.replicas if node not in reachable],
    )
