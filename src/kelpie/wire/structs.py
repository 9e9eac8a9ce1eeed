"""Structs that several messages of the protocol share."""

from __future__ import annotations

from kelpie.wire.schema import Int8, Int16, Int32, Int64, UInt16, Uuid, struct


@struct
class LeaderIdAndEpoch:
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


@struct
class NodeEndpoint:
    node_id: Int32
    host: str
    port: Int32
    rack: str | None = None


@struct
class AlterConfigsResourceResponse:
    error_code: Int16
    error_message: str | None = None
    resource_type: Int8
    resource_name: str


@struct
class VoterListener:
    name: str
    host: str
    port: UInt16


@struct
class PartitionResult:
    partition_index: Int32
    error_code: Int16


@struct
class TopicResults:
    name: str
    partitions: list[PartitionResult]


@struct
class TopicPartitions:
    topic: str
    partitions: list[Int32]


@struct
class TopicIdPartitions:
    topic_id: Uuid
    partitions: list[Int32]


@struct
class NamedTopicPartitions:
    name: str
    partitions: list[Int32]


@struct
class TopicPartitionIndexes:
    name: str
    partition_indexes: list[Int32]


@struct
class QuotaEntity:
    entity_type: str
    entity_name: str | None


@struct
class Principal:
    principal_type: str
    principal_name: str


@struct
class DescribedTopicPartitions:
    topic_id: Uuid
    topic_name: str
    partitions: list[Int32]


@struct
class DescribedAssignment:
    topic_partitions: list[DescribedTopicPartitions]


@struct
class KeyValue:
    key: str
    value: str


@struct
class StreamsTopicInfo:
    name: str
    partitions: Int32
    replication_factor: Int16
    topic_configs: list[KeyValue]


@struct
class StreamsEndpoint:
    host: str
    port: UInt16


@struct
class TaskIds:
    subtopology_id: str
    partitions: list[Int32]


@struct
class TaskOffset:
    subtopology_id: str
    partition: Int32
    offset: Int64
