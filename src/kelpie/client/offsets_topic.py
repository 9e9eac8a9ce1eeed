"""The offsets topic, asked of brokers: who leads its partitions, where they begin and end, what they hold."""

from collections.abc import Sequence

from kelpie.client.admin.topics import views_of
from kelpie.client.nodes import Nodes
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.observations import OFFSETS_TOPIC, PartitionView
from kelpie.questions.fetch import AskRecords, FetchedPartition
from kelpie.questions.list_offsets import AskOffsets, ListedOffset
from kelpie.wire.api.list_offsets import ListOffsetsRequest
from kelpie.wire.api.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

LATEST, EARLIEST = -1, -2
READ_COMMITTED = 1
_CAN_FORBID_CREATION = 4
_KNOWS_ISOLATION = 2


async def ask_views(nodes: Nodes, node: int, source: str = "") -> list[PartitionView]:
    """What one broker knows. To ask must not create the topic: old ones tell of all. Raises ClientError."""
    version = (await nodes.versions(node)).pick(MetadataRequest)
    response: MetadataResponse = await nodes.ask(node, _metadata(version), version)
    return [
        view
        for topic in response.topics
        if topic.name == OFFSETS_TOPIC
        for view in views_of(topic, node, 0, source)
    ]


def _metadata(version: int) -> MetadataRequest:
    if version >= _CAN_FORBID_CREATION:
        named = [MetadataRequestTopic(name=OFFSETS_TOPIC)]
        return MetadataRequest(topics=named, allow_auto_topic_creation=False)
    return MetadataRequest(topics=[] if version == 0 else None)


async def ask_offsets(
    nodes: Nodes, node: int, partitions: Sequence[int], timestamp: int, *, isolation_level: int = 0
) -> dict[int, ListedOffset]:
    """By partition, of those that the leader tells about. Raises ClientError.

    A leader that knows of no transactions is asked without regard to them.
    """
    knows = (await nodes.versions(node)).speaks(ListOffsetsRequest, at_least=_KNOWS_ISOLATION)
    question = AskOffsets(
        isolation_level if knows else 0,
        {TopicPartition(OFFSETS_TOPIC, it): (timestamp, None) for it in partitions},
        int(nodes.settings.request_timeout_s * 1000),
    )
    return {name.partition: told for name, told in (await nodes.put(node, question)).items()}


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
    """What is there now, from an offset on; an error if the leader says nothing. Raises ClientError."""
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
    told = await nodes.put(node, question, limit_s)
    return told.partitions.get(name) or FetchedPartition(told.error or ErrorCode.UNKNOWN_SERVER_ERROR)
