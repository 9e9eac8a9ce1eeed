"""Topics: how brokers see their partitions, and which broker leads each of them."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from kelpie.client.admin.asking import Asking, TimedAnswer, chunks, together
from kelpie.client.client_errors import ClientError
from kelpie.errors import ErrorCode, describe
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import OFFSETS_TOPIC, PartitionView, TopicView
from kelpie.observations.cluster import NO_LEADER
from kelpie.observations.group_epochs import topic_id_text
from kelpie.questions.metadata import AskMetadata
from kelpie.wire.api.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponseTopic,
    TopicRequest,
)
from kelpie.wire.api.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from kelpie.wire.schema import NO_UUID

_TOPICS_PER_REQUEST = 1000
_MOST_PAGES = 50


def views_of(
    topic: MetadataResponseTopic | DescribeTopicPartitionsResponseTopic, node: int, at: Instant, source: str
) -> list[PartitionView]:
    name = topic.name or ""
    return [
        PartitionView(
            name,
            partition.partition_index,
            partition.leader_id,
            tuple(partition.replica_nodes),
            tuple(partition.isr_nodes),
            partition.error_code,
            partition.leader_epoch,
            tuple(partition.offline_replicas),
            tuple(getattr(partition, "eligible_leader_replicas", None) or ()),
            node,
            at,
            source,
        )
        for partition in topic.partitions
    ]


def topic_row(
    topic: MetadataResponseTopic, node: int, at: Instant, source: str, *, by_name: bool = True
) -> TopicView:
    topic_id = topic_id_text(topic.topic_id) if topic.topic_id != NO_UUID else ""
    return TopicView(topic.name or "", topic_id, topic.error_code, by_name, node, at, source)


def best_views(views: Iterable[PartitionView]) -> dict[TopicPartition, PartitionView]:
    """Of each partition, the view with the newest leader epoch; before 2.1, the view of most brokers."""
    by_partition: defaultdict[TopicPartition, list[PartitionView]] = defaultdict(list)
    for view in views:
        if view.partition >= 0:
            by_partition[view.name].append(view)
    return {name: rows[0] if len(rows) == 1 else _best(rows) for name, rows in by_partition.items()}


def _best(views: Sequence[PartitionView]) -> PartitionView:
    votes = Counter(view.leader for view in views)
    return max(views, key=lambda view: (view.leader_epoch, votes[view.leader], view.leader == view.told_by))


async def ask_metadata(asking: Asking, node: int, topics: Sequence[str] | None) -> TimedAnswer:
    """One broker's metadata of these topics (None: of all); it creates no topic. Raises ClientError.

    A broker before Kafka 2.1 is asked for all topics, and the answer is kept in `asking.all_topics`.
    """
    version = asking.versions[node].pick(MetadataRequest)
    question = AskMetadata(None if topics is None else tuple(topics))
    response, at = await asking.ask(node, question.request(version), version)
    if not question.names_topics(version):
        asking.all_topics[node] = {topic.name or "": topic for topic in response.topics}
    return response, at


async def ask_offsets_topic(asking: Asking, node: int) -> MetadataResponse:
    """Adds one broker's view of the offsets topic. Raises ClientError.

    A topic that does not exist is a row with partition −1.
    """
    response, at = await ask_metadata(asking, node, [OFFSETS_TOPIC])
    source = asking.source(node)
    topic = next((topic for topic in response.topics if topic.name == OFFSETS_TOPIC), None)
    if topic is None or topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        missing = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        asking.seen.partitions.append(
            PartitionView(OFFSETS_TOPIC, -1, NO_LEADER, (), (), missing, told_by=node, at=at, source=source)
        )
    elif topic.error_code:
        asking.unasked("topic", [OFFSETS_TOPIC], f"{source} answers {describe(topic.error_code)}", source)
    else:
        asking.seen.partitions += views_of(topic, node, at, source)
        asking.seen.topics.append(topic_row(topic, node, at, source))
    metadata: MetadataResponse = response
    return metadata


async def ask_topics(
    asking: Asking, names: Sequence[str], most_views: int, *, only_existing: bool = False
) -> None:
    """Every broker's view of these topics, up to so many rows; beyond that, the views of two brokers.

    `only_existing`: one broker is asked, and only rows of topics that are there are kept.
    """
    wanted = [name for name in names if name != OFFSETS_TOPIC]
    if not wanted:
        return
    if only_existing:
        before = len(asking.seen.topics)
        for node in asking.reached[:1]:
            await ask_views(asking, node, wanted, {})
        asking.seen.topics[before:] = [row for row in asking.seen.topics[before:] if not row.error]
        return
    brokers = list(asking.reached)
    unknown: dict[str, str] = {}
    count: int | None = None
    while brokers and count is None:
        count = await ask_views(asking, brokers.pop(0), wanted, unknown)
    fits = most_views // max(count or 0, 1)

    async def ask_another(node: int) -> None:
        await ask_views(asking, node, wanted, {})

    await together(*map(ask_another, brokers[: max(fits, 2) - 1]))
    for name, reason in unknown.items():
        asking.unasked("topic", [name], reason)


async def ask_views(asking: Asking, node: int, wanted: Sequence[str], unknown: dict[str, str]) -> int | None:
    """Adds one broker's views; returns how many, or None if the broker did not answer.

    Topics for which the broker answers an error go into `unknown`, with the reason.
    """
    source = asking.source(node)
    views: list[PartitionView] = []
    names = set(wanted)
    for part in chunks(wanted, _TOPICS_PER_REQUEST):
        all_topics = asking.all_topics.get(node)
        if all_topics is not None:
            at = asking.clock()
            topics = [all_topics[name] for name in part if name in all_topics]
            missing = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            asking.seen.topics += [
                TopicView(name, "", missing, False, node, at, source)
                for name in part
                if name not in all_topics
            ]
        else:
            try:
                response, at = await ask_metadata(asking, node, part)
            except ClientError:
                return None
            topics = [topic for topic in response.topics if topic.name in names]
        for topic in topics:
            views += views_of(topic, node, at, source)
            asking.seen.topics.append(topic_row(topic, node, at, source, by_name=all_topics is None))
            if topic.error_code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                unknown[topic.name or ""] = f"{source} answers {describe(topic.error_code)}"
    asking.seen.partitions += views
    return len(views)


async def ask_eligible(asking: Asking, topics: Iterable[str]) -> None:
    """Adds views of topics with the replicas that may still lead their partitions (KIP-966, Kafka 4)."""
    names = sorted(topics)
    for node in asking.reached if names else ():
        if asking.versions[node].speaks(DescribeTopicPartitionsRequest):
            try:
                for part in chunks(names, _TOPICS_PER_REQUEST):
                    await _ask_eligible(asking, node, part)
            except ClientError:
                continue  # The broker is silent now, and its other rows say so.
            return


async def _ask_eligible(asking: Asking, node: int, topics: Sequence[str]) -> None:
    cursor: Cursor | None = None
    source = asking.source(node)
    for _ in range(_MOST_PAGES):
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in topics], cursor=cursor
        )
        response, at = await asking.ask(node, request)
        for topic in response.topics:
            asking.seen.partitions += views_of(topic, node, at, source)
        cursor = response.next_cursor
        if cursor is None:
            return


def by_leader(
    asking: Asking, best: Mapping[TopicPartition, PartitionView], names: Iterable[TopicPartition]
) -> dict[int, list[TopicPartition]]:
    """Partitions by the broker to ask. A partition whose leader cannot be asked becomes an Unasked row."""
    partitions: defaultdict[int, list[TopicPartition]] = defaultdict(list)
    reached = set(asking.reached)
    for name in names:
        view = best.get(name)
        if view is None:
            continue  # The topic is deleted; it is missing among the views.
        if view.leader in reached:
            partitions[view.leader].append(name)
        elif view.leader < 0:
            asking.unasked("partition", [str(name)], f"{name} has no leader.", view.source)
        else:
            reason = f"Its leader, broker {view.leader}, cannot be asked. {asking.why_not(view.leader)}"
            asking.unasked("partition", [str(name)], reason, view.source)
    return dict(partitions)
