"""WriteTxnMarkers (api key 27): write the markers that end a transaction, from its coordinator to the
leaders.

v0   the beginning
v1   flexible
v2   request + transaction_version (KIP-1228)
"""

from __future__ import annotations

from kelpie.wire.schema import Int8, Int16, Int32, Int64, field, request, response, struct
from kelpie.wire.structs import TopicPartitionIndexes, TopicResults


@request(key=27, versions="0-2", flexible="1+")
class WriteTxnMarkersRequest:
    markers: list[WritableTxnMarker]


@struct
class WritableTxnMarker:
    producer_id: Int64
    producer_epoch: Int16
    transaction_result: bool
    topics: list[TopicPartitionIndexes]
    coordinator_epoch: Int32
    transaction_version: Int8 = field("2+", default=0)


@response(key=27, versions="0-2", flexible="1+")
class WriteTxnMarkersResponse:
    markers: list[WritableTxnMarkerResult]


@struct
class WritableTxnMarkerResult:
    producer_id: Int64
    topics: list[TopicResults]
