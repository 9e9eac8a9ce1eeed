"""Batches, written down before any table knows of them.

A batch fills several tables, and each table has commits of its own; what makes the batch one is its page
here.

1. Tasks write files. Whoever is killed now has done nothing: no table knows the files, a sweep removes them.
2. `record` writes the page, whole or not at all. From now on the batch counts.
3. `finish` adds the files to the tables, to each once, by the name of the application and the batch's number;
   before that, rows go that the batch has made void. Whoever is killed now is finished by the next run,
   before it plans anything of its own.

A page also says how far the sources have been read, so that the next batch begins there.
"""

import json
import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kelpie.pipeline.storage.lake import BATCHES, DRAFT, Lake
from kelpie.pipeline.storage.parquet import NewFile
from kelpie.pipeline.tables import TABLES

_KEPT = 10
"""Pages that are kept for people to look at; only the newest is ever needed."""


class Conflict(Exception):
    """Another run wrote the same batch at the same time."""


@dataclass(frozen=True, slots=True)
class Page:
    number: int
    files: Mapping[str, Sequence[NewFile]]
    """By table."""
    progress: Mapping[str, Any]
    """How far the sources have been read: in words of the application's own."""
    gone: Mapping[str, Sequence[tuple[str, str]]] = field(default_factory=dict)
    """By table: its older rows that stand no more, as clusters and conditions in SQL."""

    @property
    def rows(self) -> dict[str, int]:
        return {table: sum(file.rows for file in files) for table, files in self.files.items()}


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
        """See to it that all tables have the newest batch, and return it."""
        page = self.newest()
        if page is not None:
            for name, files in page.files.items():
                gone = page.gone.get(name, ())
                if gone and self._lake.version_of(TABLES[name], self._application) < page.number:
                    for cluster, where in gone:
                        self._lake.delete(TABLES[name], cluster, where)
                if files or gone:
                    self._lake.add(TABLES[name], files, application=self._application, version=page.number)
            for old in self._pages()[:-_KEPT]:
                old.unlink(missing_ok=True)
        return page

    def record(
        self,
        number: int,
        files: Mapping[str, Sequence[NewFile]],
        progress: Mapping[str, Any] | None = None,
        gone: Mapping[str, Sequence[tuple[str, str]]] | None = None,
    ) -> Page:
        """A batch, numbered when it was planned. Raises Conflict if that number was taken since.

        Tables that have something `gone` must be among those of `files`, if with none.
        """
        page = Page(number, files, progress or {}, gone or {})
        newest = self.newest()
        if newest is not None and newest.number >= page.number:
            raise self._conflict(page)
        self._folder.mkdir(parents=True, exist_ok=True)
        draft = self._folder / f"{DRAFT}{uuid.uuid4()}"
        with draft.open("w") as file:
            json.dump(asdict(page), file)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, self._folder / f"{page.number:020}.json")
        except FileExistsError:
            raise self._conflict(page) from None
        finally:
            draft.unlink()
        return page

    def _conflict(self, page: Page) -> Conflict:
        return Conflict(
            f"another run is writing to {self._lake.root} at this moment: it took batch {page.number} of "
            f"{self._application}. Let it end, then run this one again."
        )

    def _pages(self) -> list[Path]:
        return sorted(self._folder.glob("*.json"))


def _read(path: Path) -> Page:
    page = json.loads(path.read_text())
    files = {name: tuple(NewFile(**file) for file in each) for name, each in page["files"].items()}
    return Page(page["number"], files, page["progress"], page.get("gone", {}))
