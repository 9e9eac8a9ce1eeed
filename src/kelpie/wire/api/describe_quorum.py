"""DescribeQuorum (api key 55): state of the controllers' Raft quorum.

v0   the beginning; flexible
v1   response + last_fetch_timestamp, last_caught_up_timestamp (KIP-836)
v2   response + error_message, replica_directory_id, nodes (KIP-853)
"""

from __future__ import annotations

from kelpie.wire.schema import NO_UUID, Int16, Int32, Int64, Uuid, field, request, response, struct
from kelpie.wire.structs import VoterListener


@request(key=55, versions="0-2", flexible="0+")
class DescribeQuorumRequest:
    topics: list[RequestTopicData]


@struct
class RequestTopicData:
    topic_name: str
    partitions: list[RequestPartitionData]


@struct
class RequestPartitionData:
    partition_index: Int32


@response(key=55, versions="0-2", flexible="0+")
class DescribeQuorumResponse:
    error_code: Int16
    error_message: str | None = field("2+", default="")
    topics: list[ResponseTopicData]
    nodes: list[QuorumNode] = field("2+", default=[])


@struct
class ResponseTopicData:
    topic_name: str
    partitions: list[ResponsePartitionData]


@struct
class ResponsePartitionData:
    partition_index: Int32
    error_code: Int16
    error_message: str | None = field("2+", default="")
    leader_id: Int32
    leader_epoch: Int32
    high_watermark: Int64
    current_voters: list[QuorumReplica]
    observers: list[QuorumReplica]


@struct
class QuorumReplica:
    replica_id: Int32
    replica_directory_id: Uuid = field("2+", default=NO_UUID)
    log_end_offset: Int64
    last_fetch_timestamp: Int64 = field("1+", default=-1)
    last_caught_up_timestamp: Int64 = field("1+", default=-1)


@struct
class QuorumNode:
    node_id: Int32
    listeners: list[VoterListener]
