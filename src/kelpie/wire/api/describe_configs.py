"""DescribeConfigs (api key 32): settings of topics, brokers and groups, and where each comes from.

v0   the beginning
v1   request + include_synonyms; response + config_source, synonyms; response − is_default (KIP-226)
v2   no new field; the broker answers first and throttles after (KIP-219)
v3   request + include_documentation; response + config_type, documentation (KIP-569)
v4   flexible
"""

from __future__ import annotations

from kelpie.wire.schema import Int8, Int16, Int32, field, request, response, struct


@request(key=32, versions="0-4", flexible="4+")
class DescribeConfigsRequest:
    resources: list[DescribeConfigsResource]
    include_synonyms: bool = field("1+", default=False, strict=True)
    include_documentation: bool = field("3+", default=False, strict=True)


@struct
class DescribeConfigsResource:
    resource_type: Int8
    resource_name: str
    configuration_keys: list[str] | None


@response(key=32, versions="0-4", flexible="4+")
class DescribeConfigsResponse:
    throttle_time_ms: Int32 = 0
    results: list[DescribeConfigsResult]


@struct
class DescribeConfigsResult:
    error_code: Int16
    error_message: str | None = None
    resource_type: Int8
    resource_name: str
    configs: list[DescribeConfigsResourceResult]


@struct
class DescribeConfigsResourceResult:
    name: str
    value: str | None
    read_only: bool
    is_default: bool = field("0", default=False)
    config_source: Int8 = field("1+", default=-1)
    is_sensitive: bool
    synonyms: list[DescribeConfigsSynonym] = field("1+", default=[])
    config_type: Int8 = field("3+", default=0)
    documentation: str | None = field("3+", default="")


@struct
class DescribeConfigsSynonym:
    name: str
    value: str | None
    source: Int8
