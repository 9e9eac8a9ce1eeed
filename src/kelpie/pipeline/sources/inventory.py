"""Which files there are, of which kind each is, and which of them the tables have: each counts once.

Files that are taken in together are a batch. Its list goes into `evidence_file` before any file is read, and
each table that the batch fills gets its number. After a killed run, the next one continues with the same
files under the same number, and no table gets rows twice. A file is identified by its path, its size and its
modification time; a file that has changed is taken in again. (Of segments of the offsets topic and of logs
only the new part is read: `segments.files`, `logs.progress`.)
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow.compute as pc

from kelpie.evidence.archives import Budget
from kelpie.evidence.files import EvidenceFile, Search
from kelpie.evidence.recognition import Kind, recognise
from kelpie.evidence.unreadable import unreadable
from kelpie.model.time import Instant
from kelpie.observations import Unasked
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.tables.moments import instant, moment
from kelpie.places import Place

FILES, LAST = TABLES["evidence_file"], TABLES["cluster_snapshot"]
"""`LAST`: the table that a batch fills last. A batch that it has is complete."""
_DONE_WITH = {Kind.SURVEY, Kind.SCRAPE}
"""Of these, a run looks only at those that are new. They are most of what a stream finds in a folder."""


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


Known = Mapping[tuple[str, int, Instant | None], frozenset[Kind]]
"""Kinds of files that tables have, by what identifies a file."""


def known_files(lake: Lake, cluster: str) -> Known:
    """Files of batches that are complete, of kinds that a later run has no need to look at again."""
    done = lake.version_of(LAST, _application(cluster))
    rows = lake.rows(FILES, cluster, pc.field("batch") <= done).to_pylist()
    return {
        (row["path"], row["size"], instant(row["modified"])): frozenset(map(Kind, row["kinds"]))
        for row in rows
        if row["modified"] is not None and row["kinds"] and _DONE_WITH.issuperset(row["kinds"])
    }


def look(paths: Iterable[Place], room: Path, known: Known) -> Inventory:
    """All files below the paths. Those of a store that are known are not opened.

    Each one that is opened costs a request, in every round of a stream.
    """
    search = Search(room, Budget(), lambda path, *state: (str(path), *state) in known)
    return take_inventory(paths, search, room, known)


def take_inventory(
    paths: Iterable[Place], search: Search, room: Path, known: Known | None = None
) -> Inventory:
    """All files below the paths, and in archives there. `room`: a folder to unpack archives into.

    `known`: files of a store that were not opened (`Search`).
    """
    inventory = Inventory()
    for file in search.files(paths):
        unpacked = isinstance(file.path, Path) and room in file.path.parents
        path = file.name if unpacked else str(file.path.absolute())
        kinds = (known or {}).get((path, file.size, file.modified))
        if kinds and not isinstance(file.path, Path):
            inventory.items.append(Item(file, path, kinds))
            continue
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
    application = _application(cluster)
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


def _application(cluster: str) -> str:
    return f"kelpie evidence of {cluster}"


def _ledger(lake: Lake, cluster: str) -> dict[tuple[str, int, Instant | None], int]:
    known = lake.rows(FILES, cluster).select(["path", "size", "modified", "batch"])
    return {(row["path"], row["size"], instant(row["modified"])): row["batch"] for row in known.to_pylist()}
