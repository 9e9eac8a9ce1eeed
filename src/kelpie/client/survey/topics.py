"""The topics that groups read: how brokers see their partitions, and who leads them."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kelpie.client.failures import ClientError
from kelpie.client.survey.asking import Asking, chunks, together
from kelpie.errors import ErrorCode, describe
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import OFFSETS_TOPIC, PartitionView
from kelpie.wire.api.describe_topic_partitions import DescribeTopicPartitionsResponseTopic
from kelpie.wire.api.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponseTopic

if TYPE_CHECKING:
    from kelpie.client.survey.brokers import FirstRound

_TOPICS_PER_REQUEST = 1000


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


def best_views(views: Iterable[PartitionView]) -> dict[TopicPartition, PartitionView]:
    """Of each partition, the view of who knows most of its elections; before 2.1, that of most brokers."""
    told: defaultdict[TopicPartition, list[PartitionView]] = defaultdict(list)
    for view in views:
        if view.partition >= 0:
            told[view.name].append(view)
    return {name: own[0] if len(own) == 1 else _best(own) for name, own in told.items()}


def _best(views: Sequence[PartitionView]) -> PartitionView:
    said: defaultdict[int, int] = defaultdict(int)
    for view in views:
        said[view.leader] += 1
    return max(views, key=lambda view: (view.leader_epoch, said[view.leader], view.leader == view.told_by))


async def ask_topics(asking: Asking, first: "FirstRound", names: Sequence[str]) -> None:
    """Every broker's view, as long as that is not too much; else two brokers'."""
    wanted = [name for name in names if name != OFFSETS_TOPIC]
    if not wanted:
        return
    tellers = list(asking.reached)
    unknown: dict[str, str] = {}
    found: int | None = None
    while tellers and found is None:
        found = await _ask_views(asking, first, tellers.pop(0), wanted, unknown)
    fits = asking.options.most_views // max(found or 0, 1)
    await together(*(_ask_quietly(asking, first, node, wanted) for node in tellers[: max(fits, 2) - 1]))
    for name, reason in unknown.items():
        asking.unasked("topic", [name], reason)


async def _ask_quietly(asking: Asking, first: "FirstRound", node: int, wanted: Sequence[str]) -> None:
    await _ask_views(asking, first, node, wanted, {})


async def _ask_views(
    asking: Asking, first: "FirstRound", node: int, wanted: Sequence[str], unknown: dict[str, str]
) -> int | None:
    """How many partitions were told of; None: no answer. Topics that are kept from us go into `unknown`."""
    source = asking.source(node)
    told: list[PartitionView] = []
    known = first.all_topics.get(node)
    if known is not None:
        at = asking.clock()
        told = [view for name in wanted if name in known for view in views_of(known[name], node, at, source)]
    else:
        for part in chunks(wanted, _TOPICS_PER_REQUEST):
            request = MetadataRequest(
                topics=[MetadataRequestTopic(name=name) for name in part], allow_auto_topic_creation=False
            )
            try:
                response, at = await asking.ask(node, request)
            except ClientError:
                return None
            for topic in response.topics:
                told += views_of(topic, node, at, source)
                if topic.error_code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                    unknown[topic.name or ""] = f"{source} answers {describe(topic.error_code)}"
    asking.seen.partitions += told
    return len(told)


def leaders(
    asking: Asking, best: dict[TopicPartition, PartitionView], names: Iterable[TopicPartition]
) -> dict[int, list[TopicPartition]]:
    """Partitions by the broker to ask. Those that nobody can be asked about become rows that say so."""
    by_leader: defaultdict[int, list[TopicPartition]] = defaultdict(list)
    reached = set(asking.reached)
    for name in names:
        view = best.get(name)
        if view is None:
            continue  # A topic that is gone; its absence among the views tells.
        if view.leader in reached:
            by_leader[view.leader].append(name)
        elif view.leader < 0:
            asking.unasked("partition", [str(name)], f"{name} has no leader.", view.source)
        else:
            reason = f"Its leader, broker {view.leader}, cannot be asked. {asking.why_not(view.leader)}"
            asking.unasked("partition", [str(name)], reason, view.source)
    return dict(by_leader)
