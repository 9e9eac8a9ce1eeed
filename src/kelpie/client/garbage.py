"""When Python's garbage collector runs.

A survey makes 100,000s of rows and keeps them all, and so does who judges it. To look through them for
garbage would double the time; and they have no cycles, so that they are freed without the collector. After a
survey they count as old: else the collector would look through all of them as soon as it may.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from threading import Lock

_COLLECT_EVERY = 10_000_000
"""New objects."""
_COLLECT_ALL_EVERY = 100
"""Surveys: what else was made meanwhile may have cycles."""


class _Users:
    """Threads that survey at the same time, and calls within calls: the last to end restores what was."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._under_way = 0
        self._usual = gc.get_threshold()
        self._numbers = count(1)
        self._frozen = False

    def begin(self) -> None:
        with self._lock:
            if not self._under_way:
                self._usual = gc.get_threshold()
                gc.set_threshold(max(self._usual[0], _COLLECT_EVERY), *self._usual[1:])
            self._under_way += 1

    def end(self) -> None:
        with self._lock:
            self._under_way -= 1
            if not self._under_way:
                if next(self._numbers) % _COLLECT_ALL_EVERY == 0:
                    gc.collect()
                elif not self._is_frozen():
                    gc.freeze()
                    gc.unfreeze()  # This puts new objects into the oldest generation.
                gc.set_threshold(*self._usual)

    def _is_frozen(self) -> bool:
        """Whether somebody has frozen objects: these stay so, and the collector looks through the new ones.

        Python counts them one by one, which takes longer than a small survey: it is asked until it says yes.
        """
        self._frozen = self._frozen or gc.get_freeze_count() > 0
        return self._frozen


_users = _Users()


@contextmanager
def few_collections() -> Iterator[None]:
    _users.begin()
    try:
        yield
    finally:
        _users.end()
