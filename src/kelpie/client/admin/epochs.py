"""Where leader epochs end: whether records that a group has read are still those that the log holds.

Commits carry the leader epoch of the last record that was read. Where the leader has changed since, the
leader of today is asked where that epoch ends in its log (OffsetForLeaderEpoch, for clients since 2.1).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress

from kelpie.client.admin.asking import Asking, chunks, each, together
from kelpie.client.admin.topics import by_leader
from kelpie.client.client_errors import Unsupported
from kelpie.model.names import TopicPartition
from kelpie.observations import LeaderEpochEnd, Observations, PartitionView
from kelpie.questions.offset_for_leader_epoch import AskEpochEnds

_FOR_CLIENTS = 2
_ANY_EPOCH = -1
_MOST_EPOCHS = 10
"""Of one partition; groups that stand in older ones are few and far behind."""


async def ask_epochs(asking: Asking, best: Mapping[TopicPartition, PartitionView]) -> None:
    """Adds where the epochs of commits end, for those that are not of the leader of today."""
    older: defaultdict[TopicPartition, set[int]] = defaultdict(set)
    for name, epoch in _epochs_of_commits(asking.seen):
        view = best.get(name)
        if epoch >= 0 and view is not None and epoch < view.leader_epoch:
            older[view.name].add(epoch)
    if not older:
        return
    reached = {name for name in older if best[name].leader in asking.reached}
    leaders = by_leader(asking, best, reached)
    await together(*(_ask_leader(asking, node, names, older) for node, names in leaders.items()))


def _epochs_of_commits(seen: Observations) -> set[tuple[TopicPartition, int]]:
    """There may be 100,000s of commits; most have the same few epochs."""
    told = {(row.names, row.leader_epochs) for row in seen.group_offsets}
    found = {pair for names, epochs in told for pair in zip(names, epochs, strict=True)}
    return found | {(row.name, row.leader_epoch) for row in seen.committed if row.leader_epoch >= 0}


async def _ask_leader(
    asking: Asking, node: int, names: Sequence[TopicPartition], older: Mapping[TopicPartition, set[int]]
) -> None:
    """A request names a partition once: the first has each one's newest epoch, the second the next, …"""
    source = asking.source(node)
    newest_first = {name: sorted(older[name], reverse=True) for name in names}
    rounds = [
        [(name, epochs[number]) for name, epochs in newest_first.items() if number < len(epochs)]
        for number in range(_MOST_EPOCHS)
    ]

    async def ask(asked: Sequence[tuple[TopicPartition, int]]) -> None:
        question = AskEpochEnds({name: (_ANY_EPOCH, epoch) for name, epoch in asked}, _FOR_CLIENTS)
        answer, at = await asking.put(node, question)
        epochs = dict(asked)
        asking.seen.epoch_ends += [
            LeaderEpochEnd(*name, epochs[name], end.epoch, end.end_offset, end.error, at, source)
            for name, end in answer.items()
            if name in epochs
        ]

    why = f"Whether its log was cut off, {source} did not tell."
    # A release that does not know the request is so old that its commits carry no epochs.
    with asking.noting("partition", names, source, why), suppress(Unsupported):
        for asked in rounds:
            await each(chunks(asked, asking.partitions_per_request), ask)
