"""OffsetDelete: committed offsets of a group, by its shard. Partitions that do not exist are refused here,
and stand first in the answer.
"""

from dataclasses import replace

from kelpie.broker.absent_partitions import merged, split
from kelpie.broker.broker import Broker
from kelpie.broker.call import Call, Relay
from kelpie.broker.shard_host import ShardHost
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.wire.api import offset_delete as wire
from kelpie.wire.structs import TopicResults


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: wire.OffsetDeleteRequest = call.message
    existing, absent = split(broker.image, request.topics)
    missing = [TopicResults(name=name, partitions=parts) for name, parts in absent.items()]

    def finish(response: wire.OffsetDeleteResponse) -> None:
        if response.error_code == ErrorCode.NONE:
            response.topics = merged(missing, response.topics)
        call.answer(response)

    host = broker.groups.host_for(request.group_id)
    if isinstance(host, ShardHost):
        asked = replace(request, topics=existing)
        host.carry_out(host.shard.delete_offsets(Relay(finish), asked, now), now)
    else:
        call.answer(wire.OffsetDeleteResponse(error_code=host, topics=[]))
