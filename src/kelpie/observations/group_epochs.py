"""Groups of KIP-848 in the offsets topic: record types 3 to 8, folded into one Generation per epoch.

A classic group is one record. A KIP-848 group is many: its epoch (3), a record per member (5), the target
assignment's epoch (6), per member the target (7) and what it has (8). The coordinator writes what belongs
together in one batch, so a generation is handed out at the end of the batch that brought a new epoch. Since
4.3 it may compute the target some time after the epoch: then the generation is handed out again with it.

Assignments name topics by id. The name is known from commits (since 4.1 they carry the id), from type 4 (up
to 4.0), or, where a member subscribes to a single topic and has partitions of a single id, from that. An id
that stays unknown is written as Kafka prints it.
"""

import base64
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations.groups import CONSUMER, Generation, GroupRemoved, Member
from kelpie.wire.offsets_topic import RecordType
from kelpie.wire.offsets_topic.consumer_group import ConsumerGroupMemberMetadataValue

PartitionsById = list[tuple[bytes, list[int]]]
"""Topic ids, each with partitions of the topic."""


class OffsetsRecord(NamedTuple):
    """A record of the offsets topic, decoded."""

    record_type: int
    key: Any
    value: Any
    offset: int
    at: Instant | None
    where: str


@dataclass(slots=True)
class _GroupRecords:
    epoch: int = -1
    target_epoch: int = -1
    reported: tuple[int, int] = (-1, -1)
    """The last epochs, of group and target, for which there was a row."""
    members: dict[str, ConsumerGroupMemberMetadataValue] = field(default_factory=dict)
    targets: dict[str, PartitionsById] = field(default_factory=dict)
    current: dict[str, PartitionsById] = field(default_factory=dict)
    member_epochs: dict[str, int] = field(default_factory=dict)


class GroupEpochs:
    """All KIP-848 groups of one offsets partition."""

    def __init__(self, topic_names: MutableMapping[bytes, str]) -> None:
        self._names = topic_names
        self._groups: dict[str, _GroupRecords] = {}
        self._advanced: dict[str, tuple[int, Instant | None]] = {}

    def begin_batch(self) -> Mapping[str, tuple[int, Instant | None]]:
        """Returns what will hold, once the batch has been read, the groups with a new epoch in it."""
        self._advanced = {}
        return self._advanced

    def end_batch(self, source: str) -> Iterator[tuple[int, Generation]]:
        """A generation, with the offset of its record, for each group that has a new epoch."""
        for name, (offset, at) in self._advanced.items():
            group = self._groups[name]
            if (group.epoch, group.target_epoch) != group.reported:
                group.reported = group.epoch, group.target_epoch
                yield offset, self._generation(name, group, at, f"{source}@{offset}")

    def group(self, name: str) -> Generation | None:
        """A group as it is after all that was read."""
        group = self._groups.get(name)
        return None if group is None else self._generation(name, group, None, "")

    def owned(self, name: str, member_id: str) -> tuple[TopicPartition, ...]:
        """What a member has, which need not be what it should have yet."""
        group = self._groups[name]
        return tuple(self._named(group.current.get(member_id, []), ()))

    def is_settled(self, name: str) -> bool:
        """Whether every member has what it should have in the group's epoch."""
        group = self._groups.get(name)
        return group is None or all(
            group.member_epochs.get(member_id, -1) >= group.epoch
            and _flat(group.current.get(member_id)) == _flat(group.targets.get(member_id))
            for member_id in group.members
        )

    def record(self, entry: OffsetsRecord) -> GroupRemoved | None:
        """Takes in one record; ignores types that are not of KIP-848 groups."""
        record_type, key, value, offset, at, where = entry
        match record_type:
            case RecordType.CONSUMER_GROUP_METADATA:
                if value is None:
                    self._groups.pop(key.group_id, None)
                    self._advanced.pop(key.group_id, None)
                    return GroupRemoved(key.group_id, at, where)
                self._advance(key.group_id, value.epoch, offset, at)
            case RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA if value is not None:
                self._advance(key.group_id, value.assignment_epoch, offset, at)
                self._group(key).target_epoch = value.assignment_epoch
            case RecordType.CONSUMER_GROUP_PARTITION_METADATA if value is not None:
                self._names.update({topic.topic_id: topic.topic_name for topic in value.topics})
            case RecordType.CONSUMER_GROUP_MEMBER_METADATA:
                _put(self._group(key).members, key.member_id, value)
            case RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER:
                _put(self._group(key).targets, key.member_id, value and _by_topic(value.topic_partitions))
            case RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT:
                group = self._group(key)
                _put(group.current, key.member_id, value and _by_topic(value.assigned_partitions))
                _put(group.member_epochs, key.member_id, value and value.member_epoch)
        return None

    def _group(self, key: Any) -> _GroupRecords:
        return self._groups.setdefault(key.group_id, _GroupRecords())

    def _advance(self, name: str, epoch: int, offset: int, at: Instant | None) -> None:
        group = self._groups.setdefault(name, _GroupRecords())
        group.epoch = max(epoch, group.epoch)
        self._advanced.setdefault(name, (offset, at))

    def _generation(self, name: str, group: _GroupRecords, at: Instant | None, where: str) -> Generation:
        assignors = [member.server_assignor for member in group.members.values() if member.server_assignor]
        return Generation(
            name,
            group.epoch,
            tuple(self._member(member_id, group) for member_id in group.members),
            CONSUMER,
            assignors[0] if assignors else "",
            at=at,
            source=where,
        )

    def _member(self, member_id: str, group: _GroupRecords) -> Member:
        value = group.members[member_id]
        classic = value.classic_member_metadata
        subscribed = tuple(value.subscribed_topic_names)
        by_topic = group.targets.get(member_id, group.current.get(member_id))
        return Member(
            member_id,
            value.client_id,
            value.client_host,
            value.instance_id,
            subscribed if not value.subscribed_topic_regex else None,
            None if by_topic is None else tuple(self._named(by_topic, subscribed)),
            classic.session_timeout_ms if classic is not None else -1,
            value.rebalance_timeout_ms,
            group.member_epochs.get(member_id, -1),
        )

    def _named(self, by_topic: PartitionsById, subscribed: tuple[str, ...]) -> Iterator[TopicPartition]:
        if len(by_topic) == 1 == len(subscribed):
            self._names.setdefault(by_topic[0][0], subscribed[0])
        for topic_id, partitions in by_topic:
            name = self._names.get(topic_id) or topic_id_text(topic_id)
            for partition in partitions:
                yield TopicPartition(name, partition)


def topic_id_text(topic_id: bytes) -> str:
    """As Kafka prints it: "xgmGCwwWRtiKAxDR8E4GEw"."""
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")


def _put(kept: dict[str, Any], key: str, value: Any) -> None:
    if value is None:
        kept.pop(key, None)
    else:
        kept[key] = value


def _flat(by_topic: PartitionsById | None) -> set[tuple[bytes, int]]:
    return {(topic_id, partition) for topic_id, partitions in by_topic or () for partition in partitions}


def _by_topic(entries: list[Any]) -> PartitionsById:
    return [(entry.topic_id, entry.partitions) for entry in entries]
