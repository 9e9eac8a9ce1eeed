"""DescribeProducers (api key 61): the active producers of a partition, with their open transactions.

v0   the only version; flexible
"""

from __future__ import annotations

from kelpie.wire.schema import Int16, Int32, Int64, request, response, struct
from kelpie.wire.structs import TopicPartitionIndexes


@request(key=61, versions="0", flexible="0+")
class DescribeProducersRequest:
    topics: list[TopicPartitionIndexes]


@response(key=61, versions="0", flexible="0+")
class DescribeProducersResponse:
    throttle_time_ms: Int32 = 0
    topics: list[TopicResponse]


@struct
class TopicResponse:
    name: str
    partitions: list[PartitionResponse]


@struct
class PartitionResponse:
    partition_index: Int32
    error_code: Int16
    error_message: str | None = None
    active_producers: list[ProducerState]


@struct
class ProducerState:
    producer_id: Int64
    producer_epoch: Int32
    last_sequence: Int32 = -1
    last_timestamp: Int64 = -1
    coordinator_epoch: Int32
    current_txn_start_offset: Int64 = -1
