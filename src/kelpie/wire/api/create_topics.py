"""CreateTopics (api key 19): create topics.

v0   the beginning
v1   request + validate_only; response + error_message
v2   response + throttle_time_ms
v3   no new field; the broker answers first and throttles after (KIP-219)
v4   no new field; −1 asks for the default number of partitions and replicas (KIP-464)
v5   the answer has the settings (KIP-525): response + topic_config_error_code, num_partitions,
     replication_factor, configs; flexible
v6   no new field; THROTTLING_QUOTA_EXCEEDED may be answered (KIP-599)
v7   topics have ids (KIP-516): response + topic_id
"""

from __future__ import annotations

from kelpie.wire.schema import NO_UUID, Int8, Int16, Int32, Uuid, field, request, response, struct


@request(key=19, versions="0-7", flexible="5+")
class CreateTopicsRequest:
    topics: list[CreatableTopic]
    timeout_ms: Int32 = 60000
    validate_only: bool = field("1+", default=False, strict=True)


@struct
class CreatableTopic:
    name: str
    num_partitions: Int32
    replication_factor: Int16
    assignments: list[CreatableReplicaAssignment]
    configs: list[CreatableTopicConfig]


@struct
class CreatableReplicaAssignment:
    partition_index: Int32
    broker_ids: list[Int32]


@struct
class CreatableTopicConfig:
    name: str
    value: str | None


@response(key=19, versions="0-7", flexible="5+")
class CreateTopicsResponse:
    throttle_time_ms: Int32 = field("2+", default=0)
    topics: list[CreatableTopicResult]


@struct
class CreatableTopicResult:
    name: str
    topic_id: Uuid = field("7+", default=NO_UUID)
    error_code: Int16
    error_message: str | None = field("1+", default="")
    topic_config_error_code: Int16 = field("5+", tag=0, default=0)
    num_partitions: Int32 = field("5+", default=-1)
    replication_factor: Int16 = field("5+", default=-1)
    configs: list[CreatableTopicConfigs] | None = field("5+", default=[])


@struct
class CreatableTopicConfigs:
    name: str
    value: str | None
    read_only: bool
    config_source: Int8 = -1
    is_sensitive: bool
