"""Time as machines see it: an argument, never a clock."""

from datetime import UTC, datetime

Instant = int
"""Milliseconds since 1970 (UTC)."""


def iso_time(at: Instant) -> str:
    """For programs: "2026-11-16T21:23:04.017Z"."""
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
