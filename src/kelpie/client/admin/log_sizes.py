"""How large the logs of partitions are, from the brokers that lead them (DescribeLogDirs, Kafka 1.0)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from kelpie.client.admin.asking import Asking, chunks, each, together
from kelpie.client.client_errors import ClientError
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import OFFSETS_TOPIC, LogSize, Setting
from kelpie.questions.question import by_topic
from kelpie.wire.api.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from kelpie.wire.structs import TopicPartitions

_TOO_OLD = "These brokers do not know DescribeLogDirs, which came with Kafka 1.0."
_POLICY, _TIERED = "cleanup.policy", "remote.storage.enable"


async def ask_sizes(
    asking: Asking, by_leader: Mapping[int, Sequence[TopicPartition]], *, one_failure_a_broker: bool = False
) -> None:
    """Adds the sizes of all partitions.

    `one_failure_a_broker`: what a broker does not answer is one Unasked row of kind "sizes", and not one for
    each partition; a cluster whose release cannot answer has one row.
    """
    if one_failure_a_broker and by_leader and not any(_can_tell(asking, node) for node in by_leader):
        asking.unasked("sizes", ["all"], _TOO_OLD)
        return

    async def ask_leader(node: int, names: Sequence[TopicPartition]) -> None:
        source = asking.source(node)
        why = f"{source} did not tell the sizes of logs."

        async def ask(part: Sequence[TopicPartition]) -> None:
            kind, failed = ("sizes", [f"broker {node}"]) if one_failure_a_broker else ("partition", part)
            with asking.noting(kind, failed, source, why):
                topics = [
                    TopicPartitions(topic=topic, partitions=numbers)
                    for topic, numbers in by_topic(part).items()
                ]
                response, at = await asking.ask(node, DescribeLogDirsRequest(topics=topics))
                asking.seen.sizes += _rows(response, part, node, at, source)

        await each(chunks(names, asking.partitions_per_request), ask)

    await together(*(ask_leader(node, names) for node, names in by_leader.items()))


async def ask_offsets_topic_sizes(asking: Asking, leaders: Mapping[int, int]) -> None:
    """Adds the sizes of the partitions of the offsets topic; `leaders` by partition. One request a broker.

    Brokers before 1.0 are not asked. What is not told is told as little by `unasked`: one rule needs it.
    """
    names_by_leader: defaultdict[int, list[TopicPartition]] = defaultdict(list)
    for partition, leader in sorted(leaders.items()):
        if leader in asking.versions and _can_tell(asking, leader):
            names_by_leader[leader].append(TopicPartition(OFFSETS_TOPIC, partition))

    async def ask(node: int, names: Sequence[TopicPartition]) -> None:
        topics = [TopicPartitions(topic=OFFSETS_TOPIC, partitions=[name.partition for name in names])]
        try:
            response, at = await asking.ask(node, DescribeLogDirsRequest(topics=topics))
        except ClientError:
            return
        asking.seen.sizes += _rows(response, names, node, at, asking.source(node))

    await together(*(ask(node, names) for node, names in names_by_leader.items()))


def _can_tell(asking: Asking, node: int) -> bool:
    return node not in asking.versions or asking.versions[node].speaks(DescribeLogDirsRequest)


def _rows(
    response: DescribeLogDirsResponse, names: Iterable[TopicPartition], node: int, at: Instant, source: str
) -> list[LogSize]:
    """A row for each name. A replica that is being moved to another directory is there twice."""
    sizes = {
        (topic.name, row.partition_index): row.partition_size
        for result in response.results
        for topic in result.topics
        for row in topic.partitions
        if not row.is_future_key
    }
    errors = (result.error_code for result in response.results if result.error_code)
    # Brokers leave partitions out that they have no replica of, and those on a directory that failed.
    missing = response.error_code or next(errors, ErrorCode.REPLICA_NOT_AVAILABLE)
    return [
        LogSize(*name, size=sizes[name], node=node, at=at, source=source)
        if name in sizes
        else LogSize(*name, node=node, error=missing, at=at, source=source)
        for name in names
    ]


def with_settings(sizes: Iterable[LogSize], settings: Iterable[Setting]) -> list[LogSize]:
    """The rows, with the settings of their topics that say what is removed from a log."""
    policies, tiered = {}, set()
    for row in settings:
        topic = row.of.removeprefix("topic ")
        if row.name == _POLICY and topic != row.of:
            policies[topic] = row.value
        if row.name == _TIERED and topic != row.of and row.value == "true":
            tiered.add(topic)
    return [
        row._replace(cleanup_policy=policies.get(row.topic, ""), is_tiered=row.topic in tiered)
        for row in sizes
    ]
