"""IncrementalAlterConfigs: set, delete, append to and subtract from single settings (KIP-339)."""

from kelpie.broker import resources
from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.broker.declined import Declined
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.wire.api import incremental_alter_configs as wire
from kelpie.wire.structs import AlterConfigsResourceResponse


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: wire.IncrementalAlterConfigsRequest = call.message
    responses = [_alter(broker, asked, dry_run=request.validate_only) for asked in request.resources]
    broker.links.publish(now)
    call.answer(wire.IncrementalAlterConfigsResponse(responses=responses))


def _alter(
    broker: Broker, asked: wire.IncrementalAlterConfigsResource, *, dry_run: bool
) -> AlterConfigsResourceResponse:
    code, message = ErrorCode.NONE, None
    kind, name = asked.resource_type, asked.resource_name
    try:
        config = dict(resources.settings_of(broker, kind, name))
        for change in asked.configs:
            _apply(config, change)
        resources.change(broker, kind, name, config, dry_run=dry_run)
    except Declined as declined:
        code, message = declined.code, declined.message
    return AlterConfigsResourceResponse(
        error_code=code, error_message=message, resource_type=kind, resource_name=name
    )


def _apply(config: dict[str, str], change: wire.ConfigChange) -> None:
    name, value = change.name, change.value or ""
    items = [item for item in config.get(name, "").split(",") if item]
    match change.config_operation:
        case 0:
            config[name] = value
        case 1:
            config.pop(name, None)
        case 2:
            config[name] = ",".join([*items, *(item for item in value.split(",") if item not in items)])
        case 3:
            config[name] = ",".join(item for item in items if item not in value.split(","))
        case other:
            raise Declined(ErrorCode.INVALID_REQUEST, f"Unknown operation {other}")
