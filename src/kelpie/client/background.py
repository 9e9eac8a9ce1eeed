"""Calls that block, in threads beside the loop; the end of the program does not wait for them.

asyncio's own pool joins its threads when the loop ends, so a name server that does not answer would hold up
the end of a program whose time limits have long passed.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


async def in_background(call: Callable[[], T]) -> T:
    result: Future[T] = Future()
    result.set_running_or_notify_cancel()  # A call under way cannot be cancelled.

    def run() -> None:
        try:
            result.set_result(call())
        except Exception as error:
            result.set_exception(error)

    threading.Thread(target=run, name="kelpie-background", daemon=True).start()
    return await asyncio.wrap_future(result)
