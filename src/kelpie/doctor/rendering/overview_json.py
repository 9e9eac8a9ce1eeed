"""Groups at a glance, as JSON. What is not known is null; times are ISO 8601 in UTC with milliseconds."""

from typing import Any

from kelpie.doctor.overview import GroupOverview
from kelpie.doctor.rendering.json import time_of
from kelpie.doctor.standings import PartitionOverview


def group_as_data(row: GroupOverview) -> dict[str, Any]:
    worst = row.worst
    return {
        "group": row.group,
        "type": row.kind or None,
        "state": row.state or None,
        "assignor": row.protocol or None,
        "members": row.members,
        "coordinator": row.coordinator,
        "offsets_partition": row.offsets_partition,
        "lag": row.lag,
        "lag_is_complete": row.lag_is_whole,
        "lag_ms": row.lag_ms,
        "lag_ms_is_minimum": row.may_be_older,
        "lag_change_per_minute": None if row.lag_change is None else round(row.lag_change, 3),
        "last_commit": time_of(row.last_commit),
        "worst": None
        if worst is None
        else {"code": worst.code, "severity": worst.severity.word, "summary": worst.summary},
    }


def partition_as_data(row: PartitionOverview) -> dict[str, Any]:
    return {
        "topic": row.name.topic,
        "partition": row.name.partition,
        "offset": row.offset,
        "log_end": row.end,
        "lag": row.lag,
        "lag_ms": row.lag_ms,
        "lag_ms_is_minimum": row.may_be_older,
        "last_commit": time_of(row.last_commit),
        "member": row.member_id or None,
        "client_id": row.client_id or None,
        "host": row.host or None,
    }
