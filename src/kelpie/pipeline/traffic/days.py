"""attributed_traffic and what it needs, day by day: only days whose inputs have changed are made again.

1. traffic_closing: the last two scrapes of each broker on a day, of the samples of this day; traffic_opening:
   the first one.
2. What was counted on a day, of its samples and of the closing scrapes before it. A new day reads no sample
   of an older one. A late scrape makes its own day again, and what goes on from that day's last scrapes.
3. Whose the unattributed part is, of these deltas and of the evidence for them. Records of the offsets topic
   that come late make the days again that they say something new about, and no sample is read for that. The
   first scrape of a day shows which groups have kept their labels since the last one of the day before, which
   is judged again then.

`day_tables` says how it is known which days are due.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import cached_property
from typing import ClassVar

from pyspark.sql import DataFrame

from kelpie.cluster.mappings import MappingHistory
from kelpie.pipeline.storage.frames import ClusterTables, staging
from kelpie.pipeline.storage.parquet import readable
from kelpie.pipeline.tables import TABLES, LakeTable
from kelpie.pipeline.tables.table import DAY, HOW
from kelpie.pipeline.traffic.day import Day
from kelpie.pipeline.traffic.day_tables import DayTables, merged, number_of_day
from kelpie.pipeline.transforms.assignments import assigned
from kelpie.places import Place

COUNTED, VERDICTS = "counted", ("exact", "apportioned", "unknown")
_SAMPLES, _CLOSING = TABLES["traffic_sample"], TABLES["traffic_closing"]
_ATTRIBUTED, _GAP = TABLES["attributed_traffic"], TABLES["attribution_gap"]
_UNATTRIBUTED, _OPENING = TABLES["unattributed_traffic"], TABLES["traffic_opening"]
_GROWN, _JUDGED = "counted on", "attributed on"


class TrafficDays(DayTables):
    """The days of one cluster whose brokers count."""

    written: ClassVar[tuple[LakeTable, ...]] = (
        _CLOSING,
        _OPENING,
        _ATTRIBUTED,
        _GAP,
        _UNATTRIBUTED,
    )

    def __init__(self, tables: ClusterTables, mappings: Callable[[], MappingHistory]) -> None:
        """`mappings`: what listings of the mapping tree say; asked only if there is something to explain."""
        super().__init__(tables)
        self._mappings = mappings

    def make(self) -> None:
        """All that is due."""
        samples = self._files(_SAMPLES.name)
        if samples:
            self._close(samples)
            self._grow(samples)
        if samples or self._files(_UNATTRIBUTED.name):
            self._judge()

    def _close(self, samples: Mapping[str, Sequence[Place]]) -> None:
        numbers = {day: number_of_day(day, files) for day, files in samples.items()}
        due = self._due(_CLOSING.name, DAY, numbers) | self._due(_OPENING.name, DAY, numbers)
        if due:
            written = merged(self._run("tasks.close", [self._day(day, samples[day]) for day in due]))
            for table in (_CLOSING, _OPENING):
                self._replace(table.name, written, due, DAY)

    def _grow(self, samples: Mapping[str, Sequence[Place]]) -> None:
        closing = self._files(_CLOSING.name)
        numbers, before = {}, {}
        for day, files in samples.items():
            before[day] = self._openings(day, closing)
            numbers[day] = number_of_day(day, [*files, *(file for each in before[day] for file in each)])
        due = self._due(_UNATTRIBUTED.name, _GROWN, numbers)
        due |= self._due(_ATTRIBUTED.name, _GROWN, numbers)
        if due:
            days = [self._day(day, samples[day], before[day]) for day in sorted(due)]
            written = merged(self._run("tasks.grow", days))
            self._replace(_ATTRIBUTED.name, written, due, _GROWN, {HOW: [COUNTED]})
            self._replace(_UNATTRIBUTED.name, written, due, _GROWN)

    def _openings(self, day: str, closing: Mapping[str, Sequence[Place]]) -> list[list[Place]]:
        """Closing files before a day, the latest first, until all its brokers are among them."""
        wanted, openings = set(self._brokers(closing.get(day, ()))), []
        for earlier in sorted((each for each in closing if each < day), reverse=True):
            known = self._brokers(closing[earlier]) & wanted
            if known:
                openings.append(list(closing[earlier]))
                wanted -= known
            if not wanted:
                break
        return openings

    def _brokers(self, files: Iterable[Place]) -> frozenset[str]:
        known = frozenset[str]()
        for file in files:
            if file not in self._brokers_by_file:
                import pyarrow.parquet as pq  # noqa: PLC0415 - only where there are scrapes.

                names = pq.read_table(readable(file), columns=["broker"], partitioning=None)["broker"]
                self._brokers_by_file[file] = frozenset(names.unique().to_pylist())
            known |= self._brokers_by_file[file]
        return known

    @cached_property
    def _brokers_by_file(self) -> dict[Place, frozenset[str]]:
        return {}

    def _judge(self) -> None:
        deltas = self._files(_UNATTRIBUTED.name)
        with staging(self._lake, f"evidence-{self._cluster}") as folder:
            staged = self._stage_evidence(folder, deltas) if deltas else {}
            digests = dict(zip(staged, self._run("evidence.digest", list(staged.values())), strict=True))
            history = self._mappings() if deltas else MappingHistory(())
            told = hashlib.sha256(repr(history.listings).encode()).hexdigest()
            kept = dict(zip(staged, self._run("tasks.midnight", list(staged.values())), strict=True))
            numbers = {
                day: number_of_day(day, files, digests.get(day, ""), kept.get(day, ""), told)
                for day, files in deltas.items()
            }
            # A late scrape may have left a day without anything to attribute.
            numbers |= {day: number_of_day(day, ()) for day in self._files(_GAP.name) if day not in deltas}
            due = self._due(_GAP.name, _JUDGED, numbers) | self._due(_ATTRIBUTED.name, _JUDGED, numbers)
            if not due:
                return
            days = [staged[day] for day in sorted(due) if day in staged]
            written = merged(self._run("tasks.judge", days, history))
        self._replace(_ATTRIBUTED.name, written, due, _JUDGED, {HOW: list(VERDICTS)})
        self._replace(_GAP.name, written, due, _JUDGED)

    def _stage_evidence(self, folder: Place, deltas: Mapping[str, Sequence[Place]]) -> dict[str, Day]:
        """Writes all evidence into a folder. Returns what tasks need to know of each day."""
        tables, days = self._tables, list(deltas)
        places = self._run("evidence.places", [list(map(str, deltas[day])) for day in days])
        by_day = dict(zip(days, places, strict=True))
        commits = self._lake.files(TABLES["commit_timeline"], self._cluster)
        self._run("evidence.split_commits", list(map(str, commits)), by_day, str(folder))
        owners = assigned(
            tables.frame("group_generation"),
            tables.frame("commit_timeline"),
            snapshot=self._frame("cluster_snapshot"),
            log_events=self._frame("log_event"),
        )
        tables.spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        owners.write.mode("overwrite").parquet(str(folder / "owners"))
        midnight = self._midnights(days)
        return {
            day: replace(
                self._day(day, deltas[day]),
                evidence=str(folder),
                places=by_day[day],
                midnight=midnight[day],
            )
            for day in days
        }

    def _midnights(self, days: Iterable[str]) -> dict[str, tuple[list[str], list[str]]]:
        """Files with the last scrapes of each day, and with the first ones of the day after."""
        closing, opening = self._files(_CLOSING.name), self._files(_OPENING.name)
        after = {day: str(date.fromisoformat(day) + timedelta(days=1)) for day in days}
        return {
            day: ([*map(str, closing.get(day, ()))], [*map(str, opening.get(after[day], ()))])
            for day in after
        }

    def _frame(self, table: str) -> DataFrame | None:
        """None: the table has no rows of this cluster."""
        has_rows = bool(self._lake.files(TABLES[table], self._cluster))
        return self._tables.frame(table) if has_rows else None
