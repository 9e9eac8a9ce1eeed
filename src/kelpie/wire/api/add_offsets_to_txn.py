"""AddOffsetsToTxn (api key 25): a group's offsets join a transaction.

v0   the beginning
v1   no new field; the broker answers first and throttles after (KIP-219)
v2   no new field; PRODUCER_FENCED may be answered
v3   flexible
v4   no new field; TRANSACTION_ABORTABLE may be answered (KIP-890)
"""

from __future__ import annotations

from kelpie.wire.schema import Int16, Int32, Int64, request, response


@request(key=25, versions="0-4", flexible="3+")
class AddOffsetsToTxnRequest:
    transactional_id: str
    producer_id: Int64
    producer_epoch: Int16
    group_id: str


@response(key=25, versions="0-4", flexible="3+")
class AddOffsetsToTxnResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16
