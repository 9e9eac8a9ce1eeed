"""AlterConfigs (api key 33): replace all settings of a resource.

v0   the beginning
v1   no new field; the broker answers first and throttles after (KIP-219)
v2   flexible
"""

from __future__ import annotations

from kelpie.wire.schema import Int8, Int32, request, response, struct
from kelpie.wire.structs import AlterConfigsResourceResponse


@request(key=33, versions="0-2", flexible="2+")
class AlterConfigsRequest:
    resources: list[AlterConfigsResource]
    validate_only: bool


@struct
class AlterConfigsResource:
    resource_type: Int8
    resource_name: str
    configs: list[AlterableConfig]


@struct
class AlterableConfig:
    name: str
    value: str | None


@response(key=33, versions="0-2", flexible="2+")
class AlterConfigsResponse:
    throttle_time_ms: Int32 = 0
    responses: list[AlterConfigsResourceResponse]
