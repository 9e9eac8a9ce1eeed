"""IncrementalAlterConfigs (api key 44): change single settings of a resource.

v0   the beginning
v1   flexible
"""

from __future__ import annotations

from kelpie.wire.schema import Int8, Int32, request, response, struct
from kelpie.wire.structs import AlterConfigsResourceResponse


@request(key=44, versions="0-1", flexible="1+")
class IncrementalAlterConfigsRequest:
    resources: list[IncrementalAlterConfigsResource]
    validate_only: bool


@struct
class IncrementalAlterConfigsResource:
    resource_type: Int8
    resource_name: str
    configs: list[ConfigChange]


@struct
class ConfigChange:
    name: str
    config_operation: Int8
    value: str | None


@response(key=44, versions="0-1", flexible="1+")
class IncrementalAlterConfigsResponse:
    throttle_time_ms: Int32 = 0
    responses: list[AlterConfigsResourceResponse]
