"""EndTxn (api key 26): commit or abort a transaction.

v0   the beginning
v1   no new field; the broker answers first and throttles after (KIP-219)
v2   no new field; PRODUCER_FENCED may be answered
v3   flexible
v4   no new field; TRANSACTION_ABORTABLE may be answered (KIP-890)
v5   the epoch grows with every transaction (KIP-890): response + producer_id, producer_epoch
"""

from __future__ import annotations

from kelpie.wire.schema import Int16, Int32, Int64, field, request, response


@request(key=26, versions="0-5", flexible="3+")
class EndTxnRequest:
    transactional_id: str
    producer_id: Int64
    producer_epoch: Int16
    committed: bool


@response(key=26, versions="0-5", flexible="3+")
class EndTxnResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16
    producer_id: Int64 = field("5+", default=-1)
    producer_epoch: Int16 = field("5+", default=-1)
