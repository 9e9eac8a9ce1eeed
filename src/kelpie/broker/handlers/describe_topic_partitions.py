"""DescribeTopicPartitions: topics in the order of their names, so many partitions a page (KIP-966)."""

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.broker.image import TopicImage
from kelpie.broker.refusals import refusal
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.wire.api import describe_topic_partitions as wire
from kelpie.wire.schema import NO_UUID

MOST_PARTITIONS = 2000


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: wire.DescribeTopicPartitionsRequest = call.message
    if request.cursor is not None and request.cursor.partition_index < 0:
        call.answer(refusal(call.header, request, ErrorCode.INVALID_REQUEST))
        return
    image = broker.image
    names = sorted({topic.name for topic in request.topics}) or sorted(image.topics)
    start = 0
    if request.cursor is not None:
        names = [name for name in names if name >= request.cursor.topic_name]
        start = request.cursor.partition_index if names[:1] == [request.cursor.topic_name] else 0
    room = min(max(request.response_partition_limit, 1), MOST_PARTITIONS)
    topics: list[wire.DescribeTopicPartitionsResponseTopic] = []
    cursor = None
    for name in names:
        topic = image.topics.get(name)
        if topic is None:
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            topics.append(
                wire.DescribeTopicPartitionsResponseTopic(
                    error_code=unknown, name=name, topic_id=NO_UUID, partitions=[]
                )
            )
            continue
        start = min(start, len(topic.partitions))
        if room == 0:
            cursor = wire.Cursor(topic_name=name, partition_index=start)
            break
        stop = min(len(topic.partitions), start + room)
        topics.append(_described(broker, topic, start, stop))
        room -= stop - start
        if stop < len(topic.partitions):
            cursor = wire.Cursor(topic_name=name, partition_index=stop)
            break
        start = 0
    call.answer(wire.DescribeTopicPartitionsResponse(topics=topics, next_cursor=cursor))


def _described(
    broker: Broker, topic: TopicImage, start: int, stop: int
) -> wire.DescribeTopicPartitionsResponseTopic:
    alive = broker.image.alive
    partitions = []
    for index in range(start, stop):
        state = topic.partitions[index]
        led = state.leader in alive
        partitions.append(
            wire.DescribeTopicPartitionsResponsePartition(
                error_code=ErrorCode.NONE if led else ErrorCode.LEADER_NOT_AVAILABLE,
                partition_index=index,
                leader_id=state.leader if led else -1,
                leader_epoch=state.leader_epoch,
                replica_nodes=list(state.replicas),
                isr_nodes=list(state.isr),
                eligible_leader_replicas=list(state.elr),
                last_known_elr=list(state.last_leader),
                offline_replicas=[node for node in state.replicas if node not in alive],
            )
        )
    return wire.DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=partitions,
    )
