"""JoinGroup (api key 11): become a member of a group, or take part in its next generation.

v0   the beginning
v1   the rebalance timeout is no longer the session timeout (KIP-62): request + rebalance_timeout_ms
v2   response + throttle_time_ms
v3   no new field; the broker answers first and throttles after (KIP-219)
v4   no new field; the first answer is MEMBER_ID_REQUIRED, with the id for the next join (KIP-394)
v5   static members (KIP-345): request + group_instance_id; response + group_instance_id
v6   flexible
v7   response + protocol_type (KIP-559)
v8   request + reason (KIP-800)
v9   response + skip_assignment (KIP-814)
"""

from __future__ import annotations

from kelpie.wire.schema import Int16, Int32, field, request, response, struct


@request(key=11, versions="0-9", flexible="6+")
class JoinGroupRequest:
    group_id: str
    session_timeout_ms: Int32
    rebalance_timeout_ms: Int32 = field("1+", default=-1)
    member_id: str
    group_instance_id: str | None = field("5+", default=None, strict=True)
    protocol_type: str
    protocols: list[JoinGroupRequestProtocol]
    reason: str | None = field("8+", default=None)


@struct
class JoinGroupRequestProtocol:
    name: str
    metadata: bytes


@response(key=11, versions="0-9", flexible="6+")
class JoinGroupResponse:
    throttle_time_ms: Int32 = field("2+", default=0)
    error_code: Int16
    generation_id: Int32 = -1
    protocol_type: str | None = field("7+", default=None)
    protocol_name: str | None = field(nullable="7+")
    leader: str
    skip_assignment: bool = field("9+", default=False)
    member_id: str
    members: list[JoinGroupResponseMember]


@struct
class JoinGroupResponseMember:
    member_id: str
    group_instance_id: str | None = field("5+", default=None)
    metadata: bytes
