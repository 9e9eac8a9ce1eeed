"""Commits of transactions that have neither been committed nor aborted so far, in one offsets partition.

A hanging transaction may hold ten thousands of commits while offsets expire, each with a record that takes
back what open transactions have written for its partition. So rows are found by group, topic and partition;
nothing goes through all of them for one record.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Generic, Protocol, TypeVar

Place = tuple[str, str, int]
"""Group, topic, partition."""


class _Placed(Protocol):
    @property
    def place(self) -> Place | None: ...


Written = TypeVar("Written", bound=_Placed)


class OpenTransactions(Generic[Written]):
    """What each producer has written within its transaction, in the order of writing."""

    def __init__(self) -> None:
        self._written: dict[int, dict[int, Written]] = {}
        """Producer → number of the row → row."""
        self._of_place: defaultdict[Place, dict[int, int]] = defaultdict(dict)
        """Where a commit is for → number of the row → producer."""
        self._count = 0

    def __len__(self) -> int:
        """How many producers have rows."""
        return sum(1 for rows in self._written.values() if rows)

    def __iter__(self) -> Iterator[tuple[int, Written]]:
        """Producers with their rows."""
        return ((producer, row) for producer, rows in self._written.items() for row in rows.values())

    def write(self, producer: int, rows: Iterable[Written]) -> None:
        written = self._written.setdefault(producer, {})
        for row in rows:
            self._count += 1
            written[self._count] = row
            if row.place is not None:
                self._of_place[row.place][self._count] = producer

    def end(self, producer: int) -> list[Written]:
        """The rows of a transaction that ends; they are no longer kept."""
        rows = self._written.pop(producer, {})
        for number, row in rows.items():
            if row.place is not None:
                self._drop(row.place, number)
        return list(rows.values())

    def forget(self, place: Place) -> None:
        """Drops what open transactions have written for a place."""
        for number, producer in self._of_place.pop(place, {}).items():
            del self._written[producer][number]

    def _drop(self, place: Place, number: int) -> None:
        numbers = self._of_place[place]
        del numbers[number]
        if not numbers:
            del self._of_place[place]
