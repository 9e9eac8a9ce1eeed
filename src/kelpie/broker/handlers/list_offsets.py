"""ListOffsets: the beginning, the end, or the first record at or after a time.

−1 latest: the high watermark, or the last stable offset for read_committed. −2 earliest, −4 earliest local:
the log start. −3 the record with the highest timestamp. −5 and −6 concern tiered storage, which is not
here: −1. Before 3.0 a broker knew only the first two: the others were times that all records have passed.
"""

from collections import Counter

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.broker.fetch_service import READ_COMMITTED, check_epoch
from kelpie.broker.log import FoundOffset
from kelpie.broker.replica import Replica
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.wire.api import list_offsets as wire

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL = -1, -2, -3, -4
SINCE_VERSION = {LATEST: 0, EARLIEST: 0, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, -5: 9, -6: 11}
DEBUGGING = -2
"""Tools that compare replicas ask as this one: any replica answers, of all that it has, committed or not."""
BEFORE_EVERYTHING = -(2**63)
OFFSET_NOT_AVAILABLE_SINCE = 5


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: wire.ListOffsetsRequest = call.message
    named = Counter(
        (topic.name, part.partition_index) for topic in request.topics for part in topic.partitions
    )
    topics = []
    for topic in request.topics:
        parts = []
        for part in topic.partitions:
            twice = call.version > 0 and named[topic.name, part.partition_index] > 1
            partition = TopicPartition(topic.name, part.partition_index)
            listed = ErrorCode.INVALID_REQUEST if twice else _find(broker, partition, part, call, now)
            parts.append(_response(part.partition_index, listed))
        topics.append(wire.ListOffsetsTopicResponse(name=topic.name, partitions=parts))
    call.answer(wire.ListOffsetsResponse(topics=topics))


Listed = FoundOffset | list[int] | ErrorCode | None


def _response(index: int, listed: Listed) -> wire.ListOffsetsPartitionResponse:
    response = wire.ListOffsetsPartitionResponse(partition_index=index, error_code=ErrorCode.NONE)
    if isinstance(listed, ErrorCode):
        response.error_code = listed
    elif isinstance(listed, list):
        response.old_style_offsets = listed
    elif listed is not None:
        response.timestamp, response.offset, response.leader_epoch = listed
    return response


def _find(
    broker: Broker, partition: TopicPartition, asked: wire.ListOffsetsPartition, call: Call, now: Instant
) -> Listed:
    unknown = asked.timestamp < 0 and call.version < SINCE_VERSION.get(asked.timestamp, 99)
    if unknown and broker.persona.refuses_unknown_times:
        return ErrorCode.UNSUPPORTED_VERSION
    if call.message.replica_id == DEBUGGING:
        copy = broker.replicas.get(partition)
        if copy is not None and asked.timestamp == LATEST and call.version > 0:
            return FoundOffset(-1, copy.log.end_offset, copy.leader_epoch)
    replica = broker.led(partition)
    if not isinstance(replica, Replica):
        return replica
    fenced = check_epoch(replica, asked.current_leader_epoch)
    if fenced is not None:
        return fenced
    if call.version == 0:
        return _old_style(replica, asked, now)
    log = replica.log
    if asked.timestamp in (EARLIEST, EARLIEST_LOCAL) and not unknown:
        return log.offset_for_timestamp(asked.timestamp, log.end_offset)
    committed = call.message.isolation_level == READ_COMMITTED
    upto = replica.last_stable_offset() if committed else replica.high_watermark
    listed = (
        FoundOffset(-1, upto, replica.leader_epoch)
        if asked.timestamp == LATEST
        else log.offset_for_timestamp(BEFORE_EVERYTHING if unknown else asked.timestamp, upto)
    )
    if replica.high_watermark < replica.epoch_start_offset and (listed is None or asked.timestamp == LATEST):
        # A new leader does not know yet what the one before it had committed (KIP-207).
        known = call.version >= OFFSET_NOT_AVAILABLE_SINCE
        return ErrorCode.OFFSET_NOT_AVAILABLE if known else ErrorCode.LEADER_NOT_AVAILABLE
    return listed


def _old_style(replica: Replica, asked: wire.ListOffsetsPartition, now: Instant) -> list[int]:
    """Version 0 lists the first offsets of segments that are old enough, newest first, after the log's end.

    Offsets that are not committed are not shown: the high watermark stands in their place.
    """
    log = replica.log
    # A file without records is as old as the partition. That time is not kept, so the file counts as new.
    places = [
        (max(segment.base_offset, log.start_offset), now if segment.modified is None else segment.modified)
        for segment in log.segments
    ]
    if log.segments[-1].size:
        places.append((log.end_offset, now))
    if asked.timestamp == EARLIEST:
        places = places[:1]
    elif asked.timestamp != LATEST:
        old = [index for index, (_, modified) in enumerate(places) if modified <= asked.timestamp]
        places = places[: old[-1] + 1] if old else []
    offsets = [offset for offset, _ in reversed(places)][: max(asked.max_num_offsets, 0)]
    visible = [offset for offset in offsets if offset <= replica.high_watermark]
    return offsets if len(visible) == len(offsets) else [replica.high_watermark, *visible]
