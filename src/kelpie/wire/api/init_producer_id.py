"""InitProducerId (api key 22): an idempotent or transactional producer gets its id and epoch.

v0   the beginning
v1   no new field; the broker answers first and throttles after (KIP-219)
v2   flexible
v3   an epoch can be raised (KIP-360): request + producer_id, producer_epoch
v4   no new field; PRODUCER_FENCED may be answered
v5   no new field; TRANSACTION_ABORTABLE may be answered (KIP-890)
"""

from __future__ import annotations

from kelpie.wire.schema import Int16, Int32, Int64, field, request, response


@request(key=22, versions="0-5", flexible="2+")
class InitProducerIdRequest:
    transactional_id: str | None
    transaction_timeout_ms: Int32
    producer_id: Int64 = field("3+", default=-1, strict=True)
    producer_epoch: Int16 = field("3+", default=-1, strict=True)


@response(key=22, versions="0-5", flexible="2+")
class InitProducerIdResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16
    producer_id: Int64 = -1
    producer_epoch: Int16
