"""ConsumerGroupDescribe (api key 69): state and members of groups of the newer protocol (KIP-848).

v0   the beginning; flexible
v1   classic members in such a group are marked (KIP-1099): response + member_type
"""

from __future__ import annotations

from kelpie.wire.schema import Int8, Int16, Int32, field, request, response, struct
from kelpie.wire.structs import DescribedAssignment


@request(key=69, versions="0-1", flexible="0+")
class ConsumerGroupDescribeRequest:
    group_ids: list[str]
    include_authorized_operations: bool


@response(key=69, versions="0-1", flexible="0+")
class ConsumerGroupDescribeResponse:
    throttle_time_ms: Int32 = 0
    groups: list[DescribedConsumerGroup]


@struct
class DescribedConsumerGroup:
    error_code: Int16
    error_message: str | None = None
    group_id: str
    group_state: str
    group_epoch: Int32
    assignment_epoch: Int32
    assignor_name: str
    members: list[ConsumerGroupDescribeMember]
    authorized_operations: Int32 = -2147483648


@struct
class ConsumerGroupDescribeMember:
    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    member_epoch: Int32
    client_id: str
    client_host: str
    subscribed_topic_names: list[str]
    subscribed_topic_regex: str | None = None
    assignment: DescribedAssignment
    target_assignment: DescribedAssignment
    member_type: Int8 = field("1+", default=-1)
