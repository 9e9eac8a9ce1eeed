"""What an operator may set for groups and their offsets, by the names of Kafka's broker configuration."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

_MINUTE_MS = 60_000
_DAY_MS = 24 * 60 * _MINUTE_MS


def _set_by(name: str, default: int, read: Callable[[str], int] = int) -> Any:
    return field(default=default, metadata={"name": name, "read": read})


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """Defaults are those of Kafka 4.3."""

    min_session_timeout_ms: int = _set_by("group.min.session.timeout.ms", 6_000)
    max_session_timeout_ms: int = _set_by("group.max.session.timeout.ms", 30 * _MINUTE_MS)
    initial_rebalance_delay_ms: int = _set_by("group.initial.rebalance.delay.ms", 3_000)
    max_size: int = _set_by("group.max.size", 2**31 - 1)
    new_member_join_timeout_ms: int = 5 * _MINUTE_MS
    """Not to be set in Kafka: how long a new member's join may be parked."""
    offset_metadata_max_bytes: int = _set_by("offset.metadata.max.bytes", 4_096)
    """In spite of its name, Kafka counts UTF-16 code units."""
    offsets_commit_timeout_ms: int = _set_by("offsets.commit.timeout.ms", 5_000)
    """How long an OffsetFetch that wants stable offsets waits for commits (Kafka 4)."""
    offsets_retention_ms: int = _set_by(
        "offsets.retention.minutes", 7 * _DAY_MS, lambda minutes: int(minutes) * _MINUTE_MS
    )
    offsets_retention_check_interval_ms: int = _set_by("offsets.retention.check.interval.ms", 10 * _MINUTE_MS)

    @classmethod
    def of(cls, settings: Mapping[str, str], defaults: "GroupConfig | None" = None) -> "GroupConfig":
        """`defaults`, changed by the settings that concern groups. Others are left alone."""
        changed = {
            each.name: each.metadata["read"](settings[each.metadata["name"]])
            for each in fields(cls)
            if each.metadata.get("name") in settings
        }
        return replace(defaults or cls(), **changed)


CONFIG_0_9 = GroupConfig(max_session_timeout_ms=30_000, offsets_retention_ms=_DAY_MS)
"""Kafka 0.9: sessions of at most 30 s, offsets kept for a day."""
