"""RemoveRaftVoter (api key 81): remove a controller from the Raft quorum (KIP-853).

v0   the only version; flexible
"""

from __future__ import annotations

from kelpie.wire.schema import Int16, Int32, Uuid, request, response


@request(key=81, versions="0", flexible="0+")
class RemoveRaftVoterRequest:
    cluster_id: str | None
    voter_id: Int32
    voter_directory_id: Uuid


@response(key=81, versions="0", flexible="0+")
class RemoveRaftVoterResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: str | None = None
