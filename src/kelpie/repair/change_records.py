"""Records of what Kelpie has changed in clusters, one file for each repair. `kelpie undo` acts on them alone.

A record is written before the first change, and says what was there before and what the repair leaves. To
undo is to go back from the one to the other, which is a change with a record of its own. A record is never
changed: whether it was undone is seen from the record that names it.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kelpie.client.nodes import Nodes
from kelpie.client.survey import wall_clock
from kelpie.model.names import TopicPartition
from kelpie.model.quoting import quoted
from kelpie.model.time import Instant, utc
from kelpie.repair.claims import Claim, ClaimKind
from kelpie.repair.mapping_undo import NodeChange
from kelpie.repair.plan import NOTHING_CHANGES, ManualStep, Step
from kelpie.repair.undo_files import create, undo_folder

_FORMAT = "kelpie change 1"
_LONGEST_NAME = 60
_NO_RECORD = (
    OSError,
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    StopIteration,
    RecursionError,  # JSON that is nested thousands of times,
    OverflowError,  # and 1e400, which is infinite.
)


@dataclass(frozen=True, slots=True)
class StoredOffset:
    """A committed offset with all that a commit carries."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""

    @classmethod
    def of(cls, claim: Claim) -> "StoredOffset":
        return cls(claim.offset, claim.leader_epoch, claim.metadata)

    def claim(self, partition: TopicPartition) -> Claim:
        epoch, metadata = self.leader_epoch, self.metadata
        kind = ClaimKind.GIVEN
        return Claim(partition, self.offset, "", kind=kind, leader_epoch=epoch, metadata=metadata)


Offsets = Mapping[TopicPartition, StoredOffset | None]


@dataclass(frozen=True, slots=True)
class OffsetsChange:
    """Committed offsets of one group. None: nothing is committed."""

    before: Offsets
    after: Offsets
    makes_group: bool = False
    """There was no such group before: undoing takes all of it away."""

    @property
    def planned(self) -> dict[TopicPartition, int | None]:
        """The offsets that are there when the plan is made."""
        return {name: None if was is None else was.offset for name, was in self.before.items()}

    def as_data(self) -> dict[str, Any]:
        rows = [
            [*name, _stored(self.before.get(name)), _stored(self.after.get(name))]
            for name in sorted({*self.before, *self.after})
        ]
        return {"offsets": rows, "makes_group": self.makes_group}

    @classmethod
    def of_data(cls, data: Mapping[str, Any]) -> "OffsetsChange":
        before, after = {}, {}
        for topic, number, was, became in data["offsets"]:
            name = TopicPartition(str(topic), int(number))
            before[name], after[name] = _offset_of(was), _offset_of(became)
        return cls(before, after, bool(data["makes_group"]))


@dataclass(frozen=True, slots=True)
class ReplicasChange:
    """The replicas of partitions of the offsets topic."""

    before: Mapping[int, tuple[int, ...]]
    after: Mapping[int, tuple[int, ...]]
    zookeeper: str = ""
    """Through which they were moved, before Kafka 2.4."""
    throttle: int = 0
    """The limit that was set for the copying, in bytes a second; 0: none."""

    def as_data(self) -> dict[str, Any]:
        rows = [
            [number, list(self.before[number]), list(self.after[number])] for number in sorted(self.before)
        ]
        return {"replicas": rows, "zookeeper": self.zookeeper, "throttle": self.throttle}

    @classmethod
    def of_data(cls, data: Mapping[str, Any]) -> "ReplicasChange":
        rows = [
            (int(number), tuple(map(int, was)), tuple(map(int, became)))
            for number, was, became in data["replicas"]
        ]
        before = {number: was for number, was, _ in rows}
        after = {number: became for number, _, became in rows}
        return cls(before, after, str(data["zookeeper"]), int(data["throttle"]))


@dataclass(frozen=True, slots=True)
class MappingsChange:
    """Nodes of KoP's tree in ZooKeeper."""

    zookeeper: str
    root: str
    nodes: tuple[NodeChange, ...]

    def as_data(self) -> dict[str, Any]:
        rows = [change.as_data() for change in self.nodes]
        return {"mappings": rows, "zookeeper": self.zookeeper, "root": self.root}

    @classmethod
    def of_data(cls, data: Mapping[str, Any]) -> "MappingsChange":
        nodes = tuple(NodeChange.of_data(row) for row in data["mappings"])
        return cls(str(data["zookeeper"]), str(data["root"]), nodes)


@dataclass(frozen=True, slots=True)
class NoWayBack:
    """A change that nothing undoes; `why` says so to a person."""

    why: str

    def as_data(self) -> dict[str, Any]:
        return {"why_not": self.why}

    @classmethod
    def of_data(cls, data: Mapping[str, Any]) -> "NoWayBack":
        return cls(str(data["why_not"]))


