"""What consumers read, by topic, partition and group: the counters that KoP exports."""

from operator import add
from typing import NamedTuple

from kelpie.model.names import TopicPartition

AMBIGUOUS = "ambiguous"
"""The label of a fetch that two or more groups may have made."""
UNKNOWN = ""
"""The label of a fetch if nothing tells its group. KoP exports it as `group=""`."""


class Amount(NamedTuple):
    """What one fetch carried. An entry is what Pulsar stores: one batch of messages."""

    messages: int
    bytes: int
    entries: int

    def plus(self, other: "Amount") -> "Amount":
        return Amount(*map(add, self, other))


class Series(NamedTuple):
    topic: str
    partition: int
    group: str


class Counters:
    """Counters of one broker. Like KoP's, they begin at zero with the broker, and no series ever ends."""

    def __init__(self) -> None:
        self.amounts: dict[Series, Amount] = {}

    def count(self, partition: TopicPartition, group: str, amount: Amount) -> None:
        series = Series(partition.topic, partition.partition, group)
        before = self.amounts.get(series)
        self.amounts[series] = amount if before is None else before.plus(amount)
