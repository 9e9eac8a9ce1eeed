"""Which files there are, of which kind each is, and which of them the tables have: each counts once.

Files that are taken in together are a batch. Its list goes into `evidence_file` before any file is read, and
each table that the batch fills gets its number. After a killed run, the next one continues with the same
files under the same number, and no table gets rows twice. A file is identified by its path, its size and its
modification time; a file that has changed is taken in again. (Of segments of the offsets topic and of logs
only the new part is read: `segments.files`, `logs.progress`.)
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from kelpie.evidence.files import EvidenceFile, Search
from kelpie.evidence.recognition import Kind, recognise
from kelpie.evidence.unreadable import unreadable
from kelpie.model.time import Instant
from kelpie.observations import Unasked
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.tables.moments import instant, moment

FILES, LAST = TABLES["evidence_file"], TABLES["cluster_snapshot"]
"""`LAST`: the table that a batch fills last. A batch that it has is complete."""


@dataclass(frozen=True, slots=True)
class Item:
    """A file, its kinds, and the path that identifies it."""

    file: EvidenceFile
    path: str
    kinds: frozenset[Kind] = frozenset()
    reason: str = ""
    encoding: str = "utf-8"

    @property
    def identity(self) -> tuple[str, int, Instant | None]:
        return self.path, self.file.size, self.file.modified

    def row(self, cluster: str, batch: int) -> dict[str, object]:
        return {
            "cluster": cluster,
            "source": self.file.name,
            "path": self.path,
            "size": self.file.size,
            "modified": moment(self.file.modified),
            "kinds": sorted(self.kinds),
            "reason": self.reason or None,
            "batch": batch,
        }


@dataclass(slots=True)
class Inventory:
    items: list[Item] = field(default_factory=list)
    unopened: list[Unasked] = field(default_factory=list)
    """Files and archives that could not be opened."""

    def of(self, kind: Kind) -> list[Item]:
        return [item for item in self.items if kind in item.kinds]


@dataclass(frozen=True, slots=True)
class FileBatch:
    application: str
    number: int
    items: tuple[Item, ...]

    @property
    def snapshot(self) -> str:
        """The name of what its files say of the cluster, in `cluster_snapshot`."""
        return f"batch {self.number:06}"

    def of(self, kind: Kind) -> list[Item]:
        return [item for item in self.items if kind in item.kinds]


def take_inventory(paths: Iterable[Path], search: Search, room: Path) -> Inventory:
    """All files below the paths, and in archives there. `room`: a folder to unpack archives into."""
    inventory = Inventory()
    for file in search.files(paths):
        unpacked = room in file.path.parents
        path = file.name if unpacked else str(file.path.absolute())
        try:
            recognised = recognise(file)
            item = Item(file, path, recognised.kinds, recognised.reason, recognised.encoding)
        except OSError as error:
            item = Item(file, path, reason=unreadable(error))
        # The head of a file may be needed to describe a segment; for other kinds it is dropped.
        if Kind.SEGMENT not in item.kinds:
            item = replace(item, file=replace(file, head=b""))
        if Kind.COMPANION not in item.kinds:
            inventory.items.append(item)
    inventory.unopened = list(search.unasked)
    return inventory


def plan(lake: Lake, cluster: str, inventory: Inventory) -> list[FileBatch]:
    """The batches to do: those that a killed run began, then one with the new files."""
    application = f"kelpie evidence of {cluster}"
    ledger = _ledger(lake, cluster)
    newest = max(ledger.values(), default=0)
    done = max(0, lake.version_of(LAST, application))
    batches = []
    for number in range(done + 1, newest + 1):
        again = [item for item in inventory.items if ledger.get(item.identity) == number]
        batches.append(FileBatch(application, number, tuple(again)))
    new = [item for item in inventory.items if item.identity not in ledger]
    if new:
        batches.append(FileBatch(application, newest + 1, tuple(new)))
        rows = [item.row(cluster, newest + 1) for item in new]
        lake.append_rows(FILES, cluster, rows, application=application, version=newest + 1)
    return batches


def _ledger(lake: Lake, cluster: str) -> dict[tuple[str, int, Instant | None], int]:
    known = lake.rows(FILES, cluster).select(["path", "size", "modified", "batch"])
    return {(row["path"], row["size"], instant(row["modified"])): row["batch"] for row in known.to_pylist()}
