"""CreatePartitions (api key 37): add partitions to topics.

v0   the beginning
v1   no new field; the broker answers first and throttles after (KIP-219)
v2   flexible
v3   no new field; THROTTLING_QUOTA_EXCEEDED may be answered (KIP-599)
"""

from __future__ import annotations

from kelpie.wire.schema import Int16, Int32, request, response, struct


@request(key=37, versions="0-3", flexible="2+")
class CreatePartitionsRequest:
    topics: list[CreatePartitionsTopic]
    timeout_ms: Int32
    validate_only: bool


@struct
class CreatePartitionsTopic:
    name: str
    count: Int32
    assignments: list[CreatePartitionsAssignment] | None


@struct
class CreatePartitionsAssignment:
    broker_ids: list[Int32]


@response(key=37, versions="0-3", flexible="2+")
class CreatePartitionsResponse:
    throttle_time_ms: Int32 = 0
    results: list[CreatePartitionsTopicResult]


@struct
class CreatePartitionsTopicResult:
    name: str
    error_code: Int16
    error_message: str | None = None
