"""Derived rows of attributed_traffic, day by day, of the samples of offsets that surveys took.

1. offset_closing: the last sample of each log and of each group in it on a day, of the samples of this day.
2. What groups read on a day, of its samples and of the closing of the last day before it that has one. So a
   new day reads no sample of an older one.
"""

from collections.abc import Mapping
from typing import ClassVar

from kelpie.pipeline.tables import TABLES, LakeTable
from kelpie.pipeline.tables.table import DAY, HOW
from kelpie.pipeline.traffic.day_tables import DayTables, merged, number_of_day
from kelpie.places import Place

DERIVED = "derived"
_SAMPLES, _CLOSING = TABLES["offset_sample"], TABLES["offset_closing"]
_ATTRIBUTED = TABLES["attributed_traffic"]
_PART = "derived on"


class DerivedDays(DayTables):
    """The days of one cluster that is collected."""

    written: ClassVar[tuple[LakeTable, ...]] = (_CLOSING, _ATTRIBUTED)

    def make(self) -> None:
        """All that is due."""
        samples = self._files(_SAMPLES.name)
        numbers = {day: number_of_day(day, files) for day, files in samples.items()}
        due = self._due(_CLOSING.name, DAY, numbers) if samples else {}
        if due:
            days = [self._day(day, samples[day]) for day in sorted(due)]
            written = merged(self._run("derivation_tasks.close_offsets", days))
            self._replace(_CLOSING.name, written, due, DAY)
        if not samples:
            return
        closing = self._files(_CLOSING.name)
        before = {day: _last_before(day, closing) for day in samples}
        numbers = {day: number_of_day(day, [*files, *before[day]]) for day, files in samples.items()}
        due = self._due(_ATTRIBUTED.name, _PART, numbers)
        if due:
            days = [self._day(day, samples[day], [before[day]]) for day in sorted(due)]
            written = merged(self._run("derivation_tasks.derive", days))
            self._replace(_ATTRIBUTED.name, written, due, _PART, {HOW: [DERIVED]})


def _last_before(day: str, closing: Mapping[str, list[Place]]) -> list[Place]:
    earlier = max((each for each in closing if each < day), default=None)
    return [] if earlier is None else closing[earlier]
