"""ShareGroupHeartbeat (api key 76): a member of a share group joins, stays and leaves (KIP-932).

v1   the first released version (Kafka 4.1); flexible
"""

from __future__ import annotations

from kelpie.wire.schema import Int16, Int32, request, response, struct
from kelpie.wire.structs import TopicIdPartitions


@request(key=76, versions="1", flexible="0+")
class ShareGroupHeartbeatRequest:
    group_id: str
    member_id: str
    member_epoch: Int32
    rack_id: str | None = None
    subscribed_topic_names: list[str] | None = None


@response(key=76, versions="1", flexible="0+")
class ShareGroupHeartbeatResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: Int32
    heartbeat_interval_ms: Int32
    assignment: ShareAssignment | None = None


@struct
class ShareAssignment:
    topic_partitions: list[TopicIdPartitions]
