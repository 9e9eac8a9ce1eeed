"""ElectLeaders (api key 43): elect the preferred leader of a partition, or an unclean one.

v0   the beginning
v1   unclean elections (KIP-460): request + election_type; response + error_code
v2   flexible
"""

from __future__ import annotations

from kelpie.wire.schema import Int8, Int16, Int32, field, request, response, struct
from kelpie.wire.structs import TopicPartitions


@request(key=43, versions="0-2", flexible="2+")
class ElectLeadersRequest:
    election_type: Int8 = field("1+", default=0, strict=True)
    topic_partitions: list[TopicPartitions] | None
    timeout_ms: Int32 = 60000


@response(key=43, versions="0-2", flexible="2+")
class ElectLeadersResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = field("1+", default=0)
    replica_election_results: list[ReplicaElectionResult]


@struct
class ReplicaElectionResult:
    topic: str
    partition_result: list[ElectionResult]


@struct
class ElectionResult:
    partition_id: Int32
    error_code: Int16
    error_message: str | None = None
