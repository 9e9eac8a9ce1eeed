"""DeleteRecords (api key 21): delete records below an offset.

v0   the beginning
v1   no new field; the broker answers first and throttles after (KIP-219)
v2   flexible
"""

from __future__ import annotations

from kelpie.wire.schema import Int16, Int32, Int64, request, response, struct


@request(key=21, versions="0-2", flexible="2+")
class DeleteRecordsRequest:
    topics: list[DeleteRecordsTopic]
    timeout_ms: Int32


@struct
class DeleteRecordsTopic:
    name: str
    partitions: list[DeleteRecordsPartition]


@struct
class DeleteRecordsPartition:
    partition_index: Int32
    offset: Int64


@response(key=21, versions="0-2", flexible="2+")
class DeleteRecordsResponse:
    throttle_time_ms: Int32 = 0
    topics: list[DeleteRecordsTopicResult]


@struct
class DeleteRecordsTopicResult:
    name: str
    partitions: list[DeleteRecordsPartitionResult]


@struct
class DeleteRecordsPartitionResult:
    partition_index: Int32
    low_watermark: Int64
    error_code: Int16
