"""Tables that are made day by day: only days whose inputs have changed are made again.

Each table's log has a number for each day, that of the inputs which the day was made of, in the commit that
replaced its rows (`derived` does the same for whole tables). So a run that was killed goes on where it was.
"""

import hashlib
import importlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from kelpie.pipeline.code_version import code_version
from kelpie.pipeline.spark.tasks import run_tasks
from kelpie.pipeline.storage.frames import ClusterTables
from kelpie.pipeline.storage.parquet import NewFile
from kelpie.pipeline.tables import TABLES, LakeTable
from kelpie.pipeline.tables.table import DAY
from kelpie.pipeline.traffic.day import Day, Written
from kelpie.places import Place

_READ = ("traffic_sample", "offset_sample", "commit_timeline")
_BYTES_A_ROW = 100

Numbers = dict[str, int]
"""By day."""


class DayTables:
    """Tables of one cluster. A subclass says which tables its tasks write, and when."""

    written: ClassVar[tuple[LakeTable, ...]]

    def __init__(self, tables: ClusterTables) -> None:
        self._tables, self._lake, self._cluster = tables, tables.lake, tables.cluster

    def _files(self, table: str) -> dict[str, list[Place]]:
        return self._lake.files_by(TABLES[table], self._cluster, DAY)

    def _due(self, table: str, part: str, numbers: Numbers) -> Numbers:
        """The days whose rows were made of something else. Days before the floor stay as they are."""
        floor = self._lake.floor(TABLES[table], self._cluster)
        if floor is not None:
            numbers = {day: number for day, number in numbers.items() if day >= str(floor)}
        names = {day: f"{part} {day}" for day in numbers}
        made = self._lake.numbers(TABLES[table], self._cluster, names.values())
        return {day: number for day, number in numbers.items() if made[names[day]] != number}

    def _replace(
        self,
        table: str,
        written: Mapping[str, Sequence[NewFile]],
        due: Numbers,
        part: str,
        more: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._lake.replace_parts(
            TABLES[table],
            self._cluster,
            written.get(table, ()),
            parts={DAY: list(due), **(more or {})},
            made_of={f"{part} {day}": number for day, number in due.items()},
        )

    def _day(self, day: str, files: Sequence[Place], before: Sequence[Sequence[Place]] = ()) -> Day:
        folders = {table.name: str(self._lake.path(table)) for table in self.written}
        texts = [[str(file) for file in each] for each in before]
        return Day(self._cluster, day, folders, [str(file) for file in files], texts)

    def _run(self, what: str, inputs: Sequence[Any], *more: object) -> list[Any]:
        """A task for each input: calls a function of this package, as "tasks.grow"."""
        module, _, function = what.partition(".")
        for table in self.written:
            self._lake.open(table)
        if not inputs:
            return []

        def task(of: Any) -> Any:
            from kelpie.pipeline.spark.workers import spare_modules  # noqa: PLC0415 - for tasks.

            loaded = importlib.import_module(f"kelpie.pipeline.traffic.{module}")
            spare_modules()
            return getattr(loaded, function)(of, *more)

        return run_tasks(self._tables.spark.sparkContext, task, inputs, size=self._size)

    @cached_property
    def _size(self) -> int:
        """About how many bytes all tasks read."""
        return sum(self._lake.count(TABLES[name], self._cluster) for name in _READ) * _BYTES_A_ROW


def merged(results: Iterable[Written]) -> Written:
    """The files of several tasks."""
    together: Written = {}
    for result in results:
        for table, files in result.items():
            together.setdefault(table, []).extend(files)
    return together


def number_of_day(day: str, files: Iterable[Place], *more: str) -> int:
    """A number for what a day is made of. Other code has other numbers."""
    digest = hashlib.sha256(code_version() + day.encode())
    for text in (*sorted(file.name for file in files), *more):
        digest.update(b"\0" + text.encode())
    return int.from_bytes(digest.digest()[:8], "big") >> 1
