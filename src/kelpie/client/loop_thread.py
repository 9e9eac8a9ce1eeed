"""An event loop in a thread: started, asked to run things, stopped, and nothing left of it."""

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, TypeVar, overload

T = TypeVar("T")


class LoopThread:
    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def runs(self) -> bool:
        return self._thread is not None

    def start(self) -> None:
        assert self._thread is None, "it runs already"
        self._loop = asyncio.new_event_loop()
        # A daemon, so that a program which forgets to close its cluster can still end.
        self._thread = threading.Thread(target=self._main, args=(self._loop,), name=self._name, daemon=True)
        self._thread.start()

    @overload
    def run(self, work: Callable[[], Awaitable[T]]) -> T: ...

    @overload
    def run(self, work: Callable[[], T]) -> T: ...

    def run(self, work: Callable[[], Any]) -> Any:
        """Calls it on the loop, awaits what it gives if need be, and comes back with the result."""
        assert self._loop is not None, "it does not run"
        assert threading.current_thread() is not self._thread, "the loop cannot wait for itself"
        future: Future[Any] = asyncio.run_coroutine_threadsafe(_done(work), self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def stop(self) -> None:
        """Ends loop and thread; what still runs is cancelled. Stopping twice is harmless."""
        if self._loop is None or self._thread is None:
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop = self._thread = None

    @staticmethod
    def _main(loop: asyncio.AbstractEventLoop) -> None:
        with asyncio.Runner(loop_factory=lambda: loop):  # Its end cancels what still runs.
            loop.run_forever()


async def _done(work: Callable[[], Any]) -> Any:
    result = work()
    return await result if inspect.isawaitable(result) else result
