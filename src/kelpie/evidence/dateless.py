"""Logs whose lines have a time of day, or a day without a year, and nothing that completes it.

Other files of the same incident know the date: the day, or the year, is taken on which such a log lies among
them. Failing that, the time of the file, if files have kept theirs.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain

from kelpie.evidence.dating import file_times_tell
from kelpie.evidence.logs import Float, LogReading
from kelpie.model.time import Instant
from kelpie.observations import Observations

_DAY_MS = 86_400_000
_MOST_DAYS = 800


def settle_dates(
    readings: Sequence[LogReading], modified: Mapping[str, Instant | None], history: Observations
) -> None:
    """Shifts dateless logs to their date; one whose date is unknown loses its times."""
    dateless = [reading for reading in readings if reading.missing is not Float.FIXED]
    if not dateless:
        return
    dated = [reading for reading in readings if reading.missing is Float.FIXED]
    of_logs = ((log.first, log.last) for log in dated)
    known = [at for at in chain.from_iterable(of_logs) if at is not None]
    known += [commit.at for commit in history.commits if commit.at is not None]
    trusted = file_times_tell(dated, modified) if dated else True
    for reading in dateless:
        reading.shift(_shift(reading, known, modified.get(reading.name) if trusted else None))


def _shift(reading: LogReading, known: Sequence[Instant], changed: Instant | None) -> int | None:
    first = reading.first
    if first is None:
        return None
    last = reading.last if reading.last is not None else first
    if known:
        begin, end = min(known), max(known)
        fitting = [
            shift for shift in _shifts(reading, begin, end) if first + shift <= end and last + shift >= begin
        ]
        if fitting:
            return max(fitting, key=lambda shift: (min(last + shift, end) - max(first + shift, begin), shift))
    if changed is not None:
        return min(
            _shifts(reading, changed, changed), key=lambda shift: abs(last + shift - changed), default=None
        )
    return None


def _shifts(reading: LogReading, begin: Instant, end: Instant) -> Iterable[int]:
    """By how much its times could be off, so that it lies somewhere between."""
    assert reading.first is not None
    if reading.missing is Float.DATE:
        earliest = (begin - reading.first) // _DAY_MS - 1
        days = min((end - begin) // _DAY_MS, _MOST_DAYS)
        return [day * _DAY_MS for day in range(earliest, earliest + days + 4)]
    day = datetime.fromtimestamp(reading.first / 1000, UTC)
    years = range(_year(begin) - 1, min(_year(end), _year(begin) + 10) + 2)
    return [
        (
            datetime(year, day.month, min(day.day, 28), tzinfo=UTC)
            - day.replace(day=min(day.day, 28)).replace(hour=0, minute=0, second=0, microsecond=0)
        ).days
        * _DAY_MS
        for year in years
    ]


def _year(at: Instant) -> int:
    return datetime.fromtimestamp(at / 1000, UTC).year
