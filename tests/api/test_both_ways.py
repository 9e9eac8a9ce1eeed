"""One function, called with and without an event loop."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable

import pytest

from kelpie.api.both_ways import in_thread, iterating, waiting


async def _double(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


async def _fails() -> int:
    raise ValueError("no")


def _threads() -> set[str]:
    return {thread.name for thread in threading.enumerate()}


def test_a_coroutine_is_waited_for_also_where_a_loop_runs() -> None:
    """In a notebook one runs already, and asyncio.run would refuse."""
    assert waiting(_double)(4) == 8

    async def cell() -> int:
        return waiting(_double)(5)

    assert asyncio.run(cell()) == 10
    assert "kelpie" not in _threads()


def test_an_error_is_raised_and_leaves_no_thread() -> None:
    """As if it had been awaited."""
    with pytest.raises(ValueError, match="no"):
        waiting(_fails)()
    assert "kelpie" not in _threads()


def test_a_generator_ends_what_it_began_wherever_it_is_left() -> None:
    """Connections are closed, whether the caller takes all or stops in the middle."""
    ended = []

    async def count(to: int) -> AsyncIterator[int]:
        try:
            for number in range(to):
                await asyncio.sleep(0)
                yield number
        finally:
            await asyncio.sleep(0)
            ended.append(to)

    assert list(iterating(count)(3)) == [0, 1, 2]
    for number in iterating(count)(1_000_000):
        if number == 2:
            break
    assert ended == [3, 1_000_000]
    assert "kelpie" not in _threads()


def test_work_without_a_network_runs_in_a_thread(wait_until: Callable[..., None]) -> None:
    """The loop goes on meanwhile."""
    begun, go = threading.Event(), threading.Event()

    def work(number: int) -> int:
        begun.set()
        assert go.wait(60)
        return number + 1

    async def both() -> int:
        task = asyncio.create_task(in_thread(work)(1))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        go.set()
        return await task

    assert asyncio.run(both()) == 2
