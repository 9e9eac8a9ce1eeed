"""SyncGroup (api key 14): the leader sends the assignment, and each member gets its part of it.

v0   the beginning
v1   response + throttle_time_ms
v2   no new field; the broker answers first and throttles after (KIP-219)
v3   static members (KIP-345): request + group_instance_id
v4   flexible
v5   request + protocol_type, protocol_name; response + protocol_type, protocol_name (KIP-559)
"""

from __future__ import annotations

from kelpie.wire.schema import Int16, Int32, field, request, response, struct


@request(key=14, versions="0-5", flexible="4+")
class SyncGroupRequest:
    group_id: str
    generation_id: Int32
    member_id: str
    group_instance_id: str | None = field("3+", default=None, strict=True)
    protocol_type: str | None = field("5+", default=None)
    protocol_name: str | None = field("5+", default=None)
    assignments: list[SyncGroupRequestAssignment]


@struct
class SyncGroupRequestAssignment:
    member_id: str
    assignment: bytes


@response(key=14, versions="0-5", flexible="4+")
class SyncGroupResponse:
    throttle_time_ms: Int32 = field("1+", default=0)
    error_code: Int16
    protocol_type: str | None = field("5+", default=None)
    protocol_name: str | None = field("5+", default=None)
    assignment: bytes
