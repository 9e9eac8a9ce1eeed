"""AlterPartitionReassignments (api key 45): move replicas of partitions to other brokers.

v0   the beginning; flexible
v1   request + allow_replication_factor_change; response + allow_replication_factor_change (KIP-860)
"""

from __future__ import annotations

from kelpie.wire.schema import Int16, Int32, field, request, response, struct


@request(key=45, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsRequest:
    timeout_ms: Int32 = 60000
    allow_replication_factor_change: bool = field("1+", default=True, strict=True)
    topics: list[ReassignableTopic]


@struct
class ReassignableTopic:
    name: str
    partitions: list[ReassignablePartition]


@struct
class ReassignablePartition:
    partition_index: Int32
    replicas: list[Int32] | None = None


@response(key=45, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsResponse:
    throttle_time_ms: Int32 = 0
    allow_replication_factor_change: bool = field("1+", default=True)
    error_code: Int16
    error_message: str | None = None
    responses: list[ReassignableTopicResponse]


@struct
class ReassignableTopicResponse:
    name: str
    partitions: list[ReassignablePartitionResponse]


@struct
class ReassignablePartitionResponse:
    partition_index: Int32
    error_code: Int16
    error_message: str | None = None
