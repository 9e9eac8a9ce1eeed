"""Where leader epochs end: whether records that a group has read are still those that the log holds.

Commits carry the leader epoch of the last record that was read. Where the leader has changed since, the
leader of today is asked where that epoch ends in its log (OffsetForLeaderEpoch, for clients since 2.1).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from kelpie.client.failures import ClientError, Unsupported
from kelpie.client.survey.asking import Asking, chunks, each, together
from kelpie.client.survey.topics import leaders
from kelpie.model.names import TopicPartition
from kelpie.observations import EpochEnd, PartitionView
from kelpie.wire.api.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

_FOR_CLIENTS = 2
_CONSUMER = -1
_MOST_EPOCHS = 10
"""Of one partition; groups that stand in older ones are few and far behind."""


async def ask_epochs(asking: Asking, best: Mapping[TopicPartition, PartitionView]) -> None:
    """Adds where the epochs of commits end, for those that are not of the leader of today."""
    older: defaultdict[TopicPartition, set[int]] = defaultdict(set)
    for row in asking.seen.committed:
        epoch = row[5]
        if epoch >= 0:
            view = best.get(TopicPartition(row[1], row[2]))
            if view is not None and epoch < view.leader_epoch:
                older[view.name].add(epoch)
    if not older:
        return
    reached = {name for name in older if best[name].leader in asking.reached}
    by_leader = leaders(asking, dict(best), reached)
    await together(*(_ask_leader(asking, node, names, older) for node, names in by_leader.items()))


async def _ask_leader(
    asking: Asking, node: int, names: Sequence[TopicPartition], older: Mapping[TopicPartition, set[int]]
) -> None:
    """A request names a partition once, so the newest epoch of each goes into the first, and so on."""
    source = asking.source(node)
    rounds = [
        [(name, epochs[turn]) for name in names if turn < len(epochs := sorted(older[name], reverse=True))]
        for turn in range(_MOST_EPOCHS)
    ]

    async def ask(asked: Sequence[tuple[TopicPartition, int]]) -> None:
        topics: defaultdict[str, list[OffsetForLeaderPartition]] = defaultdict(list)
        for (topic, partition), epoch in asked:
            topics[topic].append(OffsetForLeaderPartition(partition=partition, leader_epoch=epoch))
        wanted = [OffsetForLeaderTopic(topic=topic, partitions=entries) for topic, entries in topics.items()]
        request = OffsetForLeaderEpochRequest(replica_id=_CONSUMER, topics=wanted)
        version = asking.versions[node].pick(OffsetForLeaderEpochRequest, at_least=_FOR_CLIENTS)
        response, at = await asking.ask(node, request, version)
        epochs = dict(asked)
        asking.seen.epoch_ends += [
            EpochEnd(
                topic.topic,
                entry.partition,
                epochs[TopicPartition(topic.topic, entry.partition)],
                entry.leader_epoch,
                entry.end_offset,
                entry.error_code,
                at,
                source,
            )
            for topic in response.topics
            for entry in topic.partitions
        ]

    try:
        for turn in rounds:
            await each(chunks(turn, asking.options.partitions_per_request), ask)
    except Unsupported:
        return  # The release is older than that; its commits carry no epochs anyway.
    except ClientError as error:
        reason = f"Whether its log was cut off, {source} did not tell. {error.reason}"
        asking.unasked("partition", [str(name) for name in names], reason, source)
