"""OffsetCommit: partitions that do not exist are refused here, the others go to the group's shard.

Version 0 stored offsets in ZooKeeper, beside the coordinator; the lab keeps such offsets apart as well.
"""

from collections.abc import Mapping
from dataclasses import replace

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call, Relay
from kelpie.broker.shard_host import ShardHost
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.wire.api import offset_commit as wire
from kelpie.wire.schema import NO_UUID
from kelpie.wire.structs import PartitionResult

BY_ID = 10


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: wire.OffsetCommitRequest = call.message
    if broker.persona.answers_commits_once:
        request = _each_once(request)
    known, refused = _sort(broker, request, call.version)
    if call.version == 0:
        _to_zookeeper(broker, request.group_id, known, refused)
        call.answer(_merged(request, refused, {}))
        return
    if not known:
        call.answer(_merged(request, refused, {}))
        return
    host = broker.groups.host_for(request.group_id)
    if not isinstance(host, ShardHost):
        call.answer(_merged(request, refused, {}, host))
        return

    def finish(response: wire.OffsetCommitResponse) -> None:
        stored = {
            (topic.name, part.partition_index): part.error_code
            for topic in response.topics
            for part in topic.partitions
        }
        call.answer(_merged(request, refused, stored, names=broker.image.names))

    asked = replace(request, topics=known)
    host.carry_out(host.shard.commit_offsets(Relay(finish), asked, call.version, now), now)


Place = tuple[str, bytes, int]


def _each_once(request: wire.OffsetCommitRequest) -> wire.OffsetCommitRequest:
    """Of a partition that is named twice, what was said last: Scala put them into a map."""
    topics: dict[str, dict[int, wire.OffsetCommitRequestPartition]] = {}
    for topic in request.topics:
        named = topics.setdefault(topic.name, {})
        named.update({part.partition_index: part for part in topic.partitions})
    return replace(
        request,
        topics=[
            wire.OffsetCommitRequestTopic(name=name, partitions=list(parts.values()))
            for name, parts in topics.items()
        ],
    )


def _sort(
    broker: Broker, request: wire.OffsetCommitRequest, version: int
) -> tuple[list[wire.OffsetCommitRequestTopic], dict[Place, ErrorCode]]:
    """Topics that exist, with name and id filled in; and the partitions that do not."""
    image = broker.image
    known: list[wire.OffsetCommitRequestTopic] = []
    refused: dict[Place, ErrorCode] = {}
    for topic in request.topics:
        name = image.names.get(topic.topic_id, "") if version >= BY_ID else topic.name
        image_topic = image.topic(name)
        unknown = (
            ErrorCode.UNKNOWN_TOPIC_ID
            if version >= BY_ID and not name
            else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
        existing = []
        anywhere = image_topic is not None and broker.persona.commits_to_any_partition
        for part in topic.partitions:
            if not anywhere and image.partition(TopicPartition(name, part.partition_index)) is None:
                refused[topic.name, topic.topic_id, part.partition_index] = unknown
            else:
                existing.append(part)
        if existing:
            topic_id = image_topic.topic_id if image_topic else NO_UUID
            known.append(wire.OffsetCommitRequestTopic(name=name, topic_id=topic_id, partitions=existing))
    return known, refused


def _merged(
    request: wire.OffsetCommitRequest,
    refused: dict[Place, ErrorCode],
    stored: dict[tuple[str, int], int],
    otherwise: ErrorCode = ErrorCode.NONE,
    names: Mapping[bytes, str] | None = None,
) -> wire.OffsetCommitResponse:
    """Kafka puts what it refused by itself in front: first of the topics, and first in each of them."""
    names = names or {}
    first: list[wire.OffsetCommitResponseTopic] = []
    second: list[wire.OffsetCommitResponseTopic] = []
    for topic in request.topics:
        name = topic.name or names.get(topic.topic_id, "")
        refused_here, answered_by_shard = [], []
        for part in topic.partitions:
            place = (topic.name, topic.topic_id, part.partition_index)
            index = part.partition_index
            if place in refused:
                refused_here.append(PartitionResult(partition_index=index, error_code=refused[place]))
            else:
                code = ErrorCode(stored.get((name, index), otherwise))
                answered_by_shard.append(PartitionResult(partition_index=index, error_code=code))
        answered = wire.OffsetCommitResponseTopic(
            name=topic.name, topic_id=topic.topic_id, partitions=refused_here + answered_by_shard
        )
        (first if refused_here else second).append(answered)
    return wire.OffsetCommitResponse(topics=first + second)


def _to_zookeeper(
    broker: Broker, group: str, topics: list[wire.OffsetCommitRequestTopic], refused: dict[Place, ErrorCode]
) -> None:
    """ZooKeeper keeps the offset alone, though metadata that is too long is refused."""
    longest = broker.settings.number("offset.metadata.max.bytes")
    for topic in topics:
        for part in topic.partitions:
            if len(part.committed_metadata or "") > longest:
                place = (topic.name, NO_UUID, part.partition_index)
                refused[place] = ErrorCode.OFFSET_METADATA_TOO_LARGE
                continue
            partition = TopicPartition(topic.name, part.partition_index)
            broker.links.zookeeper_offsets[group, partition] = (part.committed_offset, "")
