"""A page that many read at once is written once, and is never older than a second."""

import threading

import pytest

from kelpie.web.rendered import LIFE_S, RecentPages, Rendered


class _Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_a_page_is_written_anew_after_a_second() -> None:
    clock = _Clock()
    pages = RecentPages(clock)
    written = iter([Rendered("one", 200), Rendered("two", 200)])
    assert pages.page("key", lambda: next(written)).text == "one"
    clock.now_s = LIFE_S * 0.9
    assert pages.page("key", lambda: next(written)).text == "one"
    clock.now_s = LIFE_S
    assert pages.page("key", lambda: next(written)).text == "two"


def test_another_key_is_another_page() -> None:
    """Of another look, language or query."""
    pages = RecentPages(_Clock())
    assert pages.page("a", lambda: Rendered("of a", 200)).text == "of a"
    assert pages.page("b", lambda: Rendered("of b", 404)) == Rendered("of b", 404)


def test_readers_who_ask_together_wait_for_one_page() -> None:
    """Otherwise fifty threads write the same page, and all fifty are late."""
    pages = RecentPages(_Clock())
    readers, go_on, count = 8, threading.Event(), []

    def write() -> Rendered:
        count.append(1)
        assert go_on.wait(10)
        return Rendered("page", 200)

    read: list[Rendered] = []
    threads = [threading.Thread(target=lambda: read.append(pages.page("key", write))) for _ in range(readers)]
    for thread in threads:
        thread.start()
    go_on.set()
    for thread in threads:
        thread.join(10)
    assert [page.text for page in read] == ["page"] * readers
    assert len(count) == 1


def test_a_page_that_fails_is_not_kept() -> None:
    pages = RecentPages(_Clock())

    def fail() -> Rendered:
        raise LookupError

    with pytest.raises(LookupError):
        pages.page("key", fail)
    assert pages.page("key", lambda: Rendered("page", 200)).text == "page"


def test_pages_that_are_kept_have_a_limit() -> None:
    """Addresses are chosen by others."""
    pages = RecentPages(_Clock())
    for number in range(40):
        pages.page(number, lambda: Rendered("x" * 1_000_000, 200))
    assert len(pages._entries) < 20
    for number in range(3_000):
        pages.page(("small", number), lambda: Rendered("x", 200))
    assert len(pages._entries) <= 1_000


def test_pages_that_fail_have_a_limit_too() -> None:
    """Addresses without a page are as many as somebody likes."""
    pages = RecentPages(_Clock())

    def fail() -> Rendered:
        raise LookupError

    for number in range(3_000):
        with pytest.raises(LookupError):
            pages.page(number, fail)
    assert len(pages._entries) <= 1_000
