"""Offsets of a group as one row: what one survey was told of it, and what it committed with one request.

10,000 groups with ten partitions each are 100,000 offsets in the survey, as many in the offsets topic, and as
many in each earlier survey that the store keeps. Hardly any is ever looked at by itself, for hardly any group
is ill. So rows of single partitions are made when somebody asks for them.

As plain data, groups with the same partitions, leader epochs or metadata share these.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, repeat
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from kelpie.model.names import PartitionNames, TopicPartition, same_object
from kelpie.model.time import Instant
from kelpie.observations.positions import Commit, Committed

_group = itemgetter(0)
_new = tuple.__new__  # Committed(...) would be a call of a Python function.
_SHARED = ("names", "leader_epochs", "metadata")
"""Fields in which many groups are alike."""


class GroupOffsets(NamedTuple):
    """The committed offsets of one group as its coordinator told them at one time, none with an error."""

    group: str
    names: tuple[TopicPartition, ...]
    offsets: tuple[int, ...]
    """One for each partition; so are the next two."""
    leader_epochs: tuple[int, ...]
    metadata: tuple[str, ...]
    at: Instant | None
    source: str = ""

    @property
    def rows(self) -> list[Committed]:
        """One for each partition."""
        group, names, _, _, _, at, source = self
        columns = zip(names, self.offsets, self.leader_epochs, self.metadata, strict=True)
        return [
            _new(Committed, (group, topic, partition, offset, 0, epoch, metadata, at, source))
            for (topic, partition), offset, epoch, metadata in columns
        ]


class GroupCommits(NamedTuple):
    """What one group committed at one time: records that follow each other in the offsets topic."""

    group: str
    names: tuple[TopicPartition, ...]
    offsets: tuple[int, ...]
    """One for each partition; so are the next three. NO_OFFSET: it was removed."""
    leader_epochs: tuple[int, ...]
    metadata: tuple[str, ...]
    topic_ids: tuple[str, ...]
    at: Instant | None
    transactional: bool
    partition: str
    """Where it was read: "broker 1 (kafka-1:9092), __consumer_offsets-7"."""
    numbers: Sequence[int]
    """The offsets of the records there."""

    @property
    def rows(self) -> list[Commit]:
        """One for each partition."""
        group, at, transactional, partition = self.group, self.at, self.transactional, self.partition
        columns = zip(
            self.names,
            self.offsets,
            self.leader_epochs,
            self.metadata,
            self.topic_ids,
            self.numbers,
            strict=True,
        )
        return [
            _new(
                Commit,
                (
                    group,
                    *name,
                    offset,
                    at,
                    epoch,
                    metadata,
                    None,
                    transactional,
                    f"{partition}@{number}",
                    topic_id,
                ),
            )
            for name, offset, epoch, metadata, topic_id, number in columns
        ]

    @property
    def source(self) -> str:
        """Of its first record."""
        return f"{self.partition}@{self.numbers[0]}"


def by_group(rows: Iterable[Committed]) -> tuple[list[GroupOffsets], list[Committed]]:
    """Rows of one survey, those of a group together; and those with an error, as they are."""
    names = PartitionNames()
    offsets: list[GroupOffsets] = []
    refused: list[Committed] = []
    for group, run in groupby(rows, _group):
        told = list(run)
        if any(row.error for row in told):
            refused += [row for row in told if row.error]
            told = [row for row in told if not row.error]
        if told:
            _, topics, partitions, values, _, epochs, metadata, times, sources = zip(*told, strict=True)
            places = names.several(tuple(zip(topics, partitions, strict=True)))
            offsets.append(GroupOffsets(group, places, values, epochs, metadata, times[0], sources[0]))
    return offsets, refused


def as_data(offsets: Sequence[GroupOffsets]) -> dict[str, Any]:
    """Ready for JSON, without time and source."""
    data: dict[str, Any] = {
        "groups": [row.group for row in offsets],
        "offsets": [row.offsets for row in offsets],
    }
    for field in _SHARED:
        numbers: dict[Any, int] = {}
        values = map(attrgetter(field), offsets)
        data[f"{field}_of"] = [numbers.setdefault(value, len(numbers)) for value in values]
        data[field] = list(numbers)
    return data


def from_data(data: Mapping[str, Any], at: Instant, source: str) -> list[GroupOffsets]:
    """Raises KeyError, TypeError, ValueError or IndexError where it is none."""
    names = [same_object(tuple(TopicPartition(*place) for place in places)) for places in data["names"]]
    epochs, metadata = (list(map(tuple, data[field])) for field in ("leader_epochs", "metadata"))
    rows = zip(
        data["groups"],
        [names[number] for number in data["names_of"]],
        map(tuple, data["offsets"]),
        [epochs[number] for number in data["leader_epochs_of"]],
        [metadata[number] for number in data["metadata_of"]],
        repeat(at),
        repeat(source),
        strict=False,
    )
    return [_new(GroupOffsets, row) for row in rows]
