"""One function, two ways to call it: awaited on the caller's event loop, or waited for without one.

A coroutine function becomes a plain one by running on an event loop in a thread of its own, which ends with
the call. So it also works where a loop runs already, as in a notebook. A generator ends its loop when it is
exhausted or closed. Work that never waits for a network becomes a coroutine function by running in a thread.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from kelpie.client.loop_thread import LoopThread

P = ParamSpec("P")
T = TypeVar("T")
_END = object()


def waiting(work: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """The same function, for code without an event loop."""

    @wraps(work)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        thread = LoopThread("kelpie")
        thread.start()
        try:
            result: T = thread.run(lambda: work(*args, **kwargs))
            return result
        finally:
            thread.stop()

    return call


def iterating(work: Callable[P, AsyncIterator[T]]) -> Callable[P, Iterator[T]]:
    """The same generator, for code without an event loop."""

    @wraps(work)
    def call(*args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        thread = LoopThread("kelpie")
        thread.start()
        try:
            rows = work(*args, **kwargs)
            try:
                while (row := thread.run(lambda: anext(rows, _END))) is not _END:
                    yield row  # type: ignore[misc]  # It is no end.
            finally:
                if inspect.isasyncgen(rows):
                    thread.run(rows.aclose)
        finally:
            thread.stop()

    return call


def in_thread(work: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """The same function, to be awaited: it runs in a thread meanwhile."""

    @wraps(work)
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(work, *args, **kwargs)

    return call
