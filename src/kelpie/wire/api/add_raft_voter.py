"""AddRaftVoter (api key 80): add a controller to the Raft quorum (KIP-853).

v0   the beginning; flexible
v1   request + ack_when_committed (KIP-1186)
"""

from __future__ import annotations

from kelpie.wire.schema import Int16, Int32, Uuid, field, request, response
from kelpie.wire.structs import VoterListener


@request(key=80, versions="0-1", flexible="0+")
class AddRaftVoterRequest:
    cluster_id: str | None
    timeout_ms: Int32
    voter_id: Int32
    voter_directory_id: Uuid
    listeners: list[VoterListener]
    ack_when_committed: bool = field("1+", default=True, strict=True)


@response(key=80, versions="0-1", flexible="0+")
class AddRaftVoterResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: str | None = None
