"""A page that many read at once is written once, and is never older than a second."""

import asyncio
import gzip
from collections.abc import Awaitable, Callable

import pytest

from kelpie.web.rendered import LIFE_S, RecentPages, Rendered


class _Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def _writing(*texts: str) -> Callable[[], Awaitable[Rendered]]:
    """Writes one after the other."""
    rest = iter(texts)

    async def write() -> Rendered:
        return Rendered.of(next(rest), 200)

    return write


async def _fail() -> Rendered:
    raise LookupError


def test_a_page_is_compressed_as_browsers_want_it() -> None:
    page = Rendered.of("名 " * 1_000, 200)
    assert gzip.decompress(page.packed) == page.text == ("名 " * 1_000).encode()


def test_a_page_is_written_anew_after_a_second() -> None:
    clock = _Clock()
    pages = RecentPages(clock)
    write = _writing("one", "two")

    async def read() -> None:
        assert (await pages.page("key", write)).text == b"one"
        clock.now_s = LIFE_S * 0.9
        assert (await pages.page("key", write)).text == b"one"
        clock.now_s = LIFE_S
        assert (await pages.page("key", write)).text == b"two"

    asyncio.run(read())


def test_another_key_is_another_page() -> None:
    """Of another look, language or query."""
    pages = RecentPages(_Clock())

    async def read() -> None:
        assert (await pages.page("a", _writing("of a"))).text == b"of a"
        assert (await pages.page("b", _writing("of b"))).text == b"of b"

    asyncio.run(read())


def test_readers_who_ask_together_wait_for_one_page() -> None:
    """Otherwise fifty threads write the same page, and all fifty are late."""
    pages = RecentPages(_Clock())
    count = []

    async def write() -> Rendered:
        count.append(1)
        await asyncio.sleep(0)
        return Rendered.of("page", 200)

    async def read() -> list[Rendered]:
        return await asyncio.gather(*(pages.page("key", write) for _ in range(8)))

    assert [page.text for page in asyncio.run(read())] == [b"page"] * 8
    assert len(count) == 1


def test_a_reader_who_goes_away_does_not_end_the_page_of_others() -> None:
    pages = RecentPages(_Clock())
    go_on = asyncio.Event()

    async def write() -> Rendered:
        await go_on.wait()
        return Rendered.of("page", 200)

    async def read() -> Rendered:
        first = asyncio.ensure_future(pages.page("key", write))
        second = asyncio.ensure_future(pages.page("key", write))
        await asyncio.sleep(0)
        first.cancel()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await first
        return await second

    assert asyncio.run(read()).text == b"page"


def test_a_page_that_fails_is_not_kept() -> None:
    pages = RecentPages(_Clock())

    async def read() -> None:
        failed = await asyncio.gather(*(pages.page("key", _fail) for _ in range(2)), return_exceptions=True)
        assert [type(each) for each in failed] == [LookupError, LookupError]
        assert (await pages.page("key", _writing("page"))).text == b"page"

    asyncio.run(read())


def test_pages_that_are_kept_have_a_limit() -> None:
    """Addresses are chosen by others."""
    pages = RecentPages(_Clock())

    async def read() -> None:
        for number in range(40):
            await pages.page(number, _writing("x" * 1_000_000))
        assert len(pages._kept) < 20
        for number in range(3_000):
            await pages.page(("small", number), _writing("x"))
        assert len(pages._kept) <= 1_000

    asyncio.run(read())


def test_pages_that_fail_leave_nothing() -> None:
    """Addresses without a page are as many as somebody likes."""
    pages = RecentPages(_Clock())

    async def read() -> None:
        for number in range(100):
            with pytest.raises(LookupError):
                await pages.page(number, _fail)

    asyncio.run(read())
    assert not pages._kept
    assert not pages._being_written
