"""DescribeTransactions (api key 65): state of transactions.

v0   the only version; flexible
"""

from __future__ import annotations

from kelpie.wire.schema import Int16, Int32, Int64, request, response, struct
from kelpie.wire.structs import TopicPartitions


@request(key=65, versions="0", flexible="0+")
class DescribeTransactionsRequest:
    transactional_ids: list[str]


@response(key=65, versions="0", flexible="0+")
class DescribeTransactionsResponse:
    throttle_time_ms: Int32 = 0
    transaction_states: list[DescribedTransaction]


@struct
class DescribedTransaction:
    error_code: Int16
    transactional_id: str
    transaction_state: str
    transaction_timeout_ms: Int32
    transaction_start_time_ms: Int64
    producer_id: Int64
    producer_epoch: Int16
    topics: list[TopicPartitions]
