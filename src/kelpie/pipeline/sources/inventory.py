"""Which files there are, what each is, and which of them a table has already: each counts once.

Files that go in together are a batch. Its list is written down (`evidence_file`) before anything is read, and
every table that it fills is told its number: a run that was killed is taken up with the same files under the
same number, and what was written then is not written again. A file is known by its path, its size and when it
was last changed; one that has changed goes in again, as what it is now. (Of segments of the offsets topic and
of logs, only what is new: `segments`, `logs.progress`.)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from kelpie.evidence.files import EvidenceFile, Search
from kelpie.evidence.recognition import Kind, recognise
from kelpie.evidence.unreadable import unreadable
from kelpie.model.time import Instant
from kelpie.observations import Unasked
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.storage.parquet import write_rows
from kelpie.pipeline.tables import TABLES, Table

FILES, LAST = TABLES["evidence_file"], TABLES["cluster_snapshot"]
"""`LAST` is what a batch fills at its end: a batch that it has is done."""


@dataclass(frozen=True, slots=True)
class Item:
    """A file, what it is, and by which path it is known."""

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
    """What could not even be opened."""

    def of(self, kind: Kind) -> list[Item]:
        return [item for item in self.items if kind in item.kinds]


@dataclass(frozen=True, slots=True)
class Batch:
    application: str
    number: int
    items: tuple[Item, ...]

    @property
    def snapshot(self) -> str:
        """What its files tell of a cluster is a look of this name."""
        return f"batch {self.number:06}"

    def of(self, kind: Kind) -> list[Item]:
        return [item for item in self.items if kind in item.kinds]


def take_inventory(paths: Iterable[Path], search: Search, room: Path) -> Inventory:
    """All files below the paths, and in archives there, which are unpacked into the room."""
    found = Inventory()
    for file in search.files(paths):
        unpacked = room in file.path.parents
        path = file.name if unpacked else str(file.path.absolute())
        try:
            what = recognise(file)
            item = Item(file, path, what.kinds, what.reason, what.encoding)
        except OSError as error:
            item = Item(file, path, reason=unreadable(error))
        # Segments are known by their head where no name tells what they are; the others need it no more.
        if Kind.SEGMENT not in item.kinds:
            item = replace(item, file=replace(file, head=b""))
        if Kind.COMPANION not in item.kinds:
            found.items.append(item)
    found.unopened = list(search.unasked)
    return found


def plan(lake: Lake, cluster: str, inventory: Inventory) -> list[Batch]:
    """What is to be done: batches that were begun and not ended, then one of the files that are new."""
    application = f"kelpie evidence of {cluster}"
    ledger = _ledger(lake, cluster)
    newest = max(ledger.values(), default=0)
    done = max(0, lake.version_of(LAST, application))
    batches = []
    for number in range(done + 1, newest + 1):
        again = [it for it in inventory.items if ledger.get(it.identity) == number]
        batches.append(Batch(application, number, tuple(again)))
    new = [it for it in inventory.items if it.identity not in ledger]
    if new:
        batches.append(Batch(application, newest + 1, tuple(new)))
        rows = [it.row(cluster, newest + 1) for it in new]
        append(lake, FILES, rows, cluster, application=application, version=newest + 1)
    return batches


def append(
    lake: Lake,
    table: Table,
    rows: Sequence[dict[str, object]],
    cluster: str,
    *,
    application: str,
    version: int,
) -> int:
    """Rows of a batch that the driver holds; none of them if the batch is there already. How many."""
    if lake.version_of(table, application) >= version:
        return 0
    files = write_rows(table, lake.path(table), cluster, rows)
    return len(rows) if lake.add(table, files, application=application, version=version) else 0


def moment(at: Instant | None) -> datetime | None:
    return None if at is None else datetime.fromtimestamp(at / 1000, UTC)


def instant(at: datetime | None) -> Instant | None:
    """The reverse. Spark hands out times without a zone; they are of UTC here."""
    if at is None:
        return None
    return round((at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp() * 1000)


def _ledger(lake: Lake, cluster: str) -> dict[tuple[str, int, Instant | None], int]:
    known = lake.rows(FILES, cluster).select(["path", "size", "modified", "batch"])
    return {(row["path"], row["size"], instant(row["modified"])): row["batch"] for row in known.to_pylist()}
