"""DescribeConfigs: settings of topics and brokers, each with its source."""

from kelpie.broker import resources
from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.broker.declined import Declined
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.wire.api import describe_configs as wire


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: wire.DescribeConfigsRequest = call.message
    results = [_describe(broker, asked, request) for asked in request.resources]
    call.answer(wire.DescribeConfigsResponse(results=results))


def _describe(
    broker: Broker, asked: wire.DescribeConfigsResource, request: wire.DescribeConfigsRequest
) -> wire.DescribeConfigsResult:
    code, message, entries = ErrorCode.NONE, "", []
    try:
        entries = resources.entries(broker, asked.resource_type, asked.resource_name)
    except Declined as declined:
        code, message = declined.code, declined.message
    wanted = asked.configuration_keys
    return wire.DescribeConfigsResult(
        error_code=code,
        error_message=message,
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
        configs=[_result(entry, request) for entry in entries if not wanted or entry.name in wanted],
    )


def _result(
    entry: resources.ConfigEntry, request: wire.DescribeConfigsRequest
) -> wire.DescribeConfigsResourceResult:
    return wire.DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        is_default=entry.source == resources.DEFAULT,
        config_source=entry.source,
        is_sensitive=False,
        synonyms=[
            wire.DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in entry.synonyms
        ]
        if request.include_synonyms
        else [],
        config_type=entry.kind,
        documentation=None,
    )
