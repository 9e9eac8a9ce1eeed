"""Topic settings by Kafka's names."""

import pytest

from kelpie.broker.log import LogConfig
from kelpie.wire.records import Codec, TimestampType


def test_without_settings_the_defaults_are_kafkas() -> None:
    """Kafka 4's TopicConfig."""
    config = LogConfig.of({})
    assert config == LogConfig()
    assert (config.deletes, config.compacts) == (True, False)
    assert config.retention_ms == 604_800_000
    assert config.segment_bytes == 1_073_741_824
    assert config.max_message_bytes == 1_048_588
    assert config.message_format == 2


def test_settings_are_read_by_name_and_others_are_passed_over() -> None:
    """A topic has settings that concern replication or flushing."""
    config = LogConfig.of(
        {
            "cleanup.policy": "compact, delete",
            "retention.ms": "-1",
            "segment.ms": "100",
            "max.compaction.lag.ms": "50",
            "message.timestamp.type": "LogAppendTime",
            "compression.type": "lz4",
            "unclean.leader.election.enable": "true",
            "min.cleanable.dirty.ratio": "0.01",
            "flush.messages": "1",
        },
        message_format=0,
    )
    assert (config.deletes, config.compacts, config.retention_ms) == (True, True, -1)
    assert config.longest_segment_ms == 50
    assert config.message_timestamp_type is TimestampType.LOG_APPEND
    assert config.compression_codec is Codec.LZ4
    assert config.unclean_leader_election_enable
    assert config.message_format == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cleanup.policy", "shred"),
        ("retention.ms", "a week"),
        ("retention.ms", "-2"),
        ("segment.bytes", "13"),
        ("message.timestamp.type", "Now"),
        ("compression.type", "bzip2"),
        ("unclean.leader.election.enable", "maybe"),
        ("min.cleanable.dirty.ratio", "1.5"),
    ],
)
def test_a_value_that_cannot_be_is_named(name: str, value: str) -> None:
    """The operator must see which setting it is, and what it said."""
    with pytest.raises(ValueError, match=f"{value}.*{name}"):
        LogConfig.of({name: value})


def test_other_message_formats_do_not_exist() -> None:
    """No release that the lab passes for keeps magic 1."""
    with pytest.raises(ValueError, match="magic 0 or 2"):
        LogConfig.of({}, message_format=1)
