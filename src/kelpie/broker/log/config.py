"""The topic settings that a log obeys, by Kafka's names (org.apache.kafka.common.config.TopicConfig).

Defaults are those of Kafka 4. `message_format` is no setting of a topic: it says what magic the log keeps, 2,
or 0 for a broker that passes for Kafka 0.9.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class LogConfig:
    cleanup_policy: frozenset[str] = frozenset({"delete"})
    retention_ms: int = _WEEK_MS
    """Negative: for ever."""
    retention_bytes: int = -1
    """Negative: as much as there is."""
    segment_bytes: int = 1 << 30
    segment_ms: int = _WEEK_MS
    max_message_bytes: int = LARGEST_BATCH
    message_timestamp_type: TimestampType = TimestampType.CREATE
    message_timestamp_before_max_ms: int = _LARGEST_INT64
    message_timestamp_after_max_ms: int = _HOUR_MS
    min_insync_replicas: int = 1
    unclean_leader_election_enable: bool = False
    delete_retention_ms: int = _DAY_MS
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = _LARGEST_INT64
    compression_codec: Codec | None = None
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
        fields: dict[str, Any] = {}
        for name, (field, parse) in _SETTINGS.items():
            text = settings.get(name)
            if text is None:
                continue
            try:
                fields[field] = parse(text.strip())
            except (ValueError, KeyError):
                raise ValueError(f"Invalid value {text!r} for configuration {name}.") from None
        return cls(**fields, message_format=message_format)


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


_SETTINGS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "cleanup.policy": ("cleanup_policy", _policies),
    "retention.ms": ("retention_ms", _at_least(-1)),
    "retention.bytes": ("retention_bytes", int),
    "segment.bytes": ("segment_bytes", _at_least(14)),
    "segment.ms": ("segment_ms", _at_least(1)),
    "max.message.bytes": ("max_message_bytes", _at_least(0)),
    "message.timestamp.type": ("message_timestamp_type", _TIMESTAMP_TYPES.__getitem__),
    "message.timestamp.before.max.ms": ("message_timestamp_before_max_ms", _at_least(0)),
    "message.timestamp.after.max.ms": ("message_timestamp_after_max_ms", _at_least(0)),
    "min.insync.replicas": ("min_insync_replicas", _at_least(1)),
    "unclean.leader.election.enable": ("unclean_leader_election_enable", _switch),
    "delete.retention.ms": ("delete_retention_ms", _at_least(0)),
    "min.cleanable.dirty.ratio": ("min_cleanable_dirty_ratio", _ratio),
    "min.compaction.lag.ms": ("min_compaction_lag_ms", _at_least(0)),
    "max.compaction.lag.ms": ("max_compaction_lag_ms", _at_least(1)),
    "compression.type": ("compression_codec", _CODECS.__getitem__),
}
