"""OffsetFetch (api key 9): how far a group has read.

v0   offsets come from ZooKeeper
v1   no new field; offsets come from the coordinator
v2   null topics ask for all offsets of the group: response + error_code
v3   response + throttle_time_ms
v4   no new field; the broker answers first and throttles after (KIP-219)
v5   response + committed_leader_epoch (KIP-320)
v6   flexible
v7   a client can ask for stable offsets only (KIP-447): request + require_stable
v8   many groups in one request (KIP-709): request + groups; request − group_id, topics; response +
     groups; response − topics, error_code
v9   members of the newer protocol (KIP-848): request + member_id, member_epoch
v10  topics are named by id: request + topic_id; request − name; response + topic_id; response − name
"""

from __future__ import annotations

from kelpie.wire.schema import NO_UUID, Int16, Int32, Int64, Uuid, field, request, response, struct


@request(key=9, versions="0-10", flexible="6+")
class OffsetFetchRequest:
    group_id: str = field("0-7", default="", strict=True)
    topics: list[OffsetFetchRequestTopics] | None = field("0-7", nullable="2-7", default=[], strict=True)
    groups: list[OffsetFetchRequestGroup] = field("8+", default=[], strict=True)
    require_stable: bool = field("7+", default=False, strict=True)


@struct
class OffsetFetchRequestGroup:
    group_id: str
    member_id: str | None = field("9+", default=None)
    member_epoch: Int32 = field("9+", default=-1)
    topics: list[OffsetFetchRequestTopics] | None


@struct
class OffsetFetchRequestTopics:
    name: str = field("0-9", default="")
    topic_id: Uuid = field("10+", default=NO_UUID)
    partition_indexes: list[Int32]


@response(key=9, versions="0-10", flexible="6+")
class OffsetFetchResponse:
    throttle_time_ms: Int32 = field("3+", default=0)
    topics: list[OffsetFetchResponseTopics] = field("0-7", default=[])
    error_code: Int16 = field("2-7", default=0)
    groups: list[OffsetFetchResponseGroup] = field("8+", default=[])


@struct
class OffsetFetchResponseGroup:
    group_id: str
    topics: list[OffsetFetchResponseTopics]
    error_code: Int16 = 0


@struct
class OffsetFetchResponseTopics:
    name: str = field("0-9", default="")
    topic_id: Uuid = field("10+", default=NO_UUID)
    partitions: list[OffsetFetchResponsePartitions]


@struct
class OffsetFetchResponsePartitions:
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = field("5+", default=-1)
    metadata: str | None
    error_code: Int16
