"""DeleteGroups: each group by its shard; only empty ones go."""

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call, Gather
from kelpie.broker.shard_host import ShardHost
from kelpie.model.time import Instant
from kelpie.wire.api.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: DeleteGroupsRequest = call.message
    names = request.groups_names
    gather = Gather(len(names), lambda parts: call.answer(DeleteGroupsResponse(results=parts)))
    for index, group_id in enumerate(names):
        to = gather.part(index)
        host = broker.groups.host_for(group_id)
        if isinstance(host, ShardHost):
            host.carry_out(host.shard.delete_group(to, group_id, now), now)
        else:
            to.answer(DeletableGroupResult(group_id=group_id, error_code=host))
