"""ConsumerGroupHeartbeat (api key 68): the single request of the newer group protocol (KIP-848): join, stay,
leave, reconcile.

v0   the beginning; flexible
v1   members choose their id; topics by regular expression: request + subscribed_topic_regex
"""

from __future__ import annotations

from kelpie.wire.schema import Int16, Int32, field, request, response, struct
from kelpie.wire.structs import TopicIdPartitions


@request(key=68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatRequest:
    group_id: str
    member_id: str
    member_epoch: Int32
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: Int32 = -1
    subscribed_topic_names: list[str] | None = None
    subscribed_topic_regex: str | None = field("1+", default=None, strict=True)
    server_assignor: str | None = None
    topic_partitions: list[TopicIdPartitions] | None = None


@response(key=68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: Int32
    heartbeat_interval_ms: Int32
    assignment: HeartbeatAssignment | None = None


@struct
class HeartbeatAssignment:
    topic_partitions: list[TopicIdPartitions]
