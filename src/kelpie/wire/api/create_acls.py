"""CreateAcls (api key 30): add access rules.

v0   the beginning
v1   prefixed patterns (KIP-290): request + resource_pattern_type
v2   flexible
v3   no new field; the resource type USER (KIP-373)
"""

from __future__ import annotations

from kelpie.wire.schema import Int8, Int16, Int32, field, request, response, struct


@request(key=30, versions="0-3", flexible="2+")
class CreateAclsRequest:
    creations: list[AclCreation]


@struct
class AclCreation:
    resource_type: Int8
    resource_name: str
    resource_pattern_type: Int8 = field("1+", default=3, strict=True)
    principal: str
    host: str
    operation: Int8
    permission_type: Int8


@response(key=30, versions="0-3", flexible="2+")
class CreateAclsResponse:
    throttle_time_ms: Int32 = 0
    results: list[AclCreationResult]


@struct
class AclCreationResult:
    error_code: Int16
    error_message: str | None = None
