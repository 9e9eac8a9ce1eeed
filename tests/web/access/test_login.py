"""Logging in and out, and who is kept out."""

import base64
import re
from collections.abc import Iterator
from pathlib import Path

import bcrypt
import pytest
from starlette.testclient import TestClient

from kelpie.examination import Examination
from kelpie.observations import Observations
from kelpie.web.access.gate import local_address
from kelpie.web.access.sessions import LIFE_S
from kelpie.web.watch import Watch
from tests.web.access.logging_in import NAME, PASSWORD, PROXY, Site, log_in, status_of, token_of

SESSION = "kelpie-session"


@pytest.fixture
def watch() -> Watch:
    """Of nothing: these pages are there before the first look."""
    return Watch("main", Examination(evidence=Observations()), 60)


@pytest.fixture
def site(tmp_path: Path, watch: Watch) -> Iterator[Site]:
    made = Site(tmp_path, [watch])
    yield made
    made.audit.close()


def basic(name: str, password: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


# Who is kept out.


@pytest.mark.parametrize("path", ["/", "/rules", "/rule?code=KLP101", "/clusters/main/overview", "/nowhere"])
def test_no_page_is_seen_before_the_login(site: Site, path: str) -> None:
    """It leads to the login, which leads back."""
    answer = site.browser().get(path)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/login")
    browser = site.browser()
    form = browser.get(answer.headers["location"])
    wanted = re.search(r'name="next" value="([^"]+)"', form.text)
    assert wanted is not None
    assert wanted[1] == path
    answer = log_in(browser, next=wanted[1])
    assert (answer.status_code, answer.headers["location"]) == (303, path)


@pytest.mark.parametrize("path", ["/index.json", "/clusters/main/overview.json", "/metrics", "/v3/kafka"])
def test_programs_are_told_to_send_a_password(site: Site, path: str) -> None:
    answer = site.browser().get(path)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Basic ")


def test_what_makes_the_login_look_right_is_open(site: Site) -> None:
    assert site.browser().get("/static/kelpie.css").status_code == 200


def test_a_wrong_password_and_a_wrong_name_are_answered_alike(site: Site) -> None:
    wrong = log_in(site.browser(), NAME, "wrong")
    unknown = log_in(site.browser(), "nobody", PASSWORD)
    assert wrong.status_code == unknown.status_code == 403
    tokens = re.compile(r'value="[^"]*"')
    assert tokens.sub("", wrong.text) == tokens.sub("", unknown.text)
    assert SESSION not in wrong.cookies


def test_what_was_typed_as_a_name_is_noted_only_if_it_is_one(site: Site) -> None:
    """It may be a password in the wrong field."""
    log_in(site.browser(), "hunter2", "")
    log_in(site.browser(), NAME, "wrong")
    log_in(site.browser(), NAME, PASSWORD)
    lines = [(line["event"], line["user"], line["address"]) for line in site.audit.tail(10)]
    assert lines == [
        ("login", NAME, "192.0.2.7"),
        ("login refused", NAME, "192.0.2.7"),
        ("login refused", "", "192.0.2.7"),
    ]
    assert "hunter2" not in site.audit.path.read_text()


@pytest.mark.parametrize(
    "wanted",
    [
        "//evil.example",
        "///evil.example",
        "////evil.example",
        "https://evil.example/",
        "/\\evil.example",
        "javascript:alert(1)",
        "",
        "/\t/evil",
    ],
)
def test_the_login_leads_nowhere_else(site: Site, wanted: str) -> None:
    """Browsers skip all slashes before a host, however many there are."""
    assert local_address(wanted) == "/"
    assert log_in(site.browser(), next=wanted).headers["location"] == "/"


# Sessions.


def test_a_session_is_a_cookie_that_scripts_and_other_sites_do_not_get(site: Site) -> None:
    cookie = log_in(site.browser()).headers["set-cookie"].lower()
    assert f"{SESSION}=" in cookie
    for word in ("httponly", "samesite=strict", "path=/", f"max-age={LIFE_S}"):
        assert word in cookie
    assert "secure" not in cookie


def test_behind_https_cookies_are_for_https_and_this_host_only(tmp_path: Path, watch: Watch) -> None:
    site = Site(tmp_path, [watch], is_encrypted=True)
    browser = site.browser()
    form = browser.get("/login").headers["set-cookie"]
    assert form.startswith("__Host-csrftoken=")
    assert "Secure" in form
    cookie = log_in(browser).headers["set-cookie"]
    assert "__Host-kelpie-session=" in cookie
    assert "secure" in cookie
    assert browser.get("/").status_code == 200


def test_a_session_that_was_there_before_the_login_is_not_used(site: Site) -> None:
    """Somebody may have planted it. So may the token of forms."""
    attacker = site.logged_in("bob")
    attacker_token = token_of(attacker, "/")
    planted = attacker.cookies[SESSION]
    victim = site.browser()
    for cookie in attacker.cookies.jar:
        victim.cookies.jar.set_cookie(cookie)
    assert "bob" in victim.get("/").text
    answer = victim.post(
        "/login", data={"csrftoken": attacker_token, "name": NAME, "password": PASSWORD, "next": "/"}
    )
    assert answer.status_code == 303
    assert victim.cookies[SESSION] != planted
    assert NAME in victim.get("/").text
    assert attacker.get("/").status_code == 303, "the planted session has ended"
    assert token_of(victim, "/") != attacker_token


def test_a_session_ends_at_logout_for_whoever_has_the_cookie(site: Site) -> None:
    browser = site.logged_in()
    stolen = browser.cookies[SESSION]
    assert browser.post("/logout", data={"csrftoken": token_of(browser, "/")}).status_code == 303
    assert browser.get("/").status_code == 303
    thief = site.browser()
    thief.cookies.set(SESSION, stolen)
    assert thief.get("/").status_code == 303
    assert site.events() == ["login", "logout"]


def test_a_session_ends_in_time_and_with_the_password(site: Site) -> None:
    browser, other = site.logged_in(), site.logged_in("bob")
    site.file.write_text(site.file.read_text().splitlines()[0] + "\n")
    assert browser.get("/").status_code == 200
    assert other.get("/").status_code == 303
    site.now_s = LIFE_S + 1.0
    assert browser.get("/").status_code == 303


@pytest.mark.parametrize("cookie", ["null", "x.y.z", "eyJpZCI6IngifQ==.abc.def", "\xff", '"', "=;=,"])
def test_a_made_up_cookie_is_no_session(site: Site, cookie: str) -> None:
    assert status_of(site.app, {b"cookie": f"{SESSION}={cookie}".encode("latin-1")}) in (303, 400)


def test_a_page_that_needs_no_login_is_not_left_open_by_its_method(site: Site) -> None:
    browser = site.browser()
    for method in ("HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "POST"):
        assert browser.request(method, "/").status_code in (303, 403, 405, 415), method


# Programs.


def test_a_program_reads_with_name_and_password(site: Site) -> None:
    browser = site.browser()
    assert browser.get("/index.json", headers=basic(NAME, PASSWORD)).status_code == 200
    assert browser.get("/metrics", headers=basic(NAME, PASSWORD)).status_code == 200
    assert browser.get("/metrics", headers=basic(NAME, "wrong")).status_code == 401
    for bad in ("Basic", "Basic !", "Basic " + base64.b64encode(b"anna").decode(), "Basic /w==", "Bearer x"):
        assert browser.get("/metrics", headers={"authorization": bad}).status_code == 401


def test_a_program_cannot_change_anything(site: Site) -> None:
    """A browser sends such a password by itself, also with forms of other sites."""
    browser = site.browser()
    token = token_of(browser)
    answer = browser.post("/logout", data={"csrftoken": token}, headers=basic(NAME, PASSWORD))
    assert answer.status_code == 403


def test_a_password_that_was_right_is_not_hashed_again(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prometheus asks every few seconds."""
    browser = site.browser()
    assert browser.get("/metrics", headers=basic(NAME, PASSWORD)).status_code == 200
    checks: list[bytes] = []

    def check(password: bytes, _: bytes) -> bool:
        checks.append(password)
        return False

    monkeypatch.setattr(bcrypt, "checkpw", check)
    assert browser.get("/metrics", headers=basic(NAME, PASSWORD)).status_code == 200
    assert checks == []
    assert browser.get("/metrics", headers=basic(NAME, "other")).status_code == 401
    assert checks == [b"other"]
    site.now_s += 301
    assert browser.get("/metrics", headers=basic(NAME, PASSWORD)).status_code == 401


# Guessing.


def test_guessing_is_slowed_down(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a few failures nothing is checked for a while, not even the right password."""
    browser = site.browser()
    answers = [log_in(browser, NAME, f"wrong-{number}") for number in range(5)]
    assert [answer.status_code for answer in answers] == [403] * 5
    with monkeypatch.context() as patched:
        patched.setattr(bcrypt, "checkpw", lambda *_: pytest.fail("it was checked"))
        refused = log_in(browser, NAME, PASSWORD)
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) >= 1
    assert browser.get("/metrics", headers=basic(NAME, PASSWORD)).status_code == 401
    assert log_in(site.browser("192.0.2.8"), NAME, PASSWORD).status_code == 303, "others are not kept out"
    site.now_s += 1.0
    assert log_in(browser, NAME, PASSWORD).status_code == 303


def test_few_passwords_are_checked_at_once(site: Site) -> None:
    """Each keeps a core busy, and a thread that pages need."""
    for _ in range(10):
        assert site.login._in_line.acquire(blocking=False)
    assert log_in(site.browser(), NAME, PASSWORD).status_code == 503
    site.login._in_line.release()
    assert log_in(site.browser(), NAME, PASSWORD).status_code == 303


def test_a_login_that_cannot_be_noted_is_none(site: Site) -> None:
    site.audit.close()
    browser = TestClient(site.app, base_url=f"http://{'kelpie.test'}", raise_server_exceptions=False)
    assert log_in(browser).status_code == 500
    assert browser.get("/", follow_redirects=False).status_code == 303


# A proxy.


@pytest.fixture
def proxied(tmp_path: Path, watch: Watch) -> Site:
    return Site(tmp_path, [watch], header="X-Forwarded-User", proxies=(PROXY, "2001:db8::/64"))


def test_the_header_of_a_trusted_proxy_is_believed(proxied: Site) -> None:
    browser = proxied.browser(PROXY)
    answer = browser.get("/", headers={b"x-forwarded-user": "Zoë".encode()})
    assert answer.status_code == 200
    assert "Zoë" in answer.text
    assert "/logout" not in answer.text
    assert proxied.browser("2001:db8::5").get("/", headers={"x-forwarded-user": "a"}).status_code == 200


@pytest.mark.parametrize("address", ["10.0.0.2", "127.0.0.1", "::1", "testclient", "2001:db8:0:1::1"])
def test_the_header_of_anybody_else_is_not(proxied: Site, address: str) -> None:
    browser = proxied.browser(address)
    headers = {"x-forwarded-user": NAME, "x-forwarded-for": PROXY}
    for path in ("/", "/metrics", "/index.json", "/static/kelpie.css", "/login"):
        assert browser.get(path, headers=headers).status_code == 403


def test_a_header_that_is_not_quite_one_name_is_not_believed(proxied: Site) -> None:
    """A second one may be the client's own, which the proxy has passed on."""
    browser = proxied.browser(PROXY)
    twice = [("x-forwarded-user", "anna"), ("x-forwarded-user", "root")]
    assert browser.get("/", headers=twice).status_code == 403
    for value in (b"", b" ", b"a" * 256, b"\xff", b"a\x1b[2J"):
        assert status_of(proxied.app, {b"x-forwarded-user": value}, PROXY) == 403
    assert status_of(proxied.app, {b"x-forwarded-user": b"a"}, PROXY) == 200
    assert browser.get("/", headers={"x_forwarded_user": "anna"}).status_code == 403
    assert browser.get("/").status_code == 403


def test_behind_a_proxy_the_address_is_the_last_that_it_names(tmp_path: Path, watch: Watch) -> None:
    """What stands before it, the client itself may have written."""
    site = Site(tmp_path, [watch], proxies=(PROXY,))
    browser = site.browser(PROXY)
    browser.headers["x-forwarded-for"] = "203.0.113.1, 198.51.100.9"
    assert log_in(browser).status_code == 303
    line = site.audit.tail(1)[0]
    assert (line["address"], line["via"]) == ("198.51.100.9", PROXY)
    assert site.browser("198.51.100.9").get("/login").status_code == 403
