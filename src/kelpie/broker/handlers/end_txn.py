"""EndTxn: commit or abort, by the coordinator of the transactional id."""

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.broker.shard_host import ShardHost
from kelpie.model.time import Instant
from kelpie.wire.api.end_txn import EndTxnRequest, EndTxnResponse


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: EndTxnRequest = call.message
    host = broker.transactions.host_for(request.transactional_id)
    if isinstance(host, ShardHost):
        host.carry_out(host.shard.end(call, request, call.version, now), now)
    else:
        call.answer(EndTxnResponse(error_code=host))
