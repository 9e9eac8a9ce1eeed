"""The journal: a batch that fills several tables is one file here, written before any table gets its rows.

Delta commits one table at a time, so a run can be killed between two tables of one batch.

1. Tasks write Parquet files. If the run is killed now, nothing has happened: no table names the files, and a
   sweep deletes them.
2. `record` writes a page that lists the files, in one atomic step. From now on the batch counts.
3. `finish` deletes the rows that the batch makes void, and adds the files to each table once, under the name
   of the application and the number of the batch. If the run is killed now, the next run finishes the page
   before it plans anything new.

A page also says how far the sources have been read, so that the next batch continues there.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypedDict
from urllib.parse import quote

from kelpie.pipeline.storage.lake import BATCHES, DRAFT, Lake
from kelpie.pipeline.storage.parquet import NewFile
from kelpie.pipeline.tables import STORED
from kelpie.places import Place
from kelpie.places.place import create_exclusively

_KEPT = 10
"""Pages that are kept for people to read; only the newest is needed."""


class Conflict(Exception):
    """Another run wrote the same batch at the same time."""


@dataclass(frozen=True, slots=True)
class Page:
    number: int
    files: Mapping[str, Sequence[NewFile]]
    """By table."""
    progress: Mapping[str, Any]
    """How far the sources have been read, in a form that the application chooses."""
    gone: Mapping[str, Sequence[tuple[str, str]]] = field(default_factory=dict)
    """By table, its older rows that are void: clusters, and conditions in SQL."""
    anew: Mapping[str, str] = field(default_factory=dict)
    """Tables of which all older rows of a cluster are void, and the cluster."""

    @property
    def rows(self) -> dict[str, int]:
        return {table: sum(file.rows for file in files) for table, files in self.files.items()}


class _Mark(TypedDict):
    application: str
    version: int


class Journal:
    """The batches of one application into one lake. One run at a time."""

    def __init__(self, lake: Lake, application: str) -> None:
        self._lake = lake
        self._application = application
        self._folder = lake.root / BATCHES / quote(application, safe=" ")

    def newest(self) -> Page | None:
        pages = self._pages()
        return _read(pages[-1]) if pages else None

    def finish(self) -> Page | None:
        """Completes the newest batch in all tables, and returns it."""
        page = self.newest()
        if page is not None:
            mark = _Mark(application=self._application, version=page.number)
            for name, files in page.files.items():
                table, gone = STORED[name], page.gone.get(name, ())
                if name in page.anew:
                    self._lake.renew(table, page.anew[name], files, **mark)
                    continue
                if gone and self._lake.version_of(table, self._application) < page.number:
                    for cluster, where in gone:
                        self._lake.delete(table, cluster, where)
                if files or gone:
                    self._lake.add(table, files, **mark)
            for old in self._pages()[:-_KEPT]:
                old.unlink(missing_ok=True)
        return page

    def record(
        self,
        number: int,
        files: Mapping[str, Sequence[NewFile]],
        progress: Mapping[str, Any] | None = None,
        gone: Mapping[str, Sequence[tuple[str, str]]] | None = None,
        anew: Mapping[str, str] | None = None,
    ) -> Page:
        """Writes the page of a batch. Raises Conflict if another run took its number meanwhile.

        Tables that `gone` or `anew` names must be keys of `files`, with or without files.
        """
        page = Page(number, files, progress or {}, gone or {}, anew or {})
        newest = self.newest()
        if newest is not None and newest.number >= page.number:
            raise self._conflict(page)
        try:
            create_exclusively(
                self._folder / f"{page.number:020}.json", json.dumps(asdict(page)).encode(), draft=DRAFT
            )
        except FileExistsError:
            raise self._conflict(page) from None
        return page

    def _conflict(self, page: Page) -> Conflict:
        return Conflict(
            f"another run is writing to {self._lake.root} at this moment: it took batch {page.number} of "
            f"{self._application}. Let it end, then run this one again."
        )

    def _pages(self) -> list[Place]:
        return sorted(self._folder.glob("*.json"))


def _read(path: Place) -> Page:
    page = json.loads(path.read_text())
    files = {name: tuple(NewFile(**file) for file in each) for name, each in page["files"].items()}
    return Page(page["number"], files, page["progress"], page.get("gone", {}), page.get("anew", {}))
