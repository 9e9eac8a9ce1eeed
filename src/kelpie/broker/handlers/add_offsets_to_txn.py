"""AddOffsetsToTxn: the group's partition of `__consumer_offsets` joins the transaction."""

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.broker.image import OFFSETS_TOPIC
from kelpie.broker.shard_host import ShardHost
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.wire.api.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: AddOffsetsToTxnRequest = call.message
    host = broker.transactions.host_for(request.transactional_id)
    if isinstance(host, ShardHost):
        partition = TopicPartition(OFFSETS_TOPIC, broker.groups.partition_of(request.group_id))
        host.carry_out(host.shard.add_offsets(call, request, call.version, partition, now), now)
    else:
        call.answer(AddOffsetsToTxnResponse(error_code=host))
