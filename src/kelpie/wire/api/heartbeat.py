"""Heartbeat (api key 12): a member says that it is alive, and learns of a rebalance.

v0   the beginning
v1   response + throttle_time_ms
v2   no new field; the broker answers first and throttles after (KIP-219)
v3   static members (KIP-345): request + group_instance_id
v4   flexible
"""

from __future__ import annotations

from kelpie.wire.schema import Int16, Int32, field, request, response


@request(key=12, versions="0-4", flexible="4+")
class HeartbeatRequest:
    group_id: str
    generation_id: Int32
    member_id: str
    group_instance_id: str | None = field("3+", default=None, strict=True)


@response(key=12, versions="0-4", flexible="4+")
class HeartbeatResponse:
    throttle_time_ms: Int32 = field("1+", default=0)
    error_code: Int16
