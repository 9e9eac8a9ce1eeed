"""Heartbeat: to the group's shard."""

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.broker.shard_host import ShardHost
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.wire.api.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: HeartbeatRequest = call.message
    host = broker.groups.host_for(request.group_id, named=True)
    if isinstance(host, ShardHost):
        host.carry_out(host.shard.heartbeat(call, request, now), now)
        return
    if host == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        host = ErrorCode.NONE  # Members must not lose their place because their coordinator loads.
    call.answer(HeartbeatResponse(error_code=host))
