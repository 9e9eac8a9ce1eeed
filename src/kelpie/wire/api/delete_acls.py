"""DeleteAcls (api key 31): remove access rules.

v0   the beginning
v1   prefixed patterns (KIP-290): request + pattern_type_filter; response + pattern_type
v2   flexible
v3   no new field; the resource type USER (KIP-373)
"""

from __future__ import annotations

from kelpie.wire.schema import Int8, Int16, Int32, field, request, response, struct


@request(key=31, versions="0-3", flexible="2+")
class DeleteAclsRequest:
    filters: list[DeleteAclsFilter]


@struct
class DeleteAclsFilter:
    resource_type_filter: Int8
    resource_name_filter: str | None
    pattern_type_filter: Int8 = field("1+", default=3, strict=True)
    principal_filter: str | None
    host_filter: str | None
    operation: Int8
    permission_type: Int8


@response(key=31, versions="0-3", flexible="2+")
class DeleteAclsResponse:
    throttle_time_ms: Int32 = 0
    filter_results: list[DeleteAclsFilterResult]


@struct
class DeleteAclsFilterResult:
    error_code: Int16
    error_message: str | None = None
    matching_acls: list[DeleteAclsMatchingAcl]


@struct
class DeleteAclsMatchingAcl:
    error_code: Int16
    error_message: str | None = None
    resource_type: Int8
    resource_name: str
    pattern_type: Int8 = field("1+", default=3)
    principal: str
    host: str
    operation: Int8
    permission_type: Int8
