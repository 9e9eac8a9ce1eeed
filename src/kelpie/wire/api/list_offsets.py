"""ListOffsets (api key 2): the offset of a partition at a point in time, or at its beginning or end.

v0   the beginning
v1   one offset instead of a list: request − max_num_offsets; response + timestamp, offset; response −
     old_style_offsets
v2   request + isolation_level; response + throttle_time_ms (KIP-98)
v3   no new field; the broker answers first and throttles after (KIP-219)
v4   request + current_leader_epoch; response + leader_epoch (KIP-320)
v5   no new field; OFFSET_NOT_AVAILABLE may be answered
v6   flexible
v7   no new field; timestamp −3: the record with the highest timestamp (KIP-734)
v8   no new field; timestamp −4: the earliest local offset (KIP-405)
v9   no new field; timestamp −5: the last tiered offset (KIP-1005)
v10  request + timeout_ms (KIP-1075)
v11  no new field; timestamp −6: the earliest offset waiting for upload (KIP-1023)
"""

from __future__ import annotations

from kelpie.wire.schema import Int8, Int16, Int32, Int64, field, request, response, struct


@request(key=2, versions="0-11", flexible="6+")
class ListOffsetsRequest:
    replica_id: Int32
    isolation_level: Int8 = field("2+", default=0, strict=True)
    topics: list[ListOffsetsTopic]
    timeout_ms: Int32 = field("10+", default=0)


@struct
class ListOffsetsTopic:
    name: str
    partitions: list[ListOffsetsPartition]


@struct
class ListOffsetsPartition:
    partition_index: Int32
    current_leader_epoch: Int32 = field("4+", default=-1)
    timestamp: Int64
    max_num_offsets: Int32 = field("0", default=1, strict=True)


@response(key=2, versions="0-11", flexible="6+")
class ListOffsetsResponse:
    throttle_time_ms: Int32 = field("2+", default=0)
    topics: list[ListOffsetsTopicResponse]


@struct
class ListOffsetsTopicResponse:
    name: str
    partitions: list[ListOffsetsPartitionResponse]


@struct
class ListOffsetsPartitionResponse:
    partition_index: Int32
    error_code: Int16
    old_style_offsets: list[Int64] = field("0", default=[])
    timestamp: Int64 = field("1+", default=-1)
    offset: Int64 = field("1+", default=-1)
    leader_epoch: Int32 = field("4+", default=-1)
