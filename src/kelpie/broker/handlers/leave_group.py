"""LeaveGroup: to the group's shard; since version 3 for several members at once."""

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.broker.shard_host import ShardHost
from kelpie.model.time import Instant
from kelpie.wire.api.leave_group import LeaveGroupRequest, LeaveGroupResponse


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: LeaveGroupRequest = call.message
    host = broker.groups.host_for(request.group_id, named=True)
    if isinstance(host, ShardHost):
        host.carry_out(host.shard.leave(call, request, call.version, now), now)
    else:
        call.answer(LeaveGroupResponse(error_code=host))
