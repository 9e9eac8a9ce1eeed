"""Produce (api key 0): append records to partitions.

v0   the beginning
v1   response + throttle_time_ms
v2   records may be of message format 1: response + log_append_time_ms
v3   records must be of message format 2: request + transactional_id
v4   no new field; KAFKA_STORAGE_ERROR may be answered
v5   response + log_start_offset
v6   no new field; the broker answers first and throttles after (KIP-219)
v7   no new field; records may be compressed with zstd (KIP-110)
v8   response + record_errors, error_message (KIP-467)
v9   flexible
v10  response + current_leader, node_endpoints (KIP-951)
v11  no new field; TRANSACTION_ABORTABLE may be answered (KIP-890)
v12  no new field; the request adds its partitions to the transaction (KIP-890)
v13  topics are named by id: request + topic_id; request − name; response + topic_id; response − name
"""

from __future__ import annotations

from kelpie.wire.schema import NO_UUID, Int16, Int32, Int64, Uuid, field, request, response, struct
from kelpie.wire.structs import LeaderIdAndEpoch, NodeEndpoint


@request(key=0, versions="0-13", flexible="9+")
class ProduceRequest:
    transactional_id: str | None = field("3+", default=None, strict=True)
    acks: Int16
    timeout_ms: Int32
    topic_data: list[TopicProduceData]


@struct
class TopicProduceData:
    name: str = field("0-12", default="")
    topic_id: Uuid = field("13+", default=NO_UUID)
    partition_data: list[PartitionProduceData]


@struct
class PartitionProduceData:
    index: Int32
    records: bytes | None


@response(key=0, versions="0-13", flexible="9+")
class ProduceResponse:
    responses: list[TopicProduceResponse]
    throttle_time_ms: Int32 = field("1+", default=0)
    node_endpoints: list[NodeEndpoint] = field("10+", tag=0, default=[])


@struct
class TopicProduceResponse:
    name: str = field("0-12", default="")
    topic_id: Uuid = field("13+", default=NO_UUID)
    partition_responses: list[PartitionProduceResponse]


@struct
class PartitionProduceResponse:
    index: Int32
    error_code: Int16
    base_offset: Int64
    log_append_time_ms: Int64 = field("2+", default=-1)
    log_start_offset: Int64 = field("5+", default=-1)
    record_errors: list[BatchIndexAndErrorMessage] = field("8+", default=[])
    error_message: str | None = field("8+", default=None)
    current_leader: LeaderIdAndEpoch | None = field("10+", tag=0, default=None)


@struct
class BatchIndexAndErrorMessage:
    batch_index: Int32
    batch_index_error_message: str | None = None
