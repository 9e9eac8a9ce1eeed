"""ListGroups: the groups of all shards on this broker.

While some load, it says so; up to 3.x it lists the others all the same.
"""

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.wire.api.list_groups import ListGroupsRequest, ListGroupsResponse


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: ListGroupsRequest = call.message
    error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if broker.groups.loading else ErrorCode.NONE
    groups = [
        group
        for host in broker.groups.hosts.values()
        if host.active
        for group in host.shard.listed(request.states_filter, request.types_filter)
    ]
    if error != ErrorCode.NONE and broker.persona.name == "4.3":
        groups = []
    call.answer(ListGroupsResponse(error_code=error, groups=groups))
