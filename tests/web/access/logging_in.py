"""A site with a login, for tests."""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from kelpie.web.access.access import Access
from kelpie.web.access.addresses import Proxies
from kelpie.web.access.header_login import HeaderLogin
from kelpie.web.access.password_login import PasswordLogin
from kelpie.web.access.passwords import PasswordFile
from kelpie.web.application import application
from kelpie.web.audit_log import AuditLog
from kelpie.web.site import Section
from kelpie.web.watch import Watch
from tests.web.watching import HOST

NAME, PASSWORD = "anna", "correct horse"
HASH = "$2b$04$jj/bgpUWQZA5Fv1P8sDx..z8ayzoZZ3Cq0sVi7sXC4.8.6dAE6bWu"
PROXY = "10.0.0.1"


class Site:
    """The application, its parts, and browsers that use it."""

    def __init__(
        self,
        folder: Path,
        watches: list[Watch],
        sections: list[Section] | None = None,
        *,
        header: str = "",
        proxies: tuple[str, ...] = (),
        is_encrypted: bool = False,
        hosts: Sequence[str] = (HOST,),
    ) -> None:
        self.now_s = 0.0
        self.file = folder / "passwords"
        self.file.write_text(f"{NAME}:{HASH}\nbob:{HASH}\n")
        self.file.chmod(0o600)
        self.audit = AuditLog(folder / "audit.jsonl")
        self.login: Any = (
            HeaderLogin(header)
            if header
            else PasswordLogin(PasswordFile(self.file), self.audit, lambda: self.now_s)
        )
        self.scheme = "https" if is_encrypted else "http"
        access = Access(self.login, Proxies.parse(proxies), is_encrypted)
        self.app = application(watches, hosts, access=access, sections=sections or [])

    def browser(self, address: str = "192.0.2.7") -> TestClient:
        return TestClient(
            self.app,
            base_url=f"{self.scheme}://{HOST}",
            client=(address, 4711),
            follow_redirects=False,
            raise_server_exceptions=True,
        )

    def logged_in(self, name: str = NAME, address: str = "192.0.2.7") -> TestClient:
        browser = self.browser(address)
        answer = log_in(browser, name)
        assert answer.status_code == 303, answer.text
        return browser

    def events(self, *names: str) -> list[str]:
        """Newest last."""
        return [str(line["event"]) for line in reversed(self.audit.tail(1000))]


def token_of(browser: TestClient, page: str = "/login") -> str:
    """The token in the forms of a page."""
    found = re.search(r'name="csrftoken" value="([^"]+)"', browser.get(page).text)
    assert found is not None
    return found[1]


def log_in(browser: TestClient, name: str = NAME, password: str = PASSWORD, **fields: str) -> Any:
    token = token_of(browser)
    return browser.post("/login", data={"csrftoken": token, "name": name, "password": password, **fields})


def status_of(app: Any, headers: dict[bytes, bytes], address: str = "192.0.2.7") -> int:
    """Of a page that is asked for with these very bytes."""
    sent: list[dict[str, Any]] = []
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": "/",
        "raw_path": b"/",
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", HOST.encode()), *headers.items()],
        "client": (address, 4711),
        "server": (HOST, 80),
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    status: int = sent[0]["status"]
    return status
