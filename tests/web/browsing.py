"""A real browser, and a real server for it."""

import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page

from kelpie.web.serving.limits import Limits
from kelpie.web.serving.server import PageServer, listeners


@contextmanager
def served(
    application: Any, tls: ssl.SSLContext | None = None, limits: Limits | None = None
) -> Iterator[str]:
    """Its address."""
    server = PageServer(application, tls, limits)
    bound = listeners("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, args=(bound,))
    thread.start()
    deadline = time.monotonic() + 60
    while not server.started:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    scheme = "http" if tls is None else "https"
    try:
        yield f"{scheme}://127.0.0.1:{bound[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(60)


@contextmanager
def window(browser: Browser, **settings: Any) -> Iterator[Page]:
    context: BrowserContext = browser.new_context(**settings)
    page = context.new_page()
    page.set_default_timeout(60_000)
    yield page
    context.close()


def violations(page: Page) -> list[dict[str, Any]]:
    """What axe finds. It is put into each page once, and what it approves of stays in the browser."""
    if not page.evaluate("typeof window.axe?.run === 'function'"):
        page.evaluate(Axe().axe_script)
    found: list[dict[str, Any]] = page.evaluate(
        "axe.run({resultTypes: ['violations']}).then(results => results.violations)"
    )
    return found


def assert_usable(page: Page) -> None:
    """axe finds nothing, and nothing is wider than the window."""
    assert [(each["id"], each["nodes"][0]["html"]) for each in violations(page)] == [], page.url
    assert_narrow(page)


def assert_narrow(page: Page) -> None:
    """Nothing is wider than the window, once the page has its style sheet."""
    page.wait_for_load_state("load")
    wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wider) <= 0, page.url
