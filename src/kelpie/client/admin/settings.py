"""Settings that matter to groups: each broker's own, and those of the topics that groups read.

What the rows of the round have already is not asked for.
"""

from collections.abc import Sequence

from kelpie.client.admin.asking import Asking, chunks, each
from kelpie.client.client_errors import ClientError, Unsupported
from kelpie.errors import ErrorCode, describe
from kelpie.observations import Setting
from kelpie.wire.api.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

_TOPICS_PER_REQUEST = 1000

OF_BROKERS = (
    "auto.create.topics.enable",
    "group.consumer.max.size",
    "group.initial.rebalance.delay.ms",
    "group.max.session.timeout.ms",
    "group.max.size",
    "group.min.session.timeout.ms",
    "group.share.delivery.count.limit",
    "group.share.record.lock.duration.ms",
    "group.streams.max.size",
    "listener.security.protocol.map",
    "listeners",
    "log.cleaner.enable",
    "log.retention.bytes",
    "log.retention.hours",
    "log.retention.minutes",
    "log.retention.ms",
    "min.insync.replicas",
    "offsets.retention.check.interval.ms",
    "offsets.retention.minutes",
    "offsets.topic.num.partitions",
    "offsets.topic.replication.factor",
    "transaction.max.timeout.ms",
    "unclean.leader.election.enable",
)
OF_TOPICS = (
    "cleanup.policy",
    "message.timestamp.type",
    "min.insync.replicas",
    "remote.storage.enable",
    "retention.bytes",
    "retention.ms",
    "unclean.leader.election.enable",
)


_KEYS = {"broker": (4, OF_BROKERS), "topic": (2, OF_TOPICS)}
"""The type of each kind of resource, and the settings to ask for."""


async def ask_broker_settings(asking: Asking, node: int) -> None:
    await _ask(asking, node, "broker", [str(node)])


async def ask_topic_settings(asking: Asking, topics: Sequence[str]) -> None:
    """Any broker knows them. If one does not answer, the next is asked."""

    async def ask(part: Sequence[str]) -> None:
        for node in asking.reached:
            if await _ask(asking, node, "topic", part):
                return

    await each(chunks(topics, _TOPICS_PER_REQUEST), ask)


async def _ask(asking: Asking, node: int, kind: str, names: Sequence[str]) -> bool:
    source = asking.source(node)
    resource_type, keys = _KEYS[kind]
    known = {row.of for row in asking.seen.settings}
    resources = [
        DescribeConfigsResource(
            resource_type=resource_type, resource_name=name, configuration_keys=list(keys)
        )
        for name in names
        if f"{kind} {name}" not in known
    ]
    if not resources:
        return True
    try:
        response, _ = await asking.ask(node, DescribeConfigsRequest(resources=resources))
    except Unsupported as error:
        # Kafka before 0.11 tells no settings. One row says so.
        if not any(row.kind == "settings" for row in asking.seen.unasked):
            asking.unasked("settings", ["all"], error.reason, source)
        return True
    except ClientError as error:
        asking.unasked("settings", [f"{kind} {name}" for name in names], error.reason, source)
        return False
    for result in response.results:
        of = f"{kind} {result.resource_name}"
        if result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            continue  # The views of topics say already that there is no such topic.
        if result.error_code:
            asking.unasked("settings", [of], f"{source} answers {describe(result.error_code)}", source)
        asking.seen.settings += [
            Setting(of, entry.name, entry.value, source)
            for entry in result.configs
            if entry.value is not None
        ]
    return True
