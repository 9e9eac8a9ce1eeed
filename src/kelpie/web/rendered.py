"""Pages that were written within the last second: many readers of one page share it.

A page is written and compressed once, however many ask for it at the same moment. Its key names the look that
it shows, so a new look is seen at once. All of this happens in the event loop, which never waits here: pages
are written in threads.
"""

import asyncio
import gzip
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import NamedTuple

LIFE_S = 1.0
_MOST_BYTES = 16 * 1024 * 1024
_MOST = 1_000
GZIP_LEVEL = 5
"""Higher ones take twice the time for a twentieth of the bytes."""


class Rendered(NamedTuple):
    text: bytes
    packed: bytes
    """The same, compressed by gzip: every browser asks for it."""
    status: int

    @classmethod
    def of(cls, text: str, status: int) -> "Rendered":
        encoded = text.encode()
        return cls(encoded, gzip.compress(encoded, GZIP_LEVEL, mtime=0), status)

    @property
    def bytes(self) -> int:
        return len(self.text) + len(self.packed)


class _Kept(NamedTuple):
    page: Rendered
    until_s: float


class RecentPages:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock`: seconds, from anywhere on."""
        self._clock = clock
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._bytes = 0
        self._being_written: dict[Hashable, asyncio.Task[Rendered]] = {}

    async def page(self, key: Hashable, write: Callable[[], Awaitable[Rendered]]) -> Rendered:
        """`write` may raise: then nothing is kept, and all who wait for this page get the error."""
        kept = self._kept.get(key)
        if kept is not None and self._clock() < kept.until_s:
            return kept.page
        task = self._being_written.get(key)
        if task is None:
            task = self._being_written[key] = asyncio.ensure_future(self._write(key, write))
        # A reader who goes away must not end what others wait for.
        return await asyncio.shield(task)

    async def _write(self, key: Hashable, write: Callable[[], Awaitable[Rendered]]) -> Rendered:
        try:
            page = await write()
        finally:
            del self._being_written[key]
        self._keep(key, page)
        return page

    def _keep(self, key: Hashable, page: Rendered) -> None:
        before = self._kept.pop(key, None)
        self._bytes += page.bytes - (before.page.bytes if before is not None else 0)
        self._kept[key] = _Kept(page, self._clock() + LIFE_S)
        while self._bytes > _MOST_BYTES or len(self._kept) > _MOST:
            _, oldest = self._kept.popitem(last=False)
            self._bytes -= oldest.page.bytes
