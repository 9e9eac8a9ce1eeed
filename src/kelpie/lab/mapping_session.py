"""The session of one broker with the mapping store, from its start to its end.

The broker asks, and does not wait; one task carries its requests out in order, and tells the broker what came
of each. A broker that stops has its last requests carried out. Those of a broker that is killed are lost.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from kelpie.attribution.requests import Request, Result
from kelpie.lab.mapping_faults import MappingFault


class StoreFailed(Exception):
    """The store did not carry a request out, or the answer did not come."""


class StoreConnection(Protocol):
    async def open(self) -> None:
        """Begins the session. Raises StoreFailed."""

    async def carry_out(self, request: Request) -> Result:
        """Raises StoreFailed."""

    async def close(self) -> None:
        """Ends the session in order."""

    async def abandon(self) -> None:
        """Ends it as the death of the broker does."""


Heard = Callable[[Request, Result], None]
Failed = Callable[[Request], None]


class MappingSession:
    def __init__(self, connection: StoreConnection, faults: Callable[[], list[MappingFault]]) -> None:
        self._connection = connection
        self._faults = faults
        self._requests: asyncio.Queue[Request] = asyncio.Queue()
        self._work: asyncio.Task[None] | None = None

    def ask(self, request: Request) -> None:
        self._requests.put_nowait(request)

    def begin(self, heard: Heard, failed: Failed, loop: asyncio.AbstractEventLoop) -> None:
        self._work = loop.create_task(self._carry_out_all(heard, failed))

    async def finish(self, limit_s: float) -> None:
        """What was asked is carried out, if that takes no longer than the limit."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._requests.join(), limit_s)
        await self._stop()
        await self._connection.close()

    async def abandon(self) -> None:
        await self._stop()
        await self._connection.abandon()

    async def _stop(self) -> None:
        if self._work is not None:
            self._work.cancel()
            await asyncio.wait([self._work])

    async def _carry_out_all(self, heard: Heard, failed: Failed) -> None:
        with suppress(StoreFailed):  # Then the first request tries it again.
            await self._connection.open()
        while True:
            request = await self._requests.get()
            try:
                result = await self._carry_out(request)
            except StoreFailed:
                failed(request)
            else:
                heard(request, result)
            finally:
                self._requests.task_done()

    async def _carry_out(self, request: Request) -> Result:
        for fault in self._faults():
            if fault.strikes(request):
                if fault.refuses:
                    raise StoreFailed
                await fault.passed()
        return await self._connection.carry_out(request)
