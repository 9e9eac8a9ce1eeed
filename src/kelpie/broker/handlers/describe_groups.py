"""DescribeGroups: state and members of each group, from its shard."""

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.broker.shard_host import ShardHost
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.wire.api.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse

# Bits of AclOperation: READ, DELETE, DESCRIBE; Kafka 4 also has DESCRIBE_CONFIGS and ALTER_CONFIGS of groups.
_EVERYTHING = 1 << 3 | 1 << 6 | 1 << 8
_EVERYTHING_4 = _EVERYTHING | 1 << 10 | 1 << 11


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: DescribeGroupsRequest = call.message
    groups = [_describe(broker, group_id, call.version) for group_id in request.groups]
    if request.include_authorized_operations:
        for group in groups:
            if group.error_code == ErrorCode.NONE:
                # Without an authorizer everyone may do everything.
                group.authorized_operations = _EVERYTHING_4 if broker.persona.name == "4.3" else _EVERYTHING
    call.answer(DescribeGroupsResponse(groups=groups))


def _describe(broker: Broker, group_id: str, version: int) -> DescribedGroup:
    host = broker.groups.host_for(group_id)
    if isinstance(host, ShardHost):
        described: DescribedGroup = host.shard.describe(group_id, version)
        return described
    return DescribedGroup(
        error_code=host, group_id=group_id, group_state="", protocol_type="", protocol_data="", members=[]
    )
