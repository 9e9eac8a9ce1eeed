"""StreamsGroupDescribe (api key 89): state, topology and members of groups of the Streams protocol, KIP-1071.

v0   the only version (Kafka 4.1); flexible
"""

from __future__ import annotations

from kelpie.wire.schema import Int16, Int32, request, response, struct
from kelpie.wire.structs import KeyValue, StreamsEndpoint, StreamsTopicInfo, TaskIds, TaskOffset


@request(key=89, versions="0", flexible="0+")
class StreamsGroupDescribeRequest:
    group_ids: list[str]
    include_authorized_operations: bool


@response(key=89, versions="0", flexible="0+")
class StreamsGroupDescribeResponse:
    throttle_time_ms: Int32 = 0
    groups: list[DescribedStreamsGroup]


@struct
class DescribedStreamsGroup:
    error_code: Int16
    error_message: str | None = None
    group_id: str
    group_state: str
    group_epoch: Int32
    assignment_epoch: Int32
    topology: DescribedTopology | None = None
    members: list[StreamsGroupDescribeMember]
    authorized_operations: Int32 = -2147483648


@struct
class DescribedTopology:
    epoch: Int32
    subtopologies: list[DescribedSubtopology] | None


@struct
class DescribedSubtopology:
    subtopology_id: str
    source_topics: list[str]
    repartition_sink_topics: list[str]
    state_changelog_topics: list[StreamsTopicInfo]
    repartition_source_topics: list[StreamsTopicInfo]


@struct
class StreamsGroupDescribeMember:
    member_id: str
    member_epoch: Int32
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str
    client_host: str
    topology_epoch: Int32
    process_id: str
    user_endpoint: StreamsEndpoint | None = None
    client_tags: list[KeyValue]
    task_offsets: list[TaskOffset]
    task_end_offsets: list[TaskOffset]
    assignment: TaskAssignment
    target_assignment: TaskAssignment
    is_classic: bool


@struct
class TaskAssignment:
    active_tasks: list[TaskIds]
    standby_tasks: list[TaskIds]
    warmup_tasks: list[TaskIds]
