"""Time as machines see it: an argument, never a clock."""

from datetime import UTC, datetime
from functools import lru_cache

Instant = int
"""Milliseconds since 1970 (UTC)."""
LATEST: Instant = 4_102_444_800_000
"""2100. Nothing of a cluster is written later; microseconds taken for milliseconds are far behind it."""
_FIRST, _LAST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)


def plausible(at: int | None) -> Instant | None:
    """A time that a file or a broker names; None if nothing can have happened then.

    Whatever comes from outside goes through here: one record stamped far in the future would else be the
    newest of all, move what counts as now, and not even have a date.
    """
    return at if at is not None and 0 <= at < LATEST else None


def utc(at: Instant) -> datetime:
    """For people and programs. A time that has no date becomes the first or the last that there is."""
    try:
        return datetime.fromtimestamp(at / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return _LAST if at > 0 else _FIRST


def time_from(text: str) -> Instant:
    """Of "2026-11-16", or of "2026-11-16T02:18:03[.000][Z or +01:00]"; UTC if left out. Raises ValueError."""
    at = datetime.fromisoformat(text)
    try:
        at = at.astimezone(UTC) if at.tzinfo is not None else at.replace(tzinfo=UTC)
    except OverflowError:  # It is before the first year in UTC, or after the last.
        raise ValueError(f"{text!r} is a time that cannot be") from None
    return round(at.timestamp() * 1000)


@lru_cache(maxsize=1 << 12)
def iso_time(at: Instant) -> str:
    """For programs: "2026-11-16T21:23:04.017Z"."""
    return utc(at).isoformat(timespec="milliseconds").replace("+00:00", "Z")
