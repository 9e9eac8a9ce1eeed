"""InitProducerId: a fresh id for an idempotent producer; a transactional one asks its coordinator."""

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.broker.shard_host import ShardHost
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.wire.api.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: InitProducerIdRequest = call.message
    if request.transactional_id is None:
        controller = broker.links.controller()
        if controller is None:
            call.answer(_failed(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        else:
            call.answer(
                InitProducerIdResponse(
                    error_code=ErrorCode.NONE, producer_id=controller.new_producer_id(), producer_epoch=0
                )
            )
        return
    if not request.transactional_id:
        call.answer(_failed(ErrorCode.INVALID_REQUEST))
        return
    host = broker.transactions.host_for(request.transactional_id)
    if isinstance(host, ShardHost):
        host.carry_out(host.shard.init_producer_id(call, request, call.version, now), now)
    else:
        call.answer(_failed(host))


def _failed(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
