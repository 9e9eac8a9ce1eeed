"""Records of moves: which group was given which new name, with which offsets. Undo acts on these alone.

A record is a JSON file in the state folder, written before the first offset is committed. A group that no
record names was not made by a move, and is not Kelpie's to delete.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.repair.undo_files import undo_file, undo_folder, write_whole

_FORMAT = "kelpie rehome"
_PREFIX = "rehome-"


@dataclass(frozen=True, slots=True)
class MoveRecord:
    """One move of a group to a new name."""

    cluster: str
    """The cluster's id; empty for Kafka before 0.10.1, which has none."""
    group: str
    new_name: str
    at: Instant
    offsets: Mapping[TopicPartition, int]
    """What was committed under the new name."""

    @property
    def file(self) -> Path:
        return undo_file(f"{_PREFIX}{self.new_name}", self.at, ".json")

    def write(self) -> None:
        """Raises OSError."""
        rows = [[*partition, offset] for partition, offset in sorted(self.offsets.items())]
        document = {
            "format": _FORMAT,
            "cluster": self.cluster,
            "group": self.group,
            "new_name": self.new_name,
            "at": self.at,
            "offsets": rows,
        }
        write_whole(self.file, json.dumps(document, indent=1) + "\n")

    def moved_on(self, offsets: Mapping[TopicPartition, int]) -> list[TopicPartition]:
        """Partitions in which the new name now has another offset than the move gave it."""
        return [name for name, offset in sorted(offsets.items()) if self.offsets.get(name) != offset]


def record_of(cluster: str, group: str, new_name: str) -> MoveRecord | None:
    """The newest record of this move; None: this machine's user has not made it."""
    records = (
        record
        for record in _read(undo_folder().glob(f"{_PREFIX}*.json"))
        if (record.cluster, record.group, record.new_name) == (cluster, group, new_name)
    )
    return max(records, key=lambda record: record.at, default=None)


def _read(files: Iterable[Path]) -> Iterator[MoveRecord]:
    """Files that are no records of moves are passed over."""
    for file in files:
        try:
            document = json.loads(file.read_text(encoding="utf-8"))
            if document["format"] != _FORMAT:
                continue
            offsets = {
                TopicPartition(str(topic), int(number)): int(offset)
                for topic, number, offset in document["offsets"]
            }
            cluster, group, new_name = (str(document[name]) for name in ("cluster", "group", "new_name"))
            yield MoveRecord(cluster, group, new_name, at=int(document["at"]), offsets=offsets)
        except (OSError, ValueError, TypeError, KeyError):
            continue
