"""What a live cluster's groups did since Kelpie began to look: a few numbers of each look, in memory.

The numbers of one look are arrays with a place for each group, so that a group costs 28 bytes a look. There
is room for a fixed number of bytes: with more groups there are fewer looks. When it is full, two
neighbouring looks become one. Which two: those whose time together is shortest, measured by how long ago
they were. So the last minutes stay as they were, and a look of last week stands for hours; of these hours
the greatest lag is kept, the mean of the rates, and the sum of rebalances.
"""

import threading
from array import array
from collections.abc import Callable, Iterable, Sequence
from math import isnan, nan
from typing import NamedTuple

from kelpie.doctor.group_history import GroupHistory, Rebalance, Value
from kelpie.model.time import Instant

MOST_LOOKS = 2_000
MOST_BYTES = 64 * 1024 * 1024
_LEAST_LOOKS = 16
_SPARE_PLACES = 1_000


class Numbers(NamedTuple):
    """Of one group, in one look. Not a number: not known."""

    lag: float = nan
    lag_ms: float = nan
    records: float = nan
    """A second, since the look before."""
    commits: float = nan
    """A minute, since the look before."""
    members: float = nan
    rebalances: float = nan
    """How many, since the look before."""


_TYPES = "dfffff"
"""A float of four bytes has seven digits: lag has more."""
_SIZE = sum(array(each).itemsize for each in _TYPES)
_Merge = Callable[[float, float, float], float]
"""Two values, and what part of the time together is the first one's."""


def _greatest(one: float, other: float, _: float) -> float:
    return max(one, other)


def _mean(one: float, other: float, part: float) -> float:
    return one * part + other * (1 - part)


def _last(_: float, other: float, __: float) -> float:
    return other


def _sum(one: float, other: float, _: float) -> float:
    return one + other


_MERGES: Sequence[_Merge] = (_greatest, _greatest, _mean, _mean, _last, _sum)


class _Look:
    __slots__ = ("at", "began", "columns")

    def __init__(self, began: Instant, at: Instant, columns: tuple["array[float]", ...]) -> None:
        self.began, self.at, self.columns = began, at, columns

    def of(self, place: int) -> Numbers | None:
        if place >= len(self.columns[0]):
            return None
        return Numbers(*(column[place] for column in self.columns))


class History:
    def __init__(self, most_looks: int = MOST_LOOKS, most_bytes: int = MOST_BYTES) -> None:
        self._most_looks, self._most_bytes = most_looks, most_bytes
        self._places: dict[str, int] = {}
        self._looks: list[_Look] = []
        self._lock = threading.Lock()

    @property
    def bytes(self) -> int:
        """Of all numbers."""
        return sum(_SIZE * len(look.columns[0]) for look in self._looks)

    @property
    def times(self) -> list[Instant]:
        with self._lock:
            return [look.at for look in self._looks]

    def add(self, at: Instant, groups: Iterable[tuple[str, Numbers]]) -> None:
        """The numbers of one look. Looks come in order of time; one that does not is left out."""
        by_group = dict(groups)
        if self._looks and at <= self._looks[-1].at:
            return
        for group in by_group:
            self._places.setdefault(group, len(self._places))
        rows = [by_group.get(group, _NOTHING) for group in self._places]
        by_measure = zip(*rows, strict=True) if rows else ((),) * len(_TYPES)
        columns = tuple(array(each, values) for each, values in zip(_TYPES, by_measure, strict=True))
        began = self._looks[-1].at if self._looks else at
        with self._lock:
            self._looks.append(_Look(began, at, columns))
            if len(self._places) > 2 * len(by_group) + _SPARE_PLACES:
                self._forget_groups()
            room = min(self._most_looks, self._most_bytes // (_SIZE * max(1, len(self._places))))
            while len(self._looks) > max(room, _LEAST_LOOKS):
                self._merge()

    def of(self, group: str) -> GroupHistory:
        with self._lock:
            place = self._places.get(group)
            looks = [] if place is None else [(look.at, look.of(place)) for look in self._looks]
        known = [(at, numbers) for at, numbers in looks if numbers is not None]

        def values(measure: int) -> list[Value]:
            return [Value(at, numbers[measure]) for at, numbers in known if not isnan(numbers[measure])]

        return GroupHistory(
            *(values(0), values(1), values(2), values(3), values(4)),
            rebalances=[
                Rebalance(at, None, None if isnan(numbers.members) else int(numbers.members))
                for at, numbers in known
                if numbers.rebalances > 0
            ],
        )

    def _merge(self) -> None:
        """Makes one of two neighbours. The first look of all has no time before it, and stays."""
        looks, now = self._looks, self._looks[-1].at
        pairs = range(1, len(looks) - 1)
        first = min(pairs, key=lambda at: (looks[at + 1].at - looks[at].began) / (now - looks[at].began + 1))
        one, other = looks[first], looks[first + 1]
        part = (one.at - one.began) / max(1, other.at - one.began)
        columns = []
        for merge, old, new in zip(_MERGES, one.columns, other.columns, strict=True):
            merged = new[:]
            for place, value in enumerate(old):
                if isnan(new[place]):
                    merged[place] = value
                elif not isnan(value):
                    merged[place] = merge(value, new[place], part)
            columns.append(merged)
        looks[first : first + 2] = [_Look(one.began, other.at, tuple(columns))]

    def _forget_groups(self) -> None:
        """Groups of which no look has anything in the last half of all looks."""
        recent = self._looks[len(self._looks) // 2 :]
        kept = {
            group: place
            for group, place in self._places.items()
            if any(
                (numbers := look.of(place)) is not None and not all(map(isnan, numbers)) for look in recent
            )
        }
        order = list(kept.values())
        for look in self._looks:
            size = len(look.columns[0])
            within = [place for place in order if place < size]
            look.columns = tuple(
                array(each, [column[place] for place in within])
                for each, column in zip(_TYPES, look.columns, strict=True)
            )
        self._places = {group: place for place, group in enumerate(kept)}


_NOTHING = Numbers()
