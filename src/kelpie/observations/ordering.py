"""Rows by time: those without a time come first."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, TypeVar

from kelpie.model.time import Instant

Row = TypeVar("Row")
_at = attrgetter("at")


def time_of(row: Any) -> Instant:
    """A row without a time sorts before all others."""
    return -1 if row.at is None else row.at


def by_time(rows: Sequence[Row]) -> tuple[Row, ...]:
    if len(rows) < 2:
        return tuple(rows)
    try:
        return tuple(sorted(rows, key=_at))
    except TypeError:  # A row has no time.
        return tuple(sorted(rows, key=time_of))


def grouped(rows: Iterable[Row], key: Callable[[Row], Any]) -> dict[Any, tuple[Row, ...]]:
    """By key, and by time under each key."""
    groups: defaultdict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return {name: by_time(members) for name, members in groups.items()}