Change = OffsetsChange | ReplicasChange | MappingsChange | NoWayBack
_KINDS: Mapping[str, Callable[[Mapping[str, Any]], Change]] = {
    "offsets": OffsetsChange.of_data,
    "replicas": ReplicasChange.of_data,
    "mappings": MappingsChange.of_data,
    "why_not": NoWayBack.of_data,
}
"""How a change is read, by a field that only changes of its kind have."""


@dataclass(frozen=True, slots=True)
class ChangeRecord:
    """One repair: where, when, on what, and what it changed."""

    cluster: str
    """The cluster's id; empty for Kafka before 0.10.1, which has none."""
    bootstrap: str
    command: str
    subject: str
    """The group, or what else was changed."""
    at: Instant
    what: str
    """The title of the plan."""
    change: Change = field(compare=False)
    undoes: str = ""
    """The id of the record that this change took back."""

    @property
    def id(self) -> str:
        """Names that differ in any character, or repairs at different times, have different ids."""
        key = json.dumps([self.cluster, self.bootstrap, self.command, self.subject, self.at, self.undoes])
        return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:10]

    @property
    def file(self) -> Path:
        when = utc(self.at).strftime("%Y%m%dT%H%M%SZ")
        plain = re.sub(r"[^A-Za-z0-9._-]+", "_", self.subject)[:_LONGEST_NAME] or "_"
        return undo_folder() / f"{when}-{self.command.replace(' ', '-')}-{plain}-{self.id}.json"

    @property
    def checksum(self) -> str:
        """Of all that an undo acts on: one record's offsets must never be taken for another group's."""
        key = json.dumps([self.id, self.what, self.change.as_data()])
        return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()

    def write(self) -> None:
        """Raises OSError, also where this very record is there already."""
        document = {
            "format": _FORMAT,
            "id": self.id,
            "cluster": self.cluster,
            "bootstrap": self.bootstrap,
            "command": self.command,
            "subject": self.subject,
            "at": self.at,
            "what": self.what,
            "undoes": self.undoes,
            "change": self.change.as_data(),
            "sum": self.checksum,
        }
        create(self.file, json.dumps(document, indent=1) + "\n")

    @property
    def step(self) -> Step:
        """The first step of a repair; `note` does it."""
        return Step(
            f"Note the change in {self.file}", "A file on this machine; undo needs it.", NOTHING_CHANGES
        )

    @property
    def way_back(self) -> ManualStep:
        line = f"kelpie undo -b {quoted(self.bootstrap)} {self.id}"
        return ManualStep(
            "Take it back, as long as nothing has changed since (the plan comes first):", (line,)
        )

    async def note(self) -> str:
        """The action of a repair's first step."""
        self.write()
        return f"Noted in {self.file}."


def record_of(
    nodes: Nodes, command: str, subject: str, what: str, change: Change, *, undoes: str = ""
) -> ChangeRecord:
    """A record of this moment in this cluster."""
    bootstrap = nodes.settings.bootstrap_servers
    cluster = nodes.cluster_id or ""
    return ChangeRecord(cluster, bootstrap, command, subject, wall_clock(), what, change, undoes)


def records() -> list[ChangeRecord]:
    """All records of this machine's user, the oldest first.

    Files that are no records are passed over, and so are records that somebody has changed.
    """
    found = [record for file in undo_folder().glob("*.json") if (record := _read(file)) is not None]
    return sorted(found, key=lambda record: (record.at, record.id))


def _read(file: Path) -> ChangeRecord | None:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        if document["format"] != _FORMAT:
            return None
        data = document["change"]
        read_change = next(read for name, read in _KINDS.items() if name in data)
        names = ("cluster", "bootstrap", "command", "subject")
        cluster, bootstrap, command, subject = (str(document[name]) for name in names)
        at, what, undoes = int(document["at"]), str(document["what"]), str(document["undoes"])
        record = ChangeRecord(cluster, bootstrap, command, subject, at, what, read_change(data), undoes)
        is_whole = document["id"] == record.id and document.get("sum", record.checksum) == record.checksum
        return record if is_whole else None  # Records of the first release have no sum.
    except _NO_RECORD:
        return None


def _stored(offset: StoredOffset | None) -> list[object] | None:
    return None if offset is None else [offset.offset, offset.leader_epoch, offset.metadata]


def _offset_of(row: Any) -> StoredOffset | None:
    if row is None:
        return None
    offset, epoch, metadata = row
    return StoredOffset(int(offset), int(epoch), str(metadata))
