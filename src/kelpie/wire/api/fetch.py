"""Fetch (api key 1): read records from partitions, by consumers and by follower replicas.

v0   the beginning
v1   response + throttle_time_ms
v2   no new field; records may be of message format 1
v3   request + max_bytes
v4   records may be of message format 2: request + isolation_level; response + last_stable_offset,
     aborted_transactions
v5   request + log_start_offset; response + log_start_offset
v6   no new field; KAFKA_STORAGE_ERROR may be answered
v7   fetch sessions (KIP-227): request + session_id, session_epoch, forgotten_topics_data; response +
     error_code, session_id
v8   no new field; the broker answers first and throttles after (KIP-219)
v9   request + current_leader_epoch (KIP-320)
v10  no new field; records may be compressed with zstd (KIP-110)
v11  reading from the closest replica (KIP-392): request + rack_id; response + preferred_read_replica
v12  the fetch reports truncation (KIP-595): request + cluster_id, last_fetched_epoch; response +
     diverging_epoch, current_leader, snapshot_id; flexible
v13  topics are named by id (KIP-516): request + topic_id; request − topic; response + topic_id; response −
     topic
v14  no new field; OFFSET_MOVED_TO_TIERED_STORAGE may be answered (KIP-405)
v15  request + replica_state; request − replica_id (KIP-903)
v16  response + node_endpoints (KIP-951)
v17  request + replica_directory_id (KIP-853)
v18  request + high_watermark (KIP-1166)
"""

from __future__ import annotations

from kelpie.wire.schema import NO_UUID, Int8, Int16, Int32, Int64, Uuid, field, request, response, struct
from kelpie.wire.structs import LeaderIdAndEpoch, NodeEndpoint


@request(key=1, versions="0-18", flexible="12+")
class FetchRequest:
    cluster_id: str | None = field("12+", tag=0, default=None)
    replica_id: Int32 = field("0-14", default=-1, strict=True)
    replica_state: ReplicaState | None = field("15+", tag=1, default=None)
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32 = field("3+", default=2147483647)
    isolation_level: Int8 = field("4+", default=0)
    session_id: Int32 = field("7+", default=0)
    session_epoch: Int32 = field("7+", default=-1)
    topics: list[FetchTopic]
    forgotten_topics_data: list[ForgottenTopic] = field("7+", default=[], strict=True)
    rack_id: str = field("11+", default="")


@struct
class ReplicaState:
    replica_id: Int32 = -1
    replica_epoch: Int64 = -1


@struct
class FetchTopic:
    topic: str = field("0-12", default="")
    topic_id: Uuid = field("13+", default=NO_UUID)
    partitions: list[FetchPartition]


@struct
class FetchPartition:
    partition: Int32
    current_leader_epoch: Int32 = field("9+", default=-1)
    fetch_offset: Int64
    last_fetched_epoch: Int32 = field("12+", default=-1, strict=True)
    log_start_offset: Int64 = field("5+", default=-1)
    partition_max_bytes: Int32
    replica_directory_id: Uuid = field("17+", tag=0, default=NO_UUID)
    high_watermark: Int64 = field("18+", tag=1, default=9223372036854775807)


@struct
class ForgottenTopic:
    topic: str = field("7-12", default="")
    topic_id: Uuid = field("13+", default=NO_UUID)
    partitions: list[Int32]


@response(key=1, versions="0-18", flexible="12+")
class FetchResponse:
    throttle_time_ms: Int32 = field("1+", default=0)
    error_code: Int16 = field("7+", default=0)
    session_id: Int32 = field("7+", default=0)
    responses: list[FetchableTopicResponse]
    node_endpoints: list[NodeEndpoint] = field("16+", tag=0, default=[])


@struct
class FetchableTopicResponse:
    topic: str = field("0-12", default="")
    topic_id: Uuid = field("13+", default=NO_UUID)
    partitions: list[PartitionData]


@struct
class PartitionData:
    partition_index: Int32
    error_code: Int16
    high_watermark: Int64
    last_stable_offset: Int64 = field("4+", default=-1)
    log_start_offset: Int64 = field("5+", default=-1)
    diverging_epoch: DivergingEpoch | None = field("12+", tag=0, default=None)
    current_leader: LeaderIdAndEpoch | None = field("12+", tag=1, default=None)
    snapshot_id: SnapshotId | None = field("12+", tag=2, default=None)
    aborted_transactions: list[AbortedTransaction] | None = field("4+", default=[])
    preferred_read_replica: Int32 = field("11+", default=-1)
    records: bytes | None


@struct
class DivergingEpoch:
    epoch: Int32 = -1
    end_offset: Int64 = -1


@struct
class SnapshotId:
    end_offset: Int64 = -1
    epoch: Int32 = -1


@struct
class AbortedTransaction:
    producer_id: Int64
    first_offset: Int64
