"""Calls that block, in threads beside the loop; the end of the program does not wait for them.

asyncio's own pool joins its threads when the loop ends, so a name server that does not answer would hold up
the end of a program whose time limits have long passed.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def in_background(call: Callable[[], T]) -> T:
    loop = asyncio.get_running_loop()
    result: asyncio.Future[T] = loop.create_future()

    def settle(value: T | None, error: BaseException | None) -> None:
        if result.done():
            return
        if error is not None:
            result.set_exception(error)
        else:
            result.set_result(value)  # type: ignore[arg-type]

    def run() -> None:
        value, failure = None, None
        try:
            value = call()
        except Exception as error:
            failure = error
        with suppress(RuntimeError):  # The loop may have ended; then the result is not needed.
            loop.call_soon_threadsafe(settle, value, failure)

    threading.Thread(target=run, name="kelpie-background", daemon=True).start()
    return await result
