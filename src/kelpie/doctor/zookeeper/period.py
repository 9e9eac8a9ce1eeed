"""From when to when a fault lasted that several rows tell of: members that failed, nodes that were left."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from kelpie.model.time import Instant


class Lasting(Protocol):
    @property
    def since(self) -> Instant: ...

    @property
    def until(self) -> Instant | None:
        """None: it goes on."""


@dataclass(frozen=True, slots=True)
class Period:
    since: Instant
    """When the first row begins."""
    until: Instant | None
    """When the last row ends. None: one of them goes on."""
    longest_ms: int
    """Of the rows that have ended; 0 if none has."""

    @classmethod
    def of(cls, rows: Iterable[Lasting]) -> "Period":
        """Of one row or more."""
        rows = list(rows)
        ended = [(row.since, row.until) for row in rows if row.until is not None]
        until = max(end for _, end in ended) if len(ended) == len(rows) else None
        longest_ms = max((end - begin for begin, end in ended), default=0)
        return cls(min(row.since for row in rows), until, longest_ms)

    @property
    def is_over(self) -> bool:
        return self.until is not None
