"""OffsetFetch: each group from its shard; since version 8 several groups in one request.

Version 0 read from ZooKeeper, beside the coordinator.
"""

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call, Gather, Relay
from kelpie.broker.shard_host import ShardHost
from kelpie.coordinator import offset_fetch
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.wire.api import offset_fetch as wire
from kelpie.wire.schema import NO_UUID

BY_ID = 10


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: wire.OffsetFetchRequest = call.message
    if call.version == 0:
        call.answer(_from_zookeeper(broker, request))
        return
    groups = offset_fetch.groups_asked(request, call.version)
    gather = Gather(len(groups), lambda parts: call.answer(offset_fetch.response_of(parts, call.version)))
    for index, group in enumerate(groups):
        to = _with_ids(broker, gather.part(index)) if call.version >= BY_ID else gather.part(index)
        host = broker.groups.host_for(group.group_id)
        if not isinstance(host, ShardHost):
            to.answer(offset_fetch.refused(group, host, call.version))
            continue
        for topic in (group.topics or ()) if call.version >= BY_ID else ():
            topic.name = broker.image.names.get(topic.topic_id, "")
        host.carry_out(host.shard.fetch_offsets(to, group, request.require_stable, now), now)


def _with_ids(broker: Broker, to: Relay) -> Relay:
    """Fills in ids for names, where all offsets of a group were asked for; a deleted topic is left out. An id
    that is not known is an error of its partitions, which stand at the end.
    """

    def then(group: wire.OffsetFetchResponseGroup) -> None:
        known, unknown = [], []
        for topic in group.topics:
            image_topic = broker.image.topic(topic.name)
            if image_topic is not None:
                topic.topic_id = image_topic.topic_id
                known.append(topic)
            elif topic.topic_id != NO_UUID:
                for part in topic.partitions:
                    part.error_code = ErrorCode.UNKNOWN_TOPIC_ID
                unknown.append(topic)
        group.topics = known + unknown
        to.answer(group)

    return Relay(then)


def _from_zookeeper(broker: Broker, request: wire.OffsetFetchRequest) -> wire.OffsetFetchResponse:
    topics = []
    for topic in request.topics or ():
        parts = []
        for index in topic.partition_indexes:
            stored = broker.links.zookeeper_offsets.get((request.group_id, TopicPartition(topic.name, index)))
            offset, metadata = stored or (-1, "")
            code = ErrorCode.NONE if stored else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            parts.append(
                wire.OffsetFetchResponsePartitions(
                    partition_index=index, committed_offset=offset, metadata=metadata, error_code=code
                )
            )
        topics.append(wire.OffsetFetchResponseTopics(name=topic.name, partitions=parts))
    return wire.OffsetFetchResponse(topics=topics)
