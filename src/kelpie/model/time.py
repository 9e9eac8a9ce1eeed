"""Time as machines see it: an argument, never a clock."""

Instant = int
"""Milliseconds since 1970 (UTC)."""
