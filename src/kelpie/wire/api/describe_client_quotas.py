"""DescribeClientQuotas (api key 48): list client quotas.

v0   the beginning
v1   flexible
"""

from __future__ import annotations

from kelpie.wire.schema import Float64, Int8, Int16, Int32, request, response, struct
from kelpie.wire.structs import QuotaEntity


@request(key=48, versions="0-1", flexible="1+")
class DescribeClientQuotasRequest:
    components: list[ComponentData]
    strict: bool


@struct
class ComponentData:
    entity_type: str
    match_type: Int8
    match: str | None


@response(key=48, versions="0-1", flexible="1+")
class DescribeClientQuotasResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: str | None = None
    entries: list[EntryData] | None


@struct
class EntryData:
    entity: list[QuotaEntity]
    values: list[ValueData]


@struct
class ValueData:
    key: str
    value: Float64
