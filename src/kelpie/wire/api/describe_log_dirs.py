"""DescribeLogDirs (api key 35): log directories of a broker, their sizes and replicas.

v0   the beginning
v1   no new field; the broker answers first and throttles after (KIP-219)
v2   flexible
v3   response + error_code (KIP-784)
v4   response + total_bytes, usable_bytes (KIP-827)
v5   response + is_cordoned (KIP-1066)
"""

from __future__ import annotations

from kelpie.wire.schema import Int16, Int32, Int64, field, request, response, struct
from kelpie.wire.structs import TopicPartitions


@request(key=35, versions="0-5", flexible="2+")
class DescribeLogDirsRequest:
    topics: list[TopicPartitions] | None


@response(key=35, versions="0-5", flexible="2+")
class DescribeLogDirsResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = field("3+", default=0)
    results: list[DescribeLogDirsResult]


@struct
class DescribeLogDirsResult:
    error_code: Int16
    log_dir: str
    topics: list[DescribeLogDirsTopic]
    total_bytes: Int64 = field("4+", default=-1)
    usable_bytes: Int64 = field("4+", default=-1)
    is_cordoned: bool = field("5+", default=False)


@struct
class DescribeLogDirsTopic:
    name: str
    partitions: list[DescribeLogDirsPartition]


@struct
class DescribeLogDirsPartition:
    partition_index: Int32
    partition_size: Int64
    offset_lag: Int64
    is_future_key: bool
