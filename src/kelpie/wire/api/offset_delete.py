"""OffsetDelete (api key 47): delete committed offsets of a group.

v0   the only version
"""

from __future__ import annotations

from kelpie.wire.schema import Int16, Int32, request, response, struct
from kelpie.wire.structs import TopicResults


@request(key=47, versions="0")
class OffsetDeleteRequest:
    group_id: str
    topics: list[OffsetDeleteRequestTopic]


@struct
class OffsetDeleteRequestTopic:
    name: str
    partitions: list[OffsetDeleteRequestPartition]


@struct
class OffsetDeleteRequestPartition:
    partition_index: Int32


@response(key=47, versions="0")
class OffsetDeleteResponse:
    error_code: Int16
    throttle_time_ms: Int32 = 0
    topics: list[TopicResults]
