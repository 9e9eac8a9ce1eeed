"""A real browser, and a real server for it."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page

from kelpie.real.ports import free


@contextmanager
def served(application: Any) -> Iterator[str]:
    """Its address."""
    port = free(1)[0]
    server = uvicorn.Server(
        uvicorn.Config(application, "127.0.0.1", port, log_level="error", proxy_headers=False)
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    deadline = time.monotonic() + 60
    while not server.started:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(60)


@contextmanager
def window(browser: Browser, **settings: Any) -> Iterator[Page]:
    context: BrowserContext = browser.new_context(**settings)
    page = context.new_page()
    page.set_default_timeout(60_000)
    yield page
    context.close()


def assert_usable(page: Page) -> None:
    """axe finds nothing, and nothing is wider than the window."""
    violations = Axe().run(page).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"]) for each in violations] == [], page.url
    assert_narrow(page)


def assert_narrow(page: Page) -> None:
    """Nothing is wider than the window."""
    wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wider) <= 0, page.url
