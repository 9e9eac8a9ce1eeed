"""ListGroups (api key 16): the groups that one broker coordinates.

v0   the beginning
v1   response + throttle_time_ms
v2   no new field; the broker answers first and throttles after (KIP-219)
v3   flexible
v4   filter by state (KIP-518): request + states_filter; response + group_state
v5   filter by type (KIP-848): request + types_filter; response + group_type
"""

from __future__ import annotations

from kelpie.wire.schema import Int16, Int32, field, request, response, struct


@request(key=16, versions="0-5", flexible="3+")
class ListGroupsRequest:
    states_filter: list[str] = field("4+", default=[], strict=True)
    types_filter: list[str] = field("5+", default=[], strict=True)


@response(key=16, versions="0-5", flexible="3+")
class ListGroupsResponse:
    throttle_time_ms: Int32 = field("1+", default=0)
    error_code: Int16
    groups: list[ListedGroup]


@struct
class ListedGroup:
    group_id: str
    protocol_type: str
    group_state: str = field("4+", default="")
    group_type: str = field("5+", default="")
