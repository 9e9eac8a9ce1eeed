"""AlterReplicaLogDirs (api key 34): move a replica to another log directory of its broker.

v0   the beginning
v1   no new field; the broker answers first and throttles after (KIP-219)
v2   flexible
"""

from __future__ import annotations

from kelpie.wire.schema import Int32, request, response, struct
from kelpie.wire.structs import NamedTopicPartitions, PartitionResult


@request(key=34, versions="0-2", flexible="2+")
class AlterReplicaLogDirsRequest:
    dirs: list[AlterReplicaLogDir]


@struct
class AlterReplicaLogDir:
    path: str
    topics: list[NamedTopicPartitions]


@response(key=34, versions="0-2", flexible="2+")
class AlterReplicaLogDirsResponse:
    throttle_time_ms: Int32 = 0
    results: list[AlterReplicaLogDirTopicResult]


@struct
class AlterReplicaLogDirTopicResult:
    topic_name: str
    partitions: list[PartitionResult]
