"""Transactions on one partition: which are open, what was aborted, and how far committed data goes.

Follows Kafka's ProducerStateManager (the last stable offset) and TransactionIndex (aborted transactions). A
transaction that has ended still holds the last stable offset back until its marker is below the high
watermark: before that, the marker may be lost.
"""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple

from kelpie.broker.log.producers import ProducerChanges, ProducerEntry

_KEPT_ENDED = 1024


class Aborted(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    """The offset of the marker."""
    last_stable_offset: int
    """What the last stable offset became with it: everything that began before has ended."""


class Transactions:
    def __init__(self) -> None:
        self._open: OrderedDict[int, int] = OrderedDict()  # producers by first offset, which only grow
        self._ended_at: list[int] = []  # offsets of markers
        self._ended_from: list[int] = []  # first offsets of the same transactions
        self.aborted: list[Aborted] = []
        self._aborted_at: list[int] = []

    @property
    def first_open(self) -> int | None:
        return next(iter(self._open), None)

    def accept(self, changes: ProducerChanges) -> None:
        for first_offset, producer_id in changes.begun:
            self._open[first_offset] = producer_id
        for producer_id, first_offset, last_offset, aborted in changes.ended:
            self._open.pop(first_offset, None)
            self._ended_at.append(last_offset)
            self._ended_from.append(first_offset)
            if aborted:
                stable = self.first_open
                self._keep(
                    Aborted(
                        producer_id, first_offset, last_offset, last_offset + 1 if stable is None else stable
                    )
                )

    def first_unstable(self, high_watermark: int) -> int | None:
        """The first offset of a transaction that is open, or whose end may still be lost."""
        index = bisect_left(self._ended_at, high_watermark)
        unstable = min(self._ended_from[index:], default=None)
        first_open = self.first_open
        if index > _KEPT_ENDED:  # Below the high watermark nothing is lost any more.
            del self._ended_at[:index], self._ended_from[:index]
        if unstable is None or first_open is None:
            return first_open if unstable is None else unstable
        return min(unstable, first_open)

    def aborted_between(self, first: int, last: int) -> list[tuple[int, int]]:
        """Transactions that overlap with `first` up to `last`, exclusive: producer and first offset."""
        overlapping = []
        for index in range(bisect_left(self._aborted_at, first), len(self.aborted)):
            aborted = self.aborted[index]
            if aborted.first_offset < last:
                overlapping.append((aborted.producer_id, aborted.first_offset))
            if aborted.last_stable_offset >= last:
                break
        return overlapping

    def truncate_to(self, offset: int, producers: Iterable[ProducerEntry]) -> None:
        """Forget the markers from `offset` on. What they had ended is open again, as the producers say."""
        index = bisect_left(self._ended_at, offset)
        del self._ended_at[index:], self._ended_from[index:]
        index = bisect_left(self._aborted_at, offset)
        del self.aborted[index:], self._aborted_at[index:]
        begun = ((entry.transaction_start, entry.producer_id) for entry in producers)
        self._open = OrderedDict(sorted((start, producer) for start, producer in begun if start is not None))

    def forget_before(self, offset: int) -> None:
        """The log now begins at `offset`."""
        index = bisect_left(self._aborted_at, offset)
        del self.aborted[:index], self._aborted_at[:index]
        index = bisect_left(self._ended_at, offset)
        del self._ended_at[:index], self._ended_from[:index]

    def replace_aborted(self, aborted: Iterable[Aborted]) -> None:
        """The cleaner has removed some of them altogether."""
        self.aborted = []
        self._aborted_at = []
        for entry in aborted:
            self._keep(entry)

    def _keep(self, aborted: Aborted) -> None:
        self.aborted.append(aborted)
        self._aborted_at.append(aborted.last_offset)
