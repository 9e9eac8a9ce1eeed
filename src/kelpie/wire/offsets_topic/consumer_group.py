"""Groups of the newer protocol (KIP-848) in `__consumer_offsets`: record types 3 to 8 and 16.

All values have version 0 and grow by tagged fields. Kafka 3.7 (early access) wrote types 4, 5, 7 and 8 in
other forms under the same version number; they show as malformed.

Type 3   the group's epoch; + metadata_hash (4.1)
Type 4   partition counts and racks of the subscribed topics; since 4.1 only deleted
Type 5   a member; + classic_member_metadata for members that speak the classic protocol
Type 6   the epoch of the target assignment; + assignment_timestamp (4.3)
Type 7   a member's target assignment
Type 8   what a member has and must give back; partitions + assignment_epochs (4.3)
Type 16  the topics that a regular expression matches (4.0)
"""

from __future__ import annotations

from typing import Any

from kelpie.wire.schema import Int8, Int32, Int64, Uuid, data, field, struct
from kelpie.wire.structs import TopicIdPartitions


@data(versions="0")
class ConsumerGroupMetadataKey:
    group_id: str


@data(versions="0", flexible="0+")
class ConsumerGroupMetadataValue:
    epoch: Int32
    metadata_hash: Int64 = field(tag=0, default=0)


@data(versions="0")
class ConsumerGroupPartitionMetadataKey:
    group_id: str


@data(versions="0", flexible="0+")
class ConsumerGroupPartitionMetadataValue:
    topics: list[TopicMetadata]


@struct
class TopicMetadata:
    topic_id: Uuid
    topic_name: str
    num_partitions: Int32
    partition_metadata: list[PartitionMetadata]


@struct
class PartitionMetadata:
    partition: Int32
    racks: list[str]


@data(versions="0")
class ConsumerGroupMemberMetadataKey:
    group_id: str
    member_id: str


@data(versions="0", flexible="0+")
class ConsumerGroupMemberMetadataValue:
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: list[str]
    subscribed_topic_regex: str | None
    rebalance_timeout_ms: Int32 = -1
    server_assignor: str | None
    classic_member_metadata: ClassicMemberMetadata | None = field(tag=0, nullable="0+", default=None)


@struct
class ClassicMemberMetadata:
    session_timeout_ms: Int32
    supported_protocols: list[ClassicProtocol]


@struct
class ClassicProtocol:
    name: str
    metadata: bytes


@data(versions="0")
class ConsumerGroupTargetAssignmentMetadataKey:
    group_id: str


@data(versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMetadataValue:
    assignment_epoch: Int32
    assignment_timestamp: Int64 = field(tag=0, default=0)


@data(versions="0")
class ConsumerGroupTargetAssignmentMemberKey:
    group_id: str
    member_id: str


@data(versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMemberValue:
    topic_partitions: list[TopicIdPartitions]


@data(versions="0")
class ConsumerGroupCurrentMemberAssignmentKey:
    group_id: str
    member_id: str


@data(versions="0", flexible="0+")
class ConsumerGroupCurrentMemberAssignmentValue:
    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: list[CurrentPartitions]
    partitions_pending_revocation: list[CurrentPartitions]


@struct
class CurrentPartitions:
    topic_id: Uuid
    partitions: list[Int32]
    assignment_epochs: list[Int32] | None = field(tag=0, default=None)


@data(versions="0")
class ConsumerGroupRegularExpressionKey:
    group_id: str
    regular_expression: str


@data(versions="0", flexible="0+")
class ConsumerGroupRegularExpressionValue:
    topics: list[str]
    version: Int64
    timestamp: Int64


RECORDS: dict[int, tuple[type[Any], type[Any]]] = {
    3: (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
    4: (ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue),
    5: (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
    6: (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue),
    7: (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
    8: (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
    16: (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
}
"""Key and value by record type."""
