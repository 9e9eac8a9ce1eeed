"""SyncGroup: to the shard of the group; while it loads, the answer differs by release.

Since version 5 a member has to name protocol type and protocol (KIP-559); Kafka checks that first.
"""

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.broker.shard_host import ShardHost
from kelpie.coordinator.classic.group import find_group
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.wire.api.sync_group import SyncGroupRequest, SyncGroupResponse

NAMES_PROTOCOL = 5


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: SyncGroupRequest = call.message
    if call.version >= NAMES_PROTOCOL and (request.protocol_type is None or request.protocol_name is None):
        error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        call.answer(SyncGroupResponse(error_code=error, assignment=b""))
        return
    host = broker.groups.host_for(request.group_id, named=True)
    if isinstance(host, ShardHost):
        outcome = host.shard.sync(call, request, now)
        if broker.traffic is not None:
            group = find_group(host.shard.state, request.group_id)
            broker.traffic.syncing(call, group, host.epoch, outcome, now)
        host.carry_out(outcome, now)
        return
    if host == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        host = ErrorCode(broker.persona.sync_while_loading)
    call.answer(SyncGroupResponse(error_code=host, assignment=b""))
