"""Looks of the past that pages can still show: as many as there is room for, the older the further apart."""

import threading
from collections.abc import Sequence

from kelpie.model.time import Instant
from kelpie.web.snapshot import Snapshot

MOST_LOOKS = 200
MOST_BYTES = 64 * 1024 * 1024
_HEAVY_BYTES = MOST_BYTES // 64
"""Of a look with more, only what is light is kept."""


def crowded(times: Sequence[Instant], now: Instant) -> int:
    """Which one to leave out: the one whose neighbours are nearest to each other, by how long ago it was.

    So what is kept thins out with age, evenly. The first one stays.
    """
    places = range(1, len(times) - 1)
    return min(places, key=lambda at: (times[at + 1] - times[at - 1]) / (now - times[at] + 1))


class PastLooks:
    """Of one cluster, by time. The newest one is among them."""

    def __init__(self, most: int = MOST_LOOKS, most_bytes: int = MOST_BYTES) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._looks: list[tuple[Snapshot, int]] = []
        """With their bytes; the newest one does not count, since it is there anyway."""
        self._lock = threading.Lock()

    def add(self, look: Snapshot) -> None:
        """The look before becomes lighter if it is heavy: it is no longer the newest."""
        with self._lock:
            if self._looks:
                self._looks[-1] = _to_keep(self._looks[-1][0])
            self._looks.append((look, 0))
            while len(self._looks) > 2 and (len(self._looks) > self._most or self._is_full()):
                times = [each.at for each, _ in self._looks]
                del self._looks[crowded(times, look.at)]

    def _is_full(self) -> bool:
        return sum(size for _, size in self._looks) > self._most_bytes

    @property
    def times(self) -> list[Instant]:
        with self._lock:
            return [look.at for look, _ in self._looks]

    def nearest(self, at: Instant) -> Snapshot | None:
        with self._lock:
            looks = [look for look, _ in self._looks]
        return min(looks, key=lambda look: abs(look.at - at), default=None)


def _to_keep(look: Snapshot) -> tuple[Snapshot, int]:
    light = look.light()
    size = light.bytes
    if size <= _HEAVY_BYTES:  # Else the whole look has more, and nobody needs to know how much.
        whole = look.bytes
        if whole <= _HEAVY_BYTES:
            return look, whole
    return light, size
