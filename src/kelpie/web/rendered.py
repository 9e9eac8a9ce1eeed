"""Pages that were written within the last second: many readers of one page share it.

A page is written once, however many ask for it at the same moment. Its key names the look that it shows, so a
new look is seen at once.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import NamedTuple

LIFE_S = 1.0
_MOST_BYTES = 16 * 1024 * 1024
_MOST = 1_000


class Rendered(NamedTuple):
    text: str
    status: int


class _Entry:
    def __init__(self) -> None:
        self.making = threading.Lock()
        self.page: Rendered | None = None
        self.until_s = 0.0


class RecentPages:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock`: seconds, from anywhere on."""
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._bytes = 0

    def page(self, key: Hashable, make: Callable[[], Rendered]) -> Rendered:
        """`make` may raise: then nothing is kept."""
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
            self._make_room()
        with entry.making:
            if entry.page is not None and self._clock() < entry.until_s:
                return entry.page
            made = make()
            with self._lock:
                self._keep(key, entry, made)
            return made

    def _keep(self, key: Hashable, entry: _Entry, made: Rendered) -> None:
        if self._entries.get(key) is entry:
            self._bytes += len(made.text) - (len(entry.page.text) if entry.page is not None else 0)
        entry.page, entry.until_s = made, self._clock() + LIFE_S
        self._make_room()

    def _make_room(self) -> None:
        while self._bytes > _MOST_BYTES or len(self._entries) > _MOST:
            _, oldest = self._entries.popitem(last=False)
            self._bytes -= len(oldest.page.text) if oldest.page is not None else 0
