"""ListPartitionReassignments (api key 46): moves of replicas that are under way.

v0   the only version; flexible
"""

from __future__ import annotations

from kelpie.wire.schema import Int16, Int32, request, response, struct
from kelpie.wire.structs import TopicPartitionIndexes


@request(key=46, versions="0", flexible="0+")
class ListPartitionReassignmentsRequest:
    timeout_ms: Int32 = 60000
    topics: list[TopicPartitionIndexes] | None = None


@response(key=46, versions="0", flexible="0+")
class ListPartitionReassignmentsResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: str | None = None
    topics: list[OngoingTopicReassignment]


@struct
class OngoingTopicReassignment:
    name: str
    partitions: list[OngoingPartitionReassignment]


@struct
class OngoingPartitionReassignment:
    partition_index: Int32
    replicas: list[Int32]
    adding_replicas: list[Int32]
    removing_replicas: list[Int32]
