"""`kelpie groups --json`: all groups at a glance."""

from collections.abc import Iterable, Mapping
from typing import Literal, cast

from kelpie.doctor.case import Case
from kelpie.doctor.diagnosis import Diagnosis
from kelpie.doctor.overview import GroupOverview, idle_members, partitions_of
from kelpie.doctor.rendering.overview_json import group_as_data, partition_as_data
from kelpie.documents.declaring import TypedDict, document
from kelpie.model.time import iso_time

SeverityWord = Literal["notice", "warning", "critical"]


@document
class WorstFinding(TypedDict):
    code: str
    severity: SeverityWord
    summary: str


@document
class GroupPartition(TypedDict):
    topic: str
    partition: int
    offset: int | None
    """The committed offset."""
    log_end: int | None
    lag: int | None
    lag_ms: int | None
    lag_ms_is_minimum: bool
    last_commit: str | None
    member: str | None
    """The id of the member to which it is assigned."""
    client_id: str | None
    host: str | None


@document
class _GroupFields(TypedDict):
    group: str
    type: str | None
    """consumer, classic, share, streams, zookeeper …"""
    state: str | None
    assignor: str | None
    members: int | None
    coordinator: int | None
    """The broker's id."""
    offsets_partition: int | None
    """Of __consumer_offsets."""
    lag: int | None
    """Records that are left to read."""
    lag_is_complete: bool
    """false: the lag of some partitions is not known."""
    lag_ms: int | None
    """How old the oldest of these records is."""
    lag_ms_is_minimum: bool
    lag_change_per_minute: float | None
    last_commit: str | None
    worst: WorstFinding | None


@document
class GroupRow(_GroupFields, total=False):
    partitions: list[GroupPartition]
    """Of groups that were asked for by name."""
    idle_members: list[str]
    """Members without a partition, of groups that were asked for by name."""


@document
class UnaskedRow(TypedDict):
    """What could not be asked."""

    kind: str
    name: str
    reason: str


@document
class GroupsDocument(TypedDict):
    """All groups at a glance."""

    version: Literal[1]
    at: str | None
    """When they were looked at."""
    groups: list[GroupRow]
    unknown_groups: list[str]
    """Asked for by name, and known to nobody."""
    unasked: list[UnaskedRow]


def groups_document(
    diagnosis: Diagnosis, rows: Iterable[GroupOverview], in_full: Mapping[str, Case] | None = None
) -> GroupsDocument:
    """`in_full`: the cases of these groups, which then have their partitions and idle members."""
    at = diagnosis.cluster.now
    return {
        "version": 1,
        "at": iso_time(at) if at else None,
        "groups": [group_row(row, in_full[row.group] if in_full is not None else None) for row in rows],
        "unknown_groups": list(diagnosis.unheard_of),
        "unasked": [{"kind": row.kind, "name": row.name, "reason": row.reason} for row in diagnosis.unasked],
    }


def group_row(row: GroupOverview, case: Case | None = None) -> GroupRow:
    data = cast("GroupRow", group_as_data(row))
    if case is not None:
        data["partitions"] = [
            cast("GroupPartition", partition_as_data(partition)) for partition in partitions_of(case)
        ]
        data["idle_members"] = [member.member_id for member in idle_members(case)]
    return data
