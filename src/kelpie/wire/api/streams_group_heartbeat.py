"""StreamsGroupHeartbeat (api key 88): a member of a group of the Streams protocol joins, stays, leaves
(KIP-1071).

v0   the only version (Kafka 4.1); flexible
"""

from __future__ import annotations

from kelpie.wire.schema import Int8, Int16, Int32, request, response, struct
from kelpie.wire.structs import (
    KeyValue,
    StreamsEndpoint,
    StreamsTopicInfo,
    TaskIds,
    TaskOffset,
    TopicPartitions,
)


@request(key=88, versions="0", flexible="0+")
class StreamsGroupHeartbeatRequest:
    group_id: str
    member_id: str
    member_epoch: Int32
    endpoint_information_epoch: Int32
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: Int32 = -1
    topology: HeartbeatTopology | None = None
    active_tasks: list[TaskIds] | None = None
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    process_id: str | None = None
    user_endpoint: StreamsEndpoint | None = None
    client_tags: list[KeyValue] | None = None
    task_offsets: list[TaskOffset] | None = None
    task_end_offsets: list[TaskOffset] | None = None
    shutdown_application: bool = False


@struct
class HeartbeatTopology:
    epoch: Int32
    subtopologies: list[HeartbeatSubtopology]


@struct
class HeartbeatSubtopology:
    subtopology_id: str
    source_topics: list[str]
    source_topic_regex: list[str]
    state_changelog_topics: list[StreamsTopicInfo]
    repartition_sink_topics: list[str]
    repartition_source_topics: list[StreamsTopicInfo]
    copartition_groups: list[CopartitionGroup]


@struct
class CopartitionGroup:
    source_topics: list[Int16]
    source_topic_regex: list[Int16]
    repartition_source_topics: list[Int16]


@response(key=88, versions="0", flexible="0+")
class StreamsGroupHeartbeatResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: str | None = None
    member_id: str
    member_epoch: Int32
    heartbeat_interval_ms: Int32
    acceptable_recovery_lag: Int32
    task_offset_interval_ms: Int32
    status: list[StreamsStatus] | None = None
    active_tasks: list[TaskIds] | None = None
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    endpoint_information_epoch: Int32
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = None


@struct
class StreamsStatus:
    status_code: Int8
    status_detail: str


@struct
class EndpointToPartitions:
    user_endpoint: StreamsEndpoint
    active_partitions: list[TopicPartitions]
    standby_partitions: list[TopicPartitions]
