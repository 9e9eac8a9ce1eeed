"""Long lists: which part of one a page shows, and which names it is filtered by, as the address says."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from kelpie.model.selection import Selection

SHOWN = 100
"""Rows on a page."""
_LONGEST_TEXT = 300
_LAST = 10_000_000
T = TypeVar("T")


def number_in(query: Mapping[str, str], name: str) -> int | None:
    """None: there is no number."""
    text = query.get(name, "")
    return min(int(text), _LAST) if text.isascii() and text.isdecimal() and len(text) < 9 else None


def pattern_in(query: Mapping[str, str]) -> str:
    return query.get("pattern", "")[:_LONGEST_TEXT]


def matching(names: Collection[str], pattern: str) -> Collection[str]:
    """A pattern without * or ? stands for names that contain it."""
    if not pattern:
        return names
    if not set("*?[") & set(pattern):
        return {name for name in names if pattern.casefold() in name.casefold()}
    return set(Selection([pattern], ()).chosen(set(names)))


@dataclass(frozen=True, slots=True)
class Part(Generic[T]):
    """Of a list, the rows that a page shows."""

    rows: Sequence[T]
    first: int
    count: int
    """Of all rows."""

    @classmethod
    def of(cls, rows: Sequence[T], query: Mapping[str, str], shown: int = SHOWN) -> "Part[T]":
        first = number_in(query, "first") or 0
        return cls(rows[first : first + shown], first, len(rows))

    @property
    def last(self) -> int:
        return self.first + len(self.rows)

    @property
    def before(self) -> str | None:
        """What the address says of the part before; empty: it is the first one. None: there is none."""
        if self.first <= 0:
            return None
        return str(max(0, self.first - SHOWN) or "")

    @property
    def after(self) -> str | None:
        return str(self.last) if self.last < self.count else None
