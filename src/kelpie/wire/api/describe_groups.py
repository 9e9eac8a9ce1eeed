"""DescribeGroups (api key 15): state and members of classic groups.

v0   the beginning
v1   response + throttle_time_ms
v2   no new field; the broker answers first and throttles after (KIP-219)
v3   request + include_authorized_operations; response + authorized_operations (KIP-430)
v4   static members (KIP-345): response + group_instance_id
v5   flexible
v6   an absent group is an error with a message (KIP-1043): response + error_message
"""

from __future__ import annotations

from kelpie.wire.schema import Int16, Int32, field, request, response, struct


@request(key=15, versions="0-6", flexible="5+")
class DescribeGroupsRequest:
    groups: list[str]
    include_authorized_operations: bool = field("3+", default=False, strict=True)


@response(key=15, versions="0-6", flexible="5+")
class DescribeGroupsResponse:
    throttle_time_ms: Int32 = field("1+", default=0)
    groups: list[DescribedGroup]


@struct
class DescribedGroup:
    error_code: Int16
    error_message: str | None = field("6+", default=None)
    group_id: str
    group_state: str
    protocol_type: str
    protocol_data: str
    members: list[DescribedGroupMember]
    authorized_operations: Int32 = field("3+", default=-2147483648)


@struct
class DescribedGroupMember:
    member_id: str
    group_instance_id: str | None = field("4+", default=None)
    client_id: str
    client_host: str
    member_metadata: bytes
    member_assignment: bytes
