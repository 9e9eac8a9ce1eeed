"""JoinGroup: to the group's shard, which parks it until the rebalance ends."""

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.broker.shard_host import ShardHost
from kelpie.coordinator.classic.group import find_group
from kelpie.coordinator.classic.responses import join_refused
from kelpie.model.time import Instant
from kelpie.wire.api.join_group import JoinGroupRequest


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: JoinGroupRequest = call.message
    host = broker.groups.host_for(request.group_id, named=True)
    if isinstance(host, ShardHost):
        outcome = host.shard.join(call, request, call.version, call.client_id, call.client_host, now)
        if broker.traffic is not None:
            group = find_group(host.shard.state, request.group_id)
            broker.traffic.joining(call, group, host.epoch, outcome, now)
        host.carry_out(outcome, now)
        return
    call.answer(join_refused(request.member_id, host, call.version, broker.groups.behaviour))
