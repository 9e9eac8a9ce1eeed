"""The ends of offsets partitions as earlier looks have read them, so that the next look reads what is new.

What is kept are batches as brokers sent them. They are of no use when another broker leads the partition, or
when the log ends before what is kept: it may have been cut off. Then it is read anew.
"""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Window:
    """Consecutive whole batches of a partition."""

    start: int
    pieces: list[bytes] = field(default_factory=list)
    cost: int = 0
    """What their records come to when they are inflated."""


@dataclass(frozen=True, slots=True)
class Leadership:
    """The leader of a partition, and its leader epoch."""

    leader: int
    epoch: int


@dataclass(frozen=True, slots=True)
class _Tail:
    leadership: Leadership
    end: int
    windows: list[Window]


class KeptHistory:
    """For one cluster. Keeps twice as much of each partition as a look reads, at most."""

    def __init__(self) -> None:
        self._tails: dict[int, _Tail] = {}

    def windows(self, partition: int, leadership: Leadership, end: int) -> tuple[int, list[Window]]:
        """Up to which offset it was read, and the windows before that, the newest first. 0: nothing is kept.

        `end`: where the log ends now.
        """
        tail = self._tails.get(partition)
        if tail is None or tail.leadership != leadership or tail.end > end:
            return 0, []
        return tail.end, tail.windows

    def keep(
        self, partition: int, leadership: Leadership, end: int, windows: list[Window], most_bytes: int
    ) -> None:
        """`windows`: the newest first. Old ones are left out when the newer ones are enough for a look."""
        kept, cost = [], 0
        for window in windows:
            if cost >= most_bytes:
                break
            kept.append(window)
            cost += window.cost
        self._tails[partition] = _Tail(leadership, end, kept)
