"""Records of the offsets topic, made by hand."""

from collections.abc import Mapping, Sequence

from kelpie.wire import consumer_protocol
from kelpie.wire.offsets_topic import consumer_group as kip848
from kelpie.wire.offsets_topic import encode_key, encode_value
from kelpie.wire.offsets_topic.group_metadata import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from kelpie.wire.offsets_topic.offset_commit import OffsetCommitKey, OffsetCommitValue
from kelpie.wire.records import Record, write_batch
from kelpie.wire.structs import TopicIdPartitions, TopicPartitions

TOPIC_ID = bytes(range(16))
KeyValue = tuple[bytes, bytes | None]


def commit(
    group: str, offset: int | None, at: int = 1000, partition: int = 0, version: int = 3, **more: object
) -> KeyValue:
    """A committed offset of "orders"; None removes it."""
    key = encode_key(OffsetCommitKey(group=group, topic="orders", partition=partition))
    if offset is None:
        return key, None
    value = OffsetCommitValue(offset=offset, metadata="", commit_timestamp=at, **more)  # type: ignore[arg-type]
    return key, encode_value(value, version)


def generation(
    group: str, number: int, members: Mapping[str, Sequence[int]] = {}, version: int = 3
) -> KeyValue:
    """A generation whose members have partitions of "orders"."""
    subscription = consumer_protocol.encode(consumer_protocol.Subscription(topics=["orders"]), 1)
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=number,
        protocol="range" if members else None,
        leader=next(iter(members), None),
        current_state_timestamp=900 if version >= 2 else -1,
        members=[
            MemberMetadata(
                member_id=member,
                client_id="c",
                client_host="/10.0.0.1",
                rebalance_timeout=300_000 if version >= 1 else -1,
                session_timeout=10_000,
                subscription=subscription,
                assignment=consumer_protocol.encode(
                    consumer_protocol.Assignment(
                        assigned_partitions=[TopicPartitions(topic="orders", partitions=list(partitions))]
                    ),
                    1,
                ),
            )
            for member, partitions in members.items()
        ],
    )
    return encode_key(GroupMetadataKey(group=group)), encode_value(value, version)


def group_removed(group: str) -> KeyValue:
    return encode_key(GroupMetadataKey(group=group)), None


def new_protocol(
    group: str, epoch: int, members: Mapping[str, Sequence[int]], *, topic_id: bytes = TOPIC_ID
) -> list[KeyValue]:
    """A KIP-848 group's write: members, epoch, targets, the targets' epoch, what members have."""
    made: list[KeyValue] = []
    for member in members:
        value = kip848.ConsumerGroupMemberMetadataValue(
            instance_id=None,
            rack_id=None,
            client_id="c",
            client_host="/10.0.0.1",
            subscribed_topic_names=["orders"],
            subscribed_topic_regex="",
            rebalance_timeout_ms=45_000,
            server_assignor="uniform",
        )
        key = kip848.ConsumerGroupMemberMetadataKey(group_id=group, member_id=member)
        made.append((encode_key(key), encode_value(value, 0)))
    made.append(epoch_of(group, epoch))
    for member, partitions in members.items():
        target = kip848.ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=[TopicIdPartitions(topic_id=topic_id, partitions=list(partitions))]
        )
        key7 = kip848.ConsumerGroupTargetAssignmentMemberKey(group_id=group, member_id=member)
        made.append((encode_key(key7), encode_value(target, 0)))
    key6 = kip848.ConsumerGroupTargetAssignmentMetadataKey(group_id=group)
    made.append(
        (
            encode_key(key6),
            encode_value(kip848.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch), 0),
        )
    )
    for member, partitions in members.items():
        current = kip848.ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=epoch,
            previous_member_epoch=epoch - 1,
            state=0,
            assigned_partitions=[kip848.CurrentPartitions(topic_id=topic_id, partitions=list(partitions))],
            partitions_pending_revocation=[],
        )
        key8 = kip848.ConsumerGroupCurrentMemberAssignmentKey(group_id=group, member_id=member)
        made.append((encode_key(key8), encode_value(current, 0)))
    return made


def epoch_of(group: str, epoch: int | None) -> KeyValue:
    key = encode_key(kip848.ConsumerGroupMetadataKey(group_id=group))
    return key, None if epoch is None else encode_value(kip848.ConsumerGroupMetadataValue(epoch=epoch), 0)


def member_gone(group: str, member: str) -> list[KeyValue]:
    keys = (
        kip848.ConsumerGroupCurrentMemberAssignmentKey(group_id=group, member_id=member),
        kip848.ConsumerGroupTargetAssignmentMemberKey(group_id=group, member_id=member),
        kip848.ConsumerGroupMemberMetadataKey(group_id=group, member_id=member),
    )
    return [(encode_key(key), None) for key in keys]


def records(pairs: Sequence[KeyValue], base: int = 0, at: int = 5000) -> list[Record]:
    return [Record(base + index, at, key=key, value=value) for index, (key, value) in enumerate(pairs)]


def batch(pairs: Sequence[KeyValue], base: int = 0, at: int = 5000, **options: object) -> bytes:
    return write_batch(records(pairs, base, at), **options)  # type: ignore[arg-type]
