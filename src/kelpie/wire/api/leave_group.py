"""LeaveGroup (api key 13): members leave a group.

v0   the beginning
v1   response + throttle_time_ms
v2   no new field; the broker answers first and throttles after (KIP-219)
v3   many members at once (KIP-345): request + members; request − member_id; response + members
v4   flexible
v5   request + reason (KIP-800)
"""

from __future__ import annotations

from kelpie.wire.schema import Int16, Int32, field, request, response, struct


@request(key=13, versions="0-5", flexible="4+")
class LeaveGroupRequest:
    group_id: str
    member_id: str = field("0-2", default="", strict=True)
    members: list[MemberIdentity] = field("3+", default=[], strict=True)


@struct
class MemberIdentity:
    member_id: str
    group_instance_id: str | None = None
    reason: str | None = field("5+", default=None)


@response(key=13, versions="0-5", flexible="4+")
class LeaveGroupResponse:
    throttle_time_ms: Int32 = field("1+", default=0)
    error_code: Int16
    members: list[MemberResponse] = field("3+", default=[])


@struct
class MemberResponse:
    member_id: str
    group_instance_id: str | None
    error_code: Int16
