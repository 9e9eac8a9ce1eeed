"""Logging in with a real browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from kelpie.examination import Examination
from kelpie.observations import Observations
from kelpie.web.watch import Watch
from tests.web.access.logging_in import NAME, PASSWORD, Site
from tests.web.browsing import assert_usable, served, window


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    site = Site(tmp_path, [Watch("main", Examination(evidence=Observations()), 60)], hosts=["127.0.0.1"])
    with served(site.app) as address:
        yield address


@pytest.mark.parametrize("with_javascript", [True, False])
def test_a_person_logs_in_and_out(browser: Browser, address: str, *, with_javascript: bool) -> None:
    """The page that was wanted comes after the login; the cookie is none for scripts."""
    with window(browser, java_script_enabled=with_javascript, viewport={"width": 360, "height": 700}) as page:
        page.goto(f"{address}/rule?code=KLP101")
        assert page.get_by_role("heading", level=1).inner_text() == "Log in"
        if with_javascript:
            assert_usable(page)
        page.get_by_label("Name").fill(NAME)
        page.get_by_label("Password").fill("wrong")
        page.keyboard.press("Enter")
        assert page.get_by_role("alert").inner_text() == "Name or password is wrong."
        page.get_by_label("Name").fill(NAME)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(f"{address}/rule?code=KLP101")
        assert page.get_by_role("heading", level=1).inner_text().startswith("KLP101")
        if with_javascript:
            assert_usable(page)
            assert "session" not in page.evaluate("document.cookie")
        page.get_by_role("button", name="Log out").click()
        page.wait_for_url(f"{address}/login")
        page.goto(f"{address}/rules")
        assert page.get_by_role("heading", level=1).inner_text() == "Log in"


def test_a_link_of_another_site_finds_the_session(browser: Browser, address: str) -> None:
    """The cookie does not come with it; the page asks again by itself. Chat and mail have such links."""
    with window(browser) as page:
        page.goto(f"{address}/login")
        page.get_by_label("Name").fill(NAME)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(f"{address}/")
        page.route("http://elsewhere.example/", lambda route: route.fulfill(
            content_type="text/html", body=f'<a href="{address}/rules">look</a>'
        ))  # fmt: skip
        page.goto("http://elsewhere.example/")
        page.get_by_role("link").click()
        page.wait_for_url(f"{address}/rules")
        assert page.get_by_role("heading", level=1).inner_text() == "What the doctor can find"
