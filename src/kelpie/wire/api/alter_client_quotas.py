"""AlterClientQuotas (api key 49): change client quotas.

v0   the beginning
v1   flexible
"""

from __future__ import annotations

from kelpie.wire.schema import Float64, Int16, Int32, request, response, struct
from kelpie.wire.structs import QuotaEntity


@request(key=49, versions="0-1", flexible="1+")
class AlterClientQuotasRequest:
    entries: list[RequestEntryData]
    validate_only: bool


@struct
class RequestEntryData:
    entity: list[QuotaEntity]
    ops: list[OpData]


@struct
class OpData:
    key: str
    value: Float64
    remove: bool


@response(key=49, versions="0-1", flexible="1+")
class AlterClientQuotasResponse:
    throttle_time_ms: Int32 = 0
    entries: list[ResponseEntryData]


@struct
class ResponseEntryData:
    error_code: Int16
    error_message: str | None = None
    entity: list[QuotaEntity]
