"""When a line was written, from whatever its layout says.

Many layouts lack the zone, the year, or the whole date. Such times are *floating*: their differences are
right, and all are off by the same amount. Kafka's clients print moments in milliseconds since 1970
(startTimeMs, receivedTimeMs) beside the time of the line, so one such line shows that amount for the whole
file. Without such a line, zones are taken for UTC.
"""

import re
from calendar import timegm
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from kelpie.model.time import Instant, plausible

_CLOCK = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?"
_MONTH = r"(?P<month>[A-Z][a-z]{2})"
_LAYOUTS = tuple(
    re.compile(pattern + "$")
    for pattern in (
        rf"(?P<year>\d{{4}})[-/](?P<month>\d\d)[-/](?P<day>\d\d)[T ]{_CLOCK}\s?"
        r"(?P<zone>Z|UTC|GMT|[+-]\d\d:?\d\d)?",
        _CLOCK,
        rf"(?P<year>\d\d)/(?P<month>\d\d)/(?P<day>\d\d) {_CLOCK}",
        rf"(?P<day>\d\d?)[ /-]{_MONTH}[ /-](?P<year>\d{{4}})[ :T]{_CLOCK}(?: ?(?P<zone>[+-]\d{{4}}))?",
        rf"{_MONTH} +(?P<day>\d\d?)(?: (?P<year>\d{{4}}))? {_CLOCK}",
    )
)
_EPOCH = re.compile(r"(\d{10})(?:\.(\d{1,9})|(\d{3}))$")
MOMENTS = ("receivedTimeMs", "sendTimeMs", "createdTimeMs", "startTimeMs")
_MOMENT = re.compile(rf"(?:{'|'.join(MOMENTS)})(?: ?: |=)(\d{{13}})\b")
_EXACT = len("2026-11-15 20:56:40,123")
_MONTHS = {
    name: number
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), start=1
    )
}
_MOST_SEEN = 1000
_SOME_YEAR = 2001
_DAY_MS = 86_400_000
_YEAR_MS = 365 * _DAY_MS
_ZONE_STEP_MS = 15 * 60 * 1000
_FURTHEST_ZONE_MS = 15 * 3600 * 1000
_LATEST_MOMENT_MS = 60_000


class Float(IntEnum):
    """How much of a time is missing."""

    FIXED = 0
    ZONE = 1
    YEAR = 2
    DATE = 3


class Stamp(NamedTuple):
    at: Instant
    float: Float


