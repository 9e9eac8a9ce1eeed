"""Fetches with their true group, and the label that each was counted under."""

from dataclasses import dataclass

from kelpie.attribution.counters import AMBIGUOUS, UNKNOWN, Amount, Counters
from kelpie.model.names import TopicPartition


@dataclass(slots=True)
class Tally:
    """What became of the fetches, and of the mappings."""

    right: int = 0
    lost: int = 0
    """Counted without a label, though a group made the fetch."""
    wrong: int = 0
    """Counted for a group that did not make it."""
    ambiguous: int = 0
    uncounted: int = 0
    """The broker ended before it had counted them. Its other counters are gone too."""
    leaked: int = 0
    """Mappings that name a group without such a consumer, when everything has come to rest."""

    @property
    def counted(self) -> int:
        return self.right + self.lost + self.wrong + self.ambiguous

    def add(self, other: "Tally") -> None:
        self.right += other.right
        self.lost += other.lost
        self.wrong += other.wrong
        self.ambiguous += other.ambiguous
        self.uncounted += other.uncounted
        self.leaked += other.leaked


class Samples(Counters):
    """Counters that remember each fetch. Its number travels in the place of the bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.truths: list[str] = []
        self.labels: list[str | None] = []

    def fetch(self, group: str) -> Amount:
        """Note a fetch that a consumer of this group makes. A consumer without a group has the group ""."""
        self.truths.append(group)
        self.labels.append(None)
        return Amount(1, len(self.truths) - 1, 1)

    def count(self, partition: TopicPartition, group: str, amount: Amount) -> None:
        if self.labels[amount.bytes] is not None:
            raise AssertionError(f"Fetch {amount.bytes} of {partition} was counted twice.")
        self.labels[amount.bytes] = group

    def tally(self) -> Tally:
        tally = Tally()
        for truth, label in zip(self.truths, self.labels, strict=True):
            if label is None:
                tally.uncounted += 1
            elif label == truth:
                tally.right += 1
            elif label == UNKNOWN:
                tally.lost += 1
            elif label == AMBIGUOUS:
                tally.ambiguous += 1
            else:
                tally.wrong += 1
        return tally
