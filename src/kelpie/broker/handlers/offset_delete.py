"""OffsetDelete: committed offsets of a group, by its shard. Partitions that do not exist are refused here,
and stand first in the answer.
"""

from dataclasses import replace

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.broker.shard_host import ShardHost
from kelpie.broker.tokens import Relay
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.wire.api.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: OffsetDeleteRequest = call.message
    known, absent = _sort(broker, request)

    def finish(response: OffsetDeleteResponse) -> None:
        if response.error_code == ErrorCode.NONE:
            response.topics = _merged(absent, response.topics)
        call.answer(response)

    host = broker.groups.host_for(request.group_id)
    if isinstance(host, ShardHost):
        asked = replace(request, topics=known)
        host.carry_out(host.shard.delete_offsets(Relay(finish), asked, now), now)
    else:
        call.answer(OffsetDeleteResponse(error_code=host, topics=[]))


def _sort(
    broker: Broker, request: OffsetDeleteRequest
) -> tuple[list[OffsetDeleteRequestTopic], list[OffsetDeleteResponseTopic]]:
    """What exists, and the answer about what does not."""
    known, absent = [], []
    for topic in request.topics:
        there, gone = [], []
        for it in topic.partitions:
            index = it.partition_index
            if broker.image.partition(TopicPartition(topic.name, index)) is not None:
                there.append(it)
            else:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                gone.append(OffsetDeleteResponsePartition(partition_index=index, error_code=code))
        if there:
            known.append(replace(topic, partitions=there))
        if gone:
            absent.append(OffsetDeleteResponseTopic(name=topic.name, partitions=gone))
    return known, absent


def _merged(
    absent: list[OffsetDeleteResponseTopic], found: list[OffsetDeleteResponseTopic]
) -> list[OffsetDeleteResponseTopic]:
    topics = {topic.name: topic for topic in absent}
    for topic in found:
        if topic.name in topics:
            topics[topic.name].partitions.extend(topic.partitions)
        else:
            topics[topic.name] = topic
    return list(topics.values())
