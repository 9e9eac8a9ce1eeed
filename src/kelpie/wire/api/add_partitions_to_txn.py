"""AddPartitionsToTxn (api key 24): partitions join a transaction.

v0   the beginning
v1   no new field; the broker answers first and throttles after (KIP-219)
v2   no new field; PRODUCER_FENCED may be answered
v3   flexible
v4   brokers verify many transactions at once (KIP-890): request + transactions; request −
     v3_and_below_transactional_id, v3_and_below_producer_id, v3_and_below_producer_epoch,
     v3_and_below_topics; response + error_code, results_by_transaction; response −
     results_by_topic_v3_and_below
v5   no new field; TRANSACTION_ABORTABLE may be answered
"""

from __future__ import annotations

from kelpie.wire.schema import Int16, Int32, Int64, field, request, response, struct
from kelpie.wire.structs import NamedTopicPartitions


@request(key=24, versions="0-5", flexible="3+")
class AddPartitionsToTxnRequest:
    transactions: list[AddPartitionsToTxnTransaction] = field("4+", default=[], strict=True)
    v3_and_below_transactional_id: str = field("0-3", default="", strict=True)
    v3_and_below_producer_id: Int64 = field("0-3", default=0, strict=True)
    v3_and_below_producer_epoch: Int16 = field("0-3", default=0, strict=True)
    v3_and_below_topics: list[NamedTopicPartitions] = field("0-3", default=[], strict=True)


@struct
class AddPartitionsToTxnTransaction:
    transactional_id: str
    producer_id: Int64
    producer_epoch: Int16
    verify_only: bool = False
    topics: list[NamedTopicPartitions]


@response(key=24, versions="0-5", flexible="3+")
class AddPartitionsToTxnResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = field("4+", default=0)
    results_by_transaction: list[AddPartitionsToTxnResult] = field("4+", default=[])
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = field("0-3", default=[])


@struct
class AddPartitionsToTxnResult:
    transactional_id: str
    topic_results: list[AddPartitionsToTxnTopicResult]


@struct
class AddPartitionsToTxnTopicResult:
    name: str
    results_by_partition: list[AddPartitionsToTxnPartitionResult]


@struct
class AddPartitionsToTxnPartitionResult:
    partition_index: Int32
    partition_error_code: Int16
