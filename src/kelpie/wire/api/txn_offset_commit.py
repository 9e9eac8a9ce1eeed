"""TxnOffsetCommit (api key 28): store a group's offsets within a transaction.

v0   the beginning
v1   no new field; the broker answers first and throttles after (KIP-219)
v2   request + committed_leader_epoch (KIP-320)
v3   generation and member are checked (KIP-447): request + generation_id, member_id, group_instance_id;
     flexible
v4   no new field; TRANSACTION_ABORTABLE may be answered (KIP-890)
v5   no new field; the request adds the group to the transaction (KIP-890)
"""

from __future__ import annotations

from kelpie.wire.schema import Int16, Int32, Int64, field, request, response, struct
from kelpie.wire.structs import TopicResults


@request(key=28, versions="0-5", flexible="3+")
class TxnOffsetCommitRequest:
    transactional_id: str
    group_id: str
    producer_id: Int64
    producer_epoch: Int16
    generation_id: Int32 = field("3+", default=-1, strict=True)
    member_id: str = field("3+", default="", strict=True)
    group_instance_id: str | None = field("3+", default=None, strict=True)
    topics: list[TxnOffsetCommitRequestTopic]


@struct
class TxnOffsetCommitRequestTopic:
    name: str
    partitions: list[TxnOffsetCommitRequestPartition]


@struct
class TxnOffsetCommitRequestPartition:
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = field("2+", default=-1)
    committed_metadata: str | None


@response(key=28, versions="0-5", flexible="3+")
class TxnOffsetCommitResponse:
    throttle_time_ms: Int32 = 0
    topics: list[TopicResults]
