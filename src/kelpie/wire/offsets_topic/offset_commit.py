"""Committed offsets in `__consumer_offsets`: record types 0 (Kafka 0.8.2) and 1 (0.9 and later).

The two key types are apart for compaction: a commit of type 0 and one of type 1 do not shadow each other, the
later one counts.

v0   Kafka 0.8.2
v1   + expire_timestamp: 0.9 to 2.0, and later where a client names a retention
v2   − expire_timestamp: 2.1 while it was made
v3   + leader_epoch, before the metadata: 2.1 to 4.0
v4   flexible; + topic_id: 4.1 and later (KAFKA-19141)
"""

from __future__ import annotations

from kelpie.wire.schema import NO_UUID, Int32, Int64, Uuid, data, field


@data(versions="0")
class LegacyOffsetCommitKey:
    group: str
    topic: str
    partition: Int32


@data(versions="0")
class OffsetCommitKey:
    group: str
    topic: str
    partition: Int32


@data(versions="0-4", flexible="4+")
class OffsetCommitValue:
    offset: Int64
    leader_epoch: Int32 = field("3+", default=-1)
    metadata: str
    commit_timestamp: Int64
    expire_timestamp: Int64 = field("1", default=-1)
    topic_id: Uuid = field("4+", tag=0, default=NO_UUID)
