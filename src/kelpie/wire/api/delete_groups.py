"""DeleteGroups (api key 42): delete groups that have no members.

v0   the beginning
v1   no new field; the broker answers first and throttles after (KIP-219)
v2   flexible
"""

from __future__ import annotations

from kelpie.wire.schema import Int16, Int32, request, response, struct


@request(key=42, versions="0-2", flexible="2+")
class DeleteGroupsRequest:
    groups_names: list[str]


@response(key=42, versions="0-2", flexible="2+")
class DeleteGroupsResponse:
    throttle_time_ms: Int32 = 0
    results: list[DeletableGroupResult]


@struct
class DeletableGroupResult:
    group_id: str
    error_code: Int16
