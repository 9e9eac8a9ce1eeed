"""OffsetCommit (api key 8): store how far a group has read.

v0   offsets go to ZooKeeper
v1   offsets go to the coordinator: request + generation_id_or_member_epoch, member_id, commit_timestamp
v2   one retention time for all offsets: request + retention_time_ms; request − commit_timestamp
v3   response + throttle_time_ms
v4   no new field; the broker answers first and throttles after (KIP-219)
v5   only brokers set the retention (KIP-211): request − retention_time_ms
v6   request + committed_leader_epoch (KIP-320)
v7   static members (KIP-345): request + group_instance_id
v8   flexible
v9   no new field; members of the newer protocol may commit, GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH
     may be answered (KIP-848)
v10  topics are named by id: request + topic_id; request − name; response + topic_id; response − name
"""

from __future__ import annotations

from kelpie.wire.schema import NO_UUID, Int32, Int64, Uuid, field, request, response, struct
from kelpie.wire.structs import PartitionResult


@request(key=8, versions="0-10", flexible="8+")
class OffsetCommitRequest:
    group_id: str
    generation_id_or_member_epoch: Int32 = field("1+", default=-1)
    member_id: str = field("1+", default="")
    group_instance_id: str | None = field("7+", default=None, strict=True)
    retention_time_ms: Int64 = field("2-4", default=-1)
    topics: list[OffsetCommitRequestTopic]


@struct
class OffsetCommitRequestTopic:
    name: str = field("0-9", default="")
    topic_id: Uuid = field("10+", default=NO_UUID)
    partitions: list[OffsetCommitRequestPartition]


@struct
class OffsetCommitRequestPartition:
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = field("6+", default=-1)
    commit_timestamp: Int64 = field("1", default=-1, strict=True)
    committed_metadata: str | None


@response(key=8, versions="0-10", flexible="8+")
class OffsetCommitResponse:
    throttle_time_ms: Int32 = field("3+", default=0)
    topics: list[OffsetCommitResponseTopic]


@struct
class OffsetCommitResponseTopic:
    name: str = field("0-9", default="")
    topic_id: Uuid = field("10+", default=NO_UUID)
    partitions: list[PartitionResult]
