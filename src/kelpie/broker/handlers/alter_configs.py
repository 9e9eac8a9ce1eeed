"""AlterConfigs: what is not named falls back to its default."""

from kelpie.broker import resources
from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.broker.declined import Declined
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.wire.api.alter_configs import AlterConfigsRequest, AlterConfigsResource, AlterConfigsResponse
from kelpie.wire.structs import AlterConfigsResourceResponse


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: AlterConfigsRequest = call.message
    responses = [_alter(broker, asked, dry_run=request.validate_only) for asked in request.resources]
    broker.links.publish(now)
    call.answer(AlterConfigsResponse(responses=responses))


def _alter(broker: Broker, asked: AlterConfigsResource, *, dry_run: bool) -> AlterConfigsResourceResponse:
    code, message = ErrorCode.NONE, None
    config = {setting.name: setting.value for setting in asked.configs if setting.value is not None}
    try:
        resources.change(broker, asked.resource_type, asked.resource_name, config, dry_run=dry_run)
    except Declined as declined:
        code, message = declined.code, declined.message
    return AlterConfigsResourceResponse(
        error_code=code,
        error_message=message,
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
    )
