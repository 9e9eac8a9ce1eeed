"""ShareGroupDescribe (api key 77): state and members of share groups (KIP-932).

v1   the first released version (Kafka 4.1); flexible
"""

from __future__ import annotations

from kelpie.wire.schema import Int16, Int32, request, response, struct
from kelpie.wire.structs import DescribedAssignment


@request(key=77, versions="1", flexible="0+")
class ShareGroupDescribeRequest:
    group_ids: list[str]
    include_authorized_operations: bool


@response(key=77, versions="1", flexible="0+")
class ShareGroupDescribeResponse:
    throttle_time_ms: Int32 = 0
    groups: list[DescribedShareGroup]


@struct
class DescribedShareGroup:
    error_code: Int16
    error_message: str | None = None
    group_id: str
    group_state: str
    group_epoch: Int32
    assignment_epoch: Int32
    assignor_name: str
    members: list[ShareGroupDescribeMember]
    authorized_operations: Int32 = -2147483648


@struct
class ShareGroupDescribeMember:
    member_id: str
    rack_id: str | None = None
    member_epoch: Int32
    client_id: str
    client_host: str
    subscribed_topic_names: list[str]
    assignment: DescribedAssignment