class Clock:
    """Reads the times of one file, line by line."""

    def __init__(self, zone: tzinfo | None = None) -> None:
        """`zone` is for times that name none."""
        self._zone = zone
        self._seen: dict[str, Stamp | None] = {}
        self._last: dict[Float, Instant] = {}
        self._wraps: dict[Float, int] = {}
        self.offset: dict[Float, int] = {}
        """What must be added to floating times of each kind, once known."""

    def read(self, text: str) -> Stamp | None:
        stamp = self._cached(text)
        if stamp is None or stamp.float in (Float.FIXED, Float.ZONE):
            return stamp
        # Lines follow each other: a time of day that goes far back is of the next day; and so with years.
        period = _DAY_MS if stamp.float is Float.DATE else _YEAR_MS
        at = stamp.at + self._wraps.get(stamp.float, 0) * period
        if at < self._last.get(stamp.float, at) - period // 2:
            self._wraps[stamp.float] = self._wraps.get(stamp.float, 0) + 1
            at += period
        self._last[stamp.float] = at
        return Stamp(at, stamp.float)

    def complete_from(self, stamp: Stamp, message: str) -> bool:
        """Whether a message names a full time, and so completes the times of the log."""
        if stamp.float is Float.FIXED:
            return False
        match = _MOMENT.search(message)
        if match is None:
            return False
        exact = int(match[1]) - stamp.at
        offset = round(exact / _ZONE_STEP_MS) * _ZONE_STEP_MS
        plausible = stamp.float is not Float.ZONE or abs(offset) <= _FURTHEST_ZONE_MS
        if not plausible or abs(exact - offset) > _LATEST_MOMENT_MS:
            return False
        self.offset.setdefault(stamp.float, offset)
        return True

    def fixed(self, stamp: Stamp | None) -> Instant | None:
        """The final time. None: the date is missing and cannot be found."""
        if stamp is None:
            return None
        if stamp.float is Float.FIXED:
            return stamp.at
        offset = self.offset.get(stamp.float)
        if offset is None:
            return stamp.at if stamp.float is Float.ZONE else None
        return stamp.at + offset

    def _cached(self, text: str) -> Stamp | None:
        """Minutes repeat, and so do whole times in a busy second."""
        if len(text) == _EXACT and text[19] in ",." and text.isascii():
            second, fraction = text[17:19], text[20:]
            if second < "60" and second.isdecimal() and fraction.isdecimal():
                minute = self._whole(f"{text[:17]}00")
                if minute is not None:
                    return Stamp(minute.at + int(second) * 1000 + int(fraction), minute.float)
        return self._whole(text)

    def _whole(self, text: str) -> Stamp | None:
        seen = self._seen
        if text in seen:
            return seen[text]
        if len(seen) > _MOST_SEEN:
            seen.clear()
        try:
            stamp = self._parse(text)
            seen[text] = stamp if stamp is None or plausible(stamp.at) is not None else None
        except (ValueError, OverflowError, KeyError):
            seen[text] = None
        return seen[text]

    def _parse(self, text: str) -> Stamp | None:
        if match := _EPOCH.match(text):
            return Stamp(int(match[1]) * 1000 + _fraction_ms(match[2] or match[3]), Float.FIXED)
        match = next(filter(None, (layout.match(text) for layout in _LAYOUTS)), None)
        if match is None:
            return None
        parts = match.groupdict()
        clock_ms = _clock_ms(parts)
        if "day" not in parts:
            return Stamp(clock_ms, Float.DATE)
        month = parts["month"]
        year = parts["year"] or str(_SOME_YEAR)
        moment = clock_ms + 1000 * _midnight(
            int(year) if len(year) == 4 else 2000 + int(year),
            int(month) if month.isdecimal() else _MONTHS[month],
            int(parts["day"]),
        )
        if parts["year"] is None:
            return Stamp(moment, Float.YEAR)
        zone = parts.get("zone")
        return self._local(moment) if zone is None else Stamp(moment - _zone_ms(zone), Float.FIXED)

    def _local(self, moment: int) -> Stamp:
        if self._zone is None:
            return Stamp(moment, Float.ZONE)
        naive = datetime.fromtimestamp(moment / 1000, UTC).replace(tzinfo=None)
        shift = self._zone.utcoffset(naive) or timedelta()
        return Stamp(moment - round(shift.total_seconds() * 1000), Float.FIXED)


def _clock_ms(parts: Mapping[str, str | None]) -> int:
    hour, minute, second = (int(parts[name] or "") for name in ("hour", "minute", "second"))
    if hour > 24 or minute > 59 or second > 60:
        raise ValueError(f"{hour}:{minute}:{second} is no time of day")
    return (hour * 3600 + minute * 60 + second) * 1000 + _fraction_ms(parts["fraction"])


@lru_cache(maxsize=64)
def _midnight(year: int, month: int, day: int) -> int:
    """Raises ValueError for a day that no calendar has."""
    return timegm(datetime(year, month, day, tzinfo=UTC).timetuple())


def _fraction_ms(fraction: str | None) -> int:
    return int((fraction or "0").ljust(3, "0")[:3])


def _zone_ms(zone: str) -> int:
    if zone[0] not in "+-":
        return 0
    digits = zone[1:].replace(":", "")
    minutes = int(digits[:2]) * 60 + int(digits[2:])
    return (-1 if zone[0] == "-" else 1) * minutes * 60_000
