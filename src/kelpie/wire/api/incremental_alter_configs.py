"""IncrementalAlterConfigs (api key 44): change single settings of a resource.

v0   the beginning
v1   flexible
"""

from __future__ import annotations

from kelpie.wire.schema import Int8, Int16, Int32, request, response, struct


@request(key=44, versions="0-1", flexible="1+")
class IncrementalAlterConfigsRequest:
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
    config_operation: Int8
    value: str | None


@response(key=44, versions="0-1", flexible="1+")
class IncrementalAlterConfigsResponse:
    throttle_time_ms: Int32 = 0
    responses: list[AlterConfigsResourceResponse]


@struct
class AlterConfigsResourceResponse:
    error_code: Int16
    error_message: str | None = None
    resource_type: Int8
    resource_name: str
