"""Which leader wrote what: at which offset each leader epoch began (KIP-101, Kafka's LeaderEpochFileCache).

A replica that comes back asks the leader where the last epoch it knows ended. What it holds beyond that was
never committed, and is cut off.
"""

from bisect import bisect_right
from typing import NamedTuple

UNKNOWN_EPOCH = -1
UNKNOWN_OFFSET = -1


class LogEpochEnd(NamedTuple):
    """The end, exclusive, of the largest epoch that is not above the one asked for. (-1, -1): not known."""

    epoch: int
    end_offset: int


_UNKNOWN = LogEpochEnd(UNKNOWN_EPOCH, UNKNOWN_OFFSET)


class Epochs:
    def __init__(self) -> None:
        self._epochs: list[int] = []
        self._starts: list[int] = []

    @property
    def last(self) -> int:
        return self._epochs[-1] if self._epochs else UNKNOWN_EPOCH

    @property
    def entries(self) -> list[tuple[int, int]]:
        return list(zip(self._epochs, self._starts, strict=True))

    def assign(self, epoch: int, start: int) -> None:
        """A batch, or a new leader, says that `epoch` begins at `start`. The first report counts."""
        epochs, starts = self._epochs, self._starts
        if epochs and epochs[-1] == epoch and starts[-1] <= start:
            return
        while epochs and (epochs[-1] >= epoch or starts[-1] >= start):
            epochs.pop()
            starts.pop()
        epochs.append(epoch)
        starts.append(start)

    def end_offset_for(self, epoch: int, log_end: int) -> LogEpochEnd:
        if epoch == UNKNOWN_EPOCH or not self._epochs or epoch > self._epochs[-1]:
            return _UNKNOWN
        if epoch == self._epochs[-1]:
            return LogEpochEnd(epoch, log_end)
        higher = bisect_right(self._epochs, epoch)
        if higher == 0:
            # What it wrote is gone, by retention. The first offset that is left serves as its end.
            return LogEpochEnd(epoch, self._starts[0])
        return LogEpochEnd(self._epochs[higher - 1], self._starts[higher])

    def cut_for(self, leader_epoch: int, leader_end: int, log_end: int) -> tuple[int, bool]:
        """Where to truncate, given where the leader says that an epoch of its own ended, and if that is all.

        See getOffsetTruncationState of Kafka's AbstractFetcherThread.
        """
        ours = self.end_offset_for(leader_epoch, log_end)
        if ours.epoch == UNKNOWN_EPOCH:
            return min(leader_end, log_end), True
        if ours.epoch != leader_epoch:
            return min(ours.end_offset, log_end), False
        return min(ours.end_offset, leader_end, log_end), True

    def first_at(self, offset: int) -> int:
        """The first epoch, if it covers `offset`, where the log begins."""
        return self._epochs[0] if self._epochs and self._starts[0] <= offset else UNKNOWN_EPOCH

    def truncate_from_end(self, end: int) -> None:
        """Forget what began at `end` or later."""
        while self._starts and self._starts[-1] >= end:
            self._epochs.pop()
            self._starts.pop()

    def truncate_from_start(self, start: int) -> None:
        """Forget what ended before `start`; the epoch there now begins at `start`."""
        index = bisect_right(self._starts, start)
        if index:
            del self._epochs[: index - 1]
            del self._starts[: index - 1]
            self._starts[0] = start

    def clear(self) -> None:
        self._epochs.clear()
        self._starts.clear()
