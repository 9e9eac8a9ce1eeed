"""The offsets topic: the leaders of its partitions, their offsets, their records."""

import asyncio
from collections.abc import Sequence

from kelpie.client.admin.topics import best_views, views_of
from kelpie.client.client_errors import ClientError, Throttled
from kelpie.client.nodes import Nodes
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.words import duration
from kelpie.observations import OFFSETS_TOPIC, PartitionView
from kelpie.questions.fetch import AskRecords, FetchedPartition
from kelpie.questions.list_offsets import AskOffsets, ListedOffset
from kelpie.questions.metadata import AskMetadata
from kelpie.wire.api.metadata import MetadataRequest

READ_COMMITTED = 1


async def ask_views(nodes: Nodes) -> dict[int, PartitionView]:
    """By partition: the view of the broker that knows the newest leader. Raises ClientError if none answers.

    Asking does not create the topic: a broker before Kafka 2.1 is asked for all topics, so one such broker
    must do.
    """
    views: list[PartitionView] = []
    failures: list[ClientError] = []

    async def ask(node: int) -> bool:
        try:
            version = (await nodes.versions(node)).pick(MetadataRequest)
            response = await nodes.ask(node, AskMetadata((OFFSETS_TOPIC,)).request(version), version)
        except ClientError as error:
            failures.append(error)
            return False
        for topic in response.topics:
            if topic.name == OFFSETS_TOPIC:
                views.extend(views_of(topic, node, 0, nodes.name_of(node)))
        return True

    if nodes.memory.tells_versions is False:
        for node in list(nodes.brokers):
            if await ask(node):
                break
    else:
        await asyncio.gather(*map(ask, nodes.brokers))
    if failures and len(failures) == len(nodes.brokers):
        raise failures[0]
    return {name.partition: view for name, view in best_views(views).items()}


async def ask_offsets(
    nodes: Nodes, node: int, partitions: Sequence[int], timestamp: int
) -> dict[int, ListedOffset]:
    """By partition: the offset at a timestamp, from its leader. Raises ClientError."""
    wanted = {TopicPartition(OFFSETS_TOPIC, number): (timestamp, None) for number in partitions}
    question = AskOffsets(0, wanted, int(nodes.settings.request_timeout_s * 1000))
    answer = await nodes.put(node, question)
    return {name.partition: offset for name, offset in answer.items() if name in wanted}


async def ask_records(
    nodes: Nodes,
    node: int,
    partition: int,
    offset: int,
    most_bytes: int,
    *,
    isolation_level: int = 0,
    limit_s: float | None = None,
    replica_id: int = -1,
) -> FetchedPartition:
    """The records from an offset on; an error if the broker does not answer for it.

    Raises ClientError; Throttled, if a quota does not let the broker answer.
    """
    name = TopicPartition(OFFSETS_TOPIC, partition)
    question = AskRecords(
        {name: (offset, None)},
        isolation_level,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=most_bytes,
        max_partition_bytes=most_bytes,
        replica_id=replica_id,
    )
    answer = await nodes.put(node, question, limit_s)
    fetched = answer.partitions.get(name)
    if fetched is None and answer.throttle_ms > 0:
        raise Throttled(
            f"{nodes.name_of(node)} gave no records: a quota of the cluster (consumer_byte_rate, "
            f"request_percentage) holds this client back for {duration(answer.throttle_ms)}."
        )
    return fetched or FetchedPartition(answer.error or ErrorCode.UNKNOWN_SERVER_ERROR)
