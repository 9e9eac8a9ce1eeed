"""ListTransactions (api key 66): transactions that one broker coordinates.

v0   the beginning; flexible
v1   request + duration_filter (KIP-994)
v2   request + transactional_id_pattern (KIP-1152)
"""

from __future__ import annotations

from kelpie.wire.schema import Int16, Int32, Int64, field, request, response, struct


@request(key=66, versions="0-2", flexible="0+")
class ListTransactionsRequest:
    state_filters: list[str]
    producer_id_filters: list[Int64]
    duration_filter: Int64 = field("1+", default=-1, strict=True)
    transactional_id_pattern: str | None = field("2+", default=None, strict=True)


@response(key=66, versions="0-2", flexible="0+")
class ListTransactionsResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16
    unknown_state_filters: list[str]
    transaction_states: list[ListedTransaction]


@struct
class ListedTransaction:
    transactional_id: str
    producer_id: Int64
    transaction_state: str
