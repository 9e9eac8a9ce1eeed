"""Groups that stand at the end of each log they read, and whose rows show nothing else: nearly all groups.

Their rows are compared a run at a time, and never one by one. Where that does not settle it, the answer is
None: then `glances` looks at each row.
"""

from collections.abc import Mapping, Sequence
from operator import le
from typing import NamedTuple

from kelpie.doctor.case import Case
from kelpie.doctor.group_positions import Positions, Run, has_errors, runs_of, topic_ids
from kelpie.doctor.partition_order import PartitionOrder
from kelpie.doctor.signs import Sign
from kelpie.model.names import TopicPartition
from kelpie.observations import Commit, Committed
from kelpie.observations.group_offsets import GroupOffsets

ANYWHERE = Sign.BEHIND | Sign.MOVED_BACK
"""Where the group stands does not follow from its newest rows alone."""


class ReadPartition(NamedTuple):
    """What is the same for all groups that read a partition."""

    signs: int
    start: int
    latest: int
    epoch: int
    epoch_ends: Mapping[int, int]
    """By leader epoch before the present one: up to where the log has what was written in it."""
    topic_id: str
    is_topic_proven: bool
    """Looks at different times saw the topic, or nobody asks for topics."""
    is_gone: bool

    def has(self, offset: int, epoch: int) -> bool:
        """Whether the log, as it is now, has what was before this offset in this leader epoch."""
        return epoch == self.epoch or offset <= self.epoch_ends.get(epoch, -1)


class ReadTogether:
    """Partitions that a group reads: most groups read the same ones as many others."""

    def __init__(
        self,
        order: PartitionOrder,
        partitions: Mapping[TopicPartition, ReadPartition],
        of_topics: int,
    ) -> None:
        self._order = order
        self.partitions = list(partitions.values())
        self.of_topics = of_topics
        """Signs of a group that has offsets in all of these partitions and in no others."""
        self.signs = of_topics
        for partition in self.partitions:
            self.signs |= partition.signs
        self._latest = tuple(partition.latest for partition in self.partitions)
        self._is_proven = all(partition.is_topic_proven for partition in self.partitions)
        self._is_plain = not self.signs & ANYWHERE and all(
            partition.latest >= 0 and partition.start <= partition.latest for partition in self.partitions
        )
        self._epoch_signs: dict[tuple[int, ...], int | None] = {}

    def signs_of_plain(self, case: Case) -> int | None:
        """None: the group may be anything. Else it is what a look at each row would find."""
        runs = runs_of(case.committed, case.commits, case.committed_over_time) if self._is_plain else None
        if runs is None:
            return None
        told, commits, looks = runs
        if told.offsets != self._latest or has_errors(told):
            return None
        if case.rest_began is None and not self._has_grown(commits, looks):
            return None
        epochs = _leader_epochs(told)
        if epochs not in self._epoch_signs:
            self._epoch_signs[epochs] = self._signs_of(epochs)
        of_epochs = self._epoch_signs[epochs]
        if of_epochs == Sign.NO_EPOCH and not self._is_proven:
            ids = topic_ids(commits[-1]) if commits else ()
            if not ids or not all(ids):
                return None
        return None if of_epochs is None else self.signs | of_epochs

    def _signs_of(self, epochs: tuple[int, ...]) -> int | None:
        """Of committed offsets with these leader epochs at the ends of the logs."""
        if max(epochs) < 0:
            return Sign.NO_EPOCH
        places = zip(self.partitions, self._latest, epochs, strict=True)
        return 0 if all(partition.has(latest, epoch) for partition, latest, epoch in places) else None

    def _has_grown(self, commits: Sequence[Run[Commit]], looks: Sequence[Run[Committed]]) -> bool:
        """To the present offsets, of the present topics, and never back."""
        return (
            self._only_grow(commits)
            and self._only_grow(looks)
            and not (commits and self._order.committed(commits[-1]) is None)
        )

    def _only_grow(self, runs: Sequence[Run[Commit] | Run[Committed]]) -> bool:
        """Whether the offsets never went back, and are the present ones in the last run."""
        before: tuple[int, ...] | None = None
        for run in runs:
            offsets = self._order.values(run.names, run.offsets)
            if offsets is None or run.at is None:
                return False
            if before is not None and before != offsets and not all(map(le, before, offsets)):
                return False
            if before is None and min(offsets) < 0:
                return False
            before = offsets
        return before is None or before == self._latest


def were_told_twice(looks: Mapping[TopicPartition, tuple[Committed, ...]]) -> bool:
    """Whether two surveys told the offsets of a plain group."""
    return isinstance(looks, Positions) and len(looks.runs) > 1 and not any(map(has_errors, looks.runs[-2:]))


def _leader_epochs(told: Run[Committed]) -> tuple[int, ...]:
    if isinstance(told, GroupOffsets):
        return told.leader_epochs
    return tuple(row.leader_epoch for row in told.rows)
