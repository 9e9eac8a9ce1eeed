"""Metadata (api key 3): brokers, topics, partitions, leaders: what a client needs to know first.

v0   the beginning
v1   null topics ask for all; an empty list for none: response + rack, controller_id, is_internal
v2   response + cluster_id
v3   response + throttle_time_ms
v4   request + allow_auto_topic_creation
v5   response + offline_replicas
v6   no new field; the broker answers first and throttles after (KIP-219)
v7   response + leader_epoch (KIP-320)
v8   request + include_cluster_authorized_operations, include_topic_authorized_operations; response +
     topic_authorized_operations, cluster_authorized_operations (KIP-430)
v9   flexible
v10  topics have ids (KIP-516): request + topic_id; response + topic_id
v11  operations on the cluster moved to DescribeCluster (KIP-700): request −
     include_cluster_authorized_operations; response − cluster_authorized_operations
v12  no new field; topics may be asked for by id
v13  one error for the whole answer: response + error_code
"""

from __future__ import annotations

from kelpie.wire.schema import NO_UUID, Int16, Int32, Uuid, field, request, response, struct


@request(key=3, versions="0-13", flexible="9+")
class MetadataRequest:
    topics: list[MetadataRequestTopic] | None = field(nullable="1+")
    allow_auto_topic_creation: bool = field("4+", default=True, strict=True)
    include_cluster_authorized_operations: bool = field("8-10", default=False, strict=True)
    include_topic_authorized_operations: bool = field("8+", default=False, strict=True)


@struct
class MetadataRequestTopic:
    topic_id: Uuid = field("10+", default=NO_UUID)
    name: str | None = field(nullable="10+")


@response(key=3, versions="0-13", flexible="9+")
class MetadataResponse:
    throttle_time_ms: Int32 = field("3+", default=0)
    brokers: list[MetadataResponseBroker]
    cluster_id: str | None = field("2+", default=None)
    controller_id: Int32 = field("1+", default=-1)
    topics: list[MetadataResponseTopic]
    cluster_authorized_operations: Int32 = field("8-10", default=-2147483648)
    error_code: Int16 = field("13+", default=0)


@struct
class MetadataResponseBroker:
    node_id: Int32
    host: str
    port: Int32
    rack: str | None = field("1+", default=None)


@struct
class MetadataResponseTopic:
    error_code: Int16
    name: str | None = field(nullable="12+")
    topic_id: Uuid = field("10+", default=NO_UUID)
    is_internal: bool = field("1+", default=False)
    partitions: list[MetadataResponsePartition]
    topic_authorized_operations: Int32 = field("8+", default=-2147483648)


@struct
class MetadataResponsePartition:
    error_code: Int16
    partition_index: Int32
    leader_id: Int32
    leader_epoch: Int32 = field("7+", default=-1)
    replica_nodes: list[Int32]
    isr_nodes: list[Int32]
    offline_replicas: list[Int32] = field("5+", default=[])
