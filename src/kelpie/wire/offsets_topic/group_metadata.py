"""Classic groups in `__consumer_offsets`: record type 2.

Only the selected protocol's subscription of each member is kept. A group without members has neither protocol
nor leader. Kafka 4 also writes such a record, of generation 0, when a join creates the group.

v0   Kafka 0.9, 0.10.0
v1   member + rebalance_timeout: 0.10.1
v2   + current_state_timestamp: 2.1
v3   member + group_instance_id: 2.3 and later
v4   flexible; readable since 3.4.1, not written by any release so far
"""

from __future__ import annotations

from kelpie.wire.schema import Int32, Int64, data, field, struct


@data(versions="0")
class GroupMetadataKey:
    group: str


@data(versions="0-4", flexible="4+")
class GroupMetadataValue:
    protocol_type: str
    generation: Int32
    protocol: str | None
    leader: str | None
    current_state_timestamp: Int64 = field("2+", default=-1)
    members: list[MemberMetadata]


@struct
class MemberMetadata:
    member_id: str
    group_instance_id: str | None = field("3+", default=None)
    client_id: str
    client_host: str
    rebalance_timeout: Int32 = field("1+", default=-1)
    session_timeout: Int32
    subscription: bytes
    assignment: bytes
