"""DescribeConfigs: settings of topics and brokers, each with its source."""

from kelpie.broker import resources
from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.broker.declined import Declined
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.wire.api.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: DescribeConfigsRequest = call.message
    results = [_describe(broker, asked, request) for asked in request.resources]
    call.answer(DescribeConfigsResponse(results=results))


def _describe(
    broker: Broker, asked: DescribeConfigsResource, request: DescribeConfigsRequest
) -> DescribeConfigsResult:
    code, message, entries = ErrorCode.NONE, "", []
    try:
        entries = resources.entries(broker, asked.resource_type, asked.resource_name)
    except Declined as declined:
        code, message = declined.code, declined.message
    wanted = asked.configuration_keys
    return DescribeConfigsResult(
        error_code=code,
        error_message=message,
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
        configs=[_result(entry, request) for entry in entries if not wanted or entry.name in wanted],
    )


def _result(entry: resources.ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        is_default=entry.source == resources.DEFAULT,
        config_source=entry.source,
        is_sensitive=False,
        synonyms=[
            DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in entry.synonyms
        ]
        if request.include_synonyms
        else [],
        config_type=entry.kind,
        documentation=None,
    )
