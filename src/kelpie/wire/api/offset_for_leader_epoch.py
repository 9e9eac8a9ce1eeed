"""OffsetForLeaderEpoch (api key 23): the end offset of a leader epoch, by which a reader detects truncation.

v0   the beginning
v1   response + leader_epoch
v2   request + current_leader_epoch; response + throttle_time_ms (KIP-320)
v3   debugging and fencing of replicas: request + replica_id
v4   flexible
"""

from __future__ import annotations

from kelpie.wire.schema import Int16, Int32, Int64, field, request, response, struct


@request(key=23, versions="0-4", flexible="4+")
class OffsetForLeaderEpochRequest:
    replica_id: Int32 = field("3+", default=-2)
    topics: list[OffsetForLeaderTopic]


@struct
class OffsetForLeaderTopic:
    topic: str
    partitions: list[OffsetForLeaderPartition]


@struct
class OffsetForLeaderPartition:
    partition: Int32
    current_leader_epoch: Int32 = field("2+", default=-1)
    leader_epoch: Int32


@response(key=23, versions="0-4", flexible="4+")
class OffsetForLeaderEpochResponse:
    throttle_time_ms: Int32 = field("2+", default=0)
    topics: list[OffsetForLeaderTopicResult]


@struct
class OffsetForLeaderTopicResult:
    topic: str
    partitions: list[EpochEndOffset]


@struct
class EpochEndOffset:
    error_code: Int16
    partition: Int32
    leader_epoch: Int32 = field("1+", default=-1)
    end_offset: Int64 = -1
