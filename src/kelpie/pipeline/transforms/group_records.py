"""Rows of `group_metadata` as observations: nothing here reads bytes, for the intake has decoded each record.

The record of a classic group is a generation. Records of a KIP-848 group become entries for the fold of
`observations.group_epochs`, which the doctor uses as well.
"""

import base64
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from itertools import groupby
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeVar

from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations.group_epochs import GroupEpochs, OffsetsRecord
from kelpie.observations.groups import Generation, GroupRemoved, Member
from kelpie.pipeline.tables.bronze import ASSIGNOR, SESSION_TIMEOUT, TOPIC_REGEX, UNREAD
from kelpie.pipeline.tables.moments import instant
from kelpie.wire.offsets_topic import RecordType

CONSUMER_GROUP_TYPES = (
    RecordType.CONSUMER_GROUP_METADATA,
    RecordType.CONSUMER_GROUP_PARTITION_METADATA,
    RecordType.CONSUMER_GROUP_MEMBER_METADATA,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
    RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
)
ENTRY_COLUMNS = ["written", "key_type", "generation", "members", "is_removal", "details"]
"""The columns that make an entry, beside group, partition and offset."""
Row = Mapping[str, Any]
AnyRow = TypeVar("AnyRow", bound=Row)


class _Key(NamedTuple):
    group_id: str
    member_id: str


def observed_groups(
    rows: Iterable[Row], topic_names: MutableMapping[bytes, str]
) -> Iterator[Generation | GroupRemoved]:
    """Generations and removals. `rows`: in the order of the log, with `at` and `source`.

    `topic_names`: names of topics by id; grows with what the records say.
    """
    for _, partition_rows in groupby(rows, key=lambda row: row["offsets_partition"]):
        epochs = GroupEpochs(topic_names)
        for batch in coordinator_writes(partition_rows):
            advanced = epochs.begin_batch()
            observations = [observation for row in batch if (observation := _observed(row, epochs))]
            for observation in observations:
                # A classic group that becomes one of KIP-848 is deleted and made again in one write.
                if not (isinstance(observation, GroupRemoved) and observation.group in advanced):
                    yield observation
            for _, generation in epochs.end_batch(batch[0]["source"]):
                yield generation


def coordinator_writes(rows: Iterable[AnyRow]) -> Iterator[list[AnyRow]]:
    """Records that the coordinator wrote together: they follow each other and have the same time.

    Two writes may fall into one millisecond. A write begins with the member that it is about and ends with
    the epoch; so a member that appears or goes after an epoch belongs to the next write.
    """
    batch: list[AnyRow] = []
    has_epoch = False
    for row in rows:
        key_type = row["key_type"]
        begins_next = has_epoch and (
            key_type == RecordType.CONSUMER_GROUP_MEMBER_METADATA
            or (key_type == RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT and row["is_removal"])
        )
        if batch and (begins_next or row["written"] != batch[0]["written"]):
            yield batch
            batch, has_epoch = [], False
        batch.append(row)
        has_epoch |= key_type == RecordType.CONSUMER_GROUP_METADATA
    if batch:
        yield batch


def entry_of(row: Row, at: Instant | None = None, where: str = "") -> OffsetsRecord | None:
    """A record of a KIP-848 group. None for other records, and for one whose value could not be decoded."""
    key_type, details = row["key_type"], dict(row["details"] or ())
    if key_type not in CONSUMER_GROUP_TYPES or UNREAD in details:
        return None
    member = row["members"][0] if row["members"] else {}
    value = None if row["is_removal"] else _value(row["generation"], member, details)
    key = _Key(row["group"], member.get("member_id", ""))
    return OffsetsRecord(key_type, key, value, row["log_offset"], at, where)


def _observed(row: Row, epochs: GroupEpochs) -> Generation | GroupRemoved | None:
    at, where = instant(row["at"]), f"{row['source']}@{row['log_offset']}"
    if row["key_type"] != RecordType.GROUP_METADATA:
        entry = entry_of(row, at, where)
        return None if entry is None else epochs.record(entry)
    if row["is_removal"]:
        return GroupRemoved(row["group"], at, where)
    if row["generation"] is None:  # The value could not be decoded.
        return None
    return Generation(
        row["group"],
        row["generation"],
        tuple(map(_classic_member, row["members"])),
        row["protocol_type"],
        row["protocol"] or "",
        row["leader"] or "",
        at,
        where,
    )


def _classic_member(member: Row) -> Member:
    session, rebalance = member["session_timeout_ms"], member["rebalance_timeout_ms"]
    assigned = member["assigned"]
    return Member(
        member["member_id"],
        member["client_id"],
        member["client_host"],
        member["instance_id"],
        None if member["subscribed"] is None else tuple(member["subscribed"]),
        None if assigned is None else tuple(TopicPartition(**position) for position in assigned),
        session,
        # Before 0.10.1 there was no rebalance timeout: the coordinator waited for the session timeout.
        session if rebalance is None else rebalance,
    )


def _value(epoch: int, member: Row, details: Mapping[str, str]) -> Any:
    """What the value of a record of any type said, under the names that the fields have in the records."""
    session, rebalance = details.get(SESSION_TIMEOUT), member.get("rebalance_timeout_ms")
    assigned = [
        SimpleNamespace(
            topic_id=_topic_id(topic), partitions=[position["partition"] for position in positions]
        )
        for topic, positions in groupby(member.get("assigned") or (), key=lambda position: position["topic"])
    ]
    return SimpleNamespace(
        epoch=epoch,
        assignment_epoch=epoch,
        member_epoch=epoch,
        # Only a record of type 4 has details without a member: the names of topics.
        topics=[
            SimpleNamespace(topic_id=_topic_id(text), topic_name=name)
            for text, name in (details.items() if not member else ())
        ],
        topic_partitions=assigned,
        assigned_partitions=assigned,
        instance_id=member.get("instance_id"),
        client_id=member.get("client_id"),
        client_host=member.get("client_host"),
        subscribed_topic_names=member.get("subscribed") or [],
        subscribed_topic_regex=details.get(TOPIC_REGEX),
        rebalance_timeout_ms=-1 if rebalance is None else rebalance,
        server_assignor=details.get(ASSIGNOR),
        classic_member_metadata=session and SimpleNamespace(session_timeout_ms=int(session)),
    )


def _topic_id(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "==")
