"""Forms of other sites, and what only looks like a form, change nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kelpie.examination import Examination
from kelpie.observations import Observations
from kelpie.web.access.forms import LARGEST_FORM
from kelpie.web.watch import Watch
from tests.web.access.logging_in import NAME, PASSWORD, PROXY, Site, status_of, token_of
from tests.web.watching import HOST

PLAIN = {"content-type": "application/x-www-form-urlencoded"}
RIGHT = {"name": NAME, "password": PASSWORD}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path, [Watch("main", Examination(evidence=Observations()), 60)])


def test_a_form_without_the_token_is_refused(site: Site) -> None:
    browser = site.browser()
    token = token_of(browser)
    assert browser.post("/login", data=RIGHT).status_code == 403
    assert browser.post("/login", data={**RIGHT, "csrftoken": ""}).status_code == 403
    assert browser.post("/login", data={**RIGHT, "csrftoken": token[:-1]}).status_code == 403
    assert browser.post("/login", data={**RIGHT, "csrftoken": token_of(site.browser())}).status_code == 403
    assert site.events() == []
    assert browser.post("/login", data={**RIGHT, "csrftoken": token}).status_code == 303


def test_a_form_without_any_cookie_is_refused(site: Site) -> None:
    """A proxy may know people by something else, which browsers send by themselves."""
    assert site.browser().post("/login", data=RIGHT).status_code == 403
    token = token_of(site.browser())
    assert site.browser().post("/login", data={**RIGHT, "csrftoken": token}).status_code == 403


def test_a_form_by_way_of_a_proxy_needs_the_token_too(tmp_path: Path) -> None:
    watch = Watch("main", Examination(evidence=Observations()), 60)
    site = Site(tmp_path, [watch], header="x-forwarded-user", proxies=(PROXY,))
    browser = site.browser(PROXY)
    assert browser.post("/", headers={"x-forwarded-user": NAME}, data={"a": "b"}).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": f"http://{HOST}.evil.example"},
        {"origin": f"http://evil.example/{HOST}"},
        {"origin": "http://["},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "none", "origin": "https://evil.example"},
    ],
)
def test_a_form_of_another_site_is_refused_even_with_the_token(site: Site, headers: dict[str, str]) -> None:
    """Whoever can plant a cookie knows a token."""
    browser = site.browser()
    data = {**RIGHT, "csrftoken": token_of(browser)}
    assert browser.post("/login", data=data, headers=headers).status_code == 403
    own = {"origin": f"http://{HOST}:8088", "sec-fetch-site": "same-origin"}
    assert browser.post("/login", data=data, headers=own).status_code == 303


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"csrftoken=%C3%A9", 403),
        (b"csrftoken=\xc3\xa9", 400),
        (b"name=%FF", 400),
        (b"no form at all", 400),
        (b"a=b&" * 60, 400),
        (b"x=" + b"y" * LARGEST_FORM, 413),
        (b"", 403),
    ],
)
def test_what_is_no_form_is_refused_without_a_defect(site: Site, body: bytes, status: int) -> None:
    browser = site.browser()
    token_of(browser)
    assert browser.post("/login", content=body, headers=PLAIN).status_code == status


@pytest.mark.parametrize(
    "kind", ["", "text/plain", "application/json", "multipart/form-data", "multipart/form-data; boundary=x"]
)
def test_forms_of_another_kind_are_refused(site: Site, kind: str) -> None:
    browser = site.browser()
    answer = browser.post("/login", content=b"--x--", headers={"content-type": kind})
    assert answer.status_code == 415


def test_a_token_in_a_header_may_not_break_anything(site: Site) -> None:
    browser = site.browser()
    token = token_of(browser)
    headers = {b"x-csrftoken": "é".encode("latin-1")}
    assert browser.post("/login", data=RIGHT, headers=headers).status_code == 403
    assert browser.post("/login", data=RIGHT, headers={"x-csrftoken": token}).status_code == 303


def test_cookies_that_are_no_text_are_refused(site: Site) -> None:
    assert status_of(site.app, {b"cookie": b"a=\xff"}) == 400
    assert status_of(site.app, {b"cookie": "a=é".encode()}) == 303


def test_a_body_without_an_end_is_cut_off(site: Site) -> None:
    """Chunked: nobody has said how long it is."""

    def chunks() -> Iterator[bytes]:
        for _ in range(1000):
            yield b"x" * 1024

    answer = site.browser().post("/login", content=chunks(), headers=PLAIN)
    assert answer.status_code == 413
