"""DescribeShareGroupOffsets (api key 90): where share groups stand in partitions (KIP-932).

v0   the beginning (Kafka 4.1); flexible
v1   response + lag (Kafka 4.2, KIP-1226)
"""

from __future__ import annotations

from kelpie.wire.schema import Int16, Int32, Int64, Uuid, field, request, response, struct


@request(key=90, versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsRequest:
    groups: list[ShareOffsetsRequestGroup]


@struct
class ShareOffsetsRequestGroup:
    group_id: str
    topics: list[ShareOffsetsRequestTopic] | None = None
    """None: all partitions of the group."""


@struct
class ShareOffsetsRequestTopic:
    topic_name: str
    partitions: list[Int32]


@response(key=90, versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsResponse:
    throttle_time_ms: Int32 = 0
    groups: list[ShareOffsetsResponseGroup]


@struct
class ShareOffsetsResponseGroup:
    group_id: str
    topics: list[ShareOffsetsResponseTopic]
    error_code: Int16
    error_message: str | None = None


@struct
class ShareOffsetsResponseTopic:
    topic_name: str
    topic_id: Uuid
    partitions: list[ShareOffsetsResponsePartition]


@struct
class ShareOffsetsResponsePartition:
    partition_index: Int32
    start_offset: Int64
    leader_epoch: Int32
    lag: Int64 = field("1+", default=-1)
    error_code: Int16
    error_message: str | None = None
