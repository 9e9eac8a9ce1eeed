"""The topic settings that a log obeys, by Kafka's names (org.apache.kafka.common.config.TopicConfig).

Defaults are those of Kafka 4. `message_format` is no setting of a topic: it says what magic the log keeps, 2,
or 0 for a broker that passes for Kafka 0.9.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from kelpie.wire.records import LARGEST_BATCH, Codec, TimestampType

_LARGEST_INT64 = 2**63 - 1
_WEEK_MS = 7 * 24 * 3600 * 1000
_DAY_MS = 24 * 3600 * 1000
_HOUR_MS = 3600 * 1000

_CODECS: Mapping[str, Codec | None] = {
    "producer": None,
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}
_TIMESTAMP_TYPES = {"CreateTime": TimestampType.CREATE, "LogAppendTime": TimestampType.LOG_APPEND}


def _policies(text: str) -> frozenset[str]:
    policies = frozenset(part.strip() for part in text.split(",") if part.strip())
    if not policies <= {"delete", "compact"}:
        raise ValueError(text)
    return policies


def _switch(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


def _at_least(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        number = int(text)
        if number < least:
            raise ValueError(text)
        return number

    return parse


def _ratio(text: str) -> float:
    ratio = float(text)
    if not 0 <= ratio <= 1:
        raise ValueError(text)
    return ratio


def _set_by(name: str, default: Any, parse: Callable[[str], Any]) -> Any:
    return field(default=default, metadata={"name": name, "parse": parse})


@dataclass(frozen=True, slots=True)
class LogConfig:
    cleanup_policy: frozenset[str] = _set_by("cleanup.policy", frozenset({"delete"}), _policies)
    retention_ms: int = _set_by("retention.ms", _WEEK_MS, _at_least(-1))
    """Negative: for ever."""
    retention_bytes: int = _set_by("retention.bytes", -1, int)
    """Negative: as much as there is."""
    segment_bytes: int = _set_by("segment.bytes", 1 << 30, _at_least(14))
    segment_ms: int = _set_by("segment.ms", _WEEK_MS, _at_least(1))
    max_message_bytes: int = _set_by("max.message.bytes", LARGEST_BATCH, _at_least(0))
    message_timestamp_type: TimestampType = field(
        default=TimestampType.CREATE,
        metadata={"name": "message.timestamp.type", "parse": _TIMESTAMP_TYPES.__getitem__},
    )
    message_timestamp_before_max_ms: int = _set_by(
        "message.timestamp.before.max.ms", _LARGEST_INT64, _at_least(0)
    )
    message_timestamp_after_max_ms: int = _set_by("message.timestamp.after.max.ms", _HOUR_MS, _at_least(0))
    min_insync_replicas: int = _set_by("min.insync.replicas", 1, _at_least(1))
    unclean_leader_election_enable: bool = _set_by("unclean.leader.election.enable", False, _switch)
    delete_retention_ms: int = _set_by("delete.retention.ms", _DAY_MS, _at_least(0))
    min_cleanable_dirty_ratio: float = _set_by("min.cleanable.dirty.ratio", 0.5, _ratio)
    min_compaction_lag_ms: int = _set_by("min.compaction.lag.ms", 0, _at_least(0))
    max_compaction_lag_ms: int = _set_by("max.compaction.lag.ms", _LARGEST_INT64, _at_least(1))
    compression_codec: Codec | None = field(
        default=None, metadata={"name": "compression.type", "parse": _CODECS.__getitem__}
    )
    """None is "producer": batches stay as they were sent."""
    message_format: int = 2

    @property
    def compacts(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def deletes(self) -> bool:
        return "delete" in self.cleanup_policy

    @property
    def longest_segment_ms(self) -> int:
        """A compacted log rolls early enough for max.compaction.lag.ms to be kept."""
        if self.compacts and self.max_compaction_lag_ms > 0:
            return min(self.segment_ms, self.max_compaction_lag_ms)
        return self.segment_ms

    @classmethod
    def of(cls, settings: Mapping[str, str], *, message_format: int = 2) -> "LogConfig":
        """Read a topic's settings. Names that a log does not care for are passed over.

        A value that cannot be read raises ValueError, with a sentence for the operator.
        """
        if message_format not in (0, 2):
            raise ValueError(f"a log keeps messages of magic 0 or 2, not {message_format}")
        values: dict[str, Any] = {}
        for each in fields(cls):
            name = each.metadata.get("name", "")
            if name not in settings:
                continue
            try:
                values[each.name] = each.metadata["parse"](settings[name].strip())
            except (ValueError, KeyError):
                raise ValueError(f"Invalid value {settings[name]!r} for configuration {name}.") from None
        return cls(**values, message_format=message_format)
