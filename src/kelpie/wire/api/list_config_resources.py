"""ListConfigResources (api key 74): names of the resources that have settings.

v0   called ListClientMetricsResources before Kafka 4.1; flexible
v1   all resource types (KIP-1142): request + resource_types; response + resource_type
"""

from __future__ import annotations

from kelpie.wire.schema import Int8, Int16, Int32, field, request, response, struct


@request(key=74, versions="0-1", flexible="0+")
class ListConfigResourcesRequest:
    resource_types: list[Int8] = field("1+", default=[], strict=True)


@response(key=74, versions="0-1", flexible="0+")
class ListConfigResourcesResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16
    config_resources: list[ConfigResource]


@struct
class ConfigResource:
    resource_name: str
    resource_type: Int8 = field("1+", default=16)
