"""People log in with name and password, and have a session; programs send both with each request.

A request that would change something needs a session: a browser sends name and password by itself, also with
forms of other sites.
"""

import base64
import binascii
import math
import threading
import time
from collections.abc import Callable, Collection
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute
from starlette.types import Scope

from kelpie.web.access.addresses import Origin
from kelpie.web.access.forms import TOKEN, form_of
from kelpie.web.access.gate import LOGIN, local_address
from kelpie.web.access.operators import ORIGIN, Operator, operator_of
from kelpie.web.access.passwords import CheckedBefore, PasswordFile
from kelpie.web.access.sessions import ID_IN_COOKIE, Sessions
from kelpie.web.access.throttle import Throttle
from kelpie.web.audit_log import AuditLog
from kelpie.web.language import gettext, ngettext
from kelpie.web.pages import Page
from kelpie.web.site import Site

LOGOUT = "/logout"
_AT_ONCE, _IN_LINE = 2, 8
"""Checks of passwords: each keeps a core busy."""
_LONGEST_PASSWORD = 1_000


class Busy(Exception):
    """Too many passwords are being checked."""


class MustWait(Exception):
    def __init__(self, seconds: float) -> None:
        self.seconds = math.ceil(seconds)
        super().__init__(f"{self.seconds} s")


class PasswordLogin:
    open_paths: Collection[str] = (LOGIN,)

    def __init__(
        self, passwords: PasswordFile, audit: AuditLog, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`clock`: seconds, from anywhere on."""
        self._passwords = passwords
        self._audit = audit
        self._clock = clock
        self.sessions = Sessions(clock)
        self.throttle = Throttle()
        self.csrf_cookie = TOKEN
        self._before = CheckedBefore()
        self._in_line = threading.BoundedSemaphore(_AT_ONCE + _IN_LINE)
        self._at_once = threading.BoundedSemaphore(_AT_ONCE)

    # Who a request is from.

    async def operator(self, scope: Scope, origin: Origin) -> Operator | None:
        session = self.sessions.find(scope["session"].get(ID_IN_COOKIE))
        if session is not None and session.mark == self._passwords.mark(session.name):
            return Operator(session.name, origin, can_log_out=True)
        sent = Headers(scope=scope).get("authorization", "")
        if scope["method"] in ("GET", "HEAD") and sent[:6].lower() == "basic ":
            return await run_in_threadpool(self._of_program, sent[6:], origin)
        return None

    def _of_program(self, sent: str, origin: Origin) -> Operator | None:
        try:
            name, colon, password = base64.b64decode(sent.strip(), validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return None
        if not colon:
            return None
        mark, now_s = self._passwords.mark(name), self._clock()
        if mark and self._before.has(name, password, mark, now_s):
            return Operator(name, origin)
        try:
            is_right = self._check(name, password, origin)
        except (Busy, MustWait):
            return None
        if is_right:
            self._before.add(name, password, mark, now_s)
        return Operator(name, origin) if is_right else None

    def _check(self, name: str, password: str, origin: Origin) -> bool:
        """Raises MustWait, Busy. A failure counts, and is noted."""
        wait_s = self.throttle.wait_s(name, origin.address, self._clock())
        if wait_s > 0:
            raise MustWait(wait_s)
        if not self._in_line.acquire(blocking=False):
            raise Busy
        try:
            with self._at_once:
                is_right = len(password) <= _LONGEST_PASSWORD and self._passwords.check(name, password)
        finally:
            self._in_line.release()
        if is_right:
            self.throttle.succeeded(name, origin.address)
        else:
            self.throttle.failed(name, origin.address, self._clock())
            # A name that is not known may be a password in the wrong field.
            known = name if self._passwords.knows(name) else ""
            self._audit.note_refused_login(Operator(known, origin))
        return is_right

    # Pages.

    def routes(self, site: Site) -> list[BaseRoute]:
        return [
            site.page(LOGIN, self._form),
            site.posted(LOGIN, lambda request: self._log_in(request, site)),
            site.posted(LOGOUT, self._log_out),
        ]

    def _form(self, request: Request) -> Page | Response:
        wanted = local_address(request.query_params.get("next", "/"))
        if operator_of(request) is not None:
            return RedirectResponse(wanted, 303)
        # A link of another site comes without the cookie, although there may be a session. The page comes
        # back by itself, as a request of this site.
        comes_back = request.headers.get("sec-fetch-site") == "cross-site"
        return _page(wanted, comes_back=comes_back)

    def _log_in(self, request: Request, site: Site) -> Page | Response:
        form = form_of(request)
        name, wanted = form.get("name", ""), local_address(form.get("next", "/"))
        origin = request.scope[ORIGIN]
        try:
            is_right = self._check(name, form.get("password", ""), origin)
        except MustWait as error:
            answer = site.answer(request, _page(wanted, _wait(error.seconds), status=429))
            answer.headers["retry-after"] = str(error.seconds)
            return answer
        except Busy:
            return _page(wanted, gettext("Too many people log in right now. Try again."), status=503)
        if not is_right:
            return _page(wanted, gettext("Name or password is wrong."), status=403)
        operator = Operator(name, origin, can_log_out=True)
        self._audit.note("login", operator)
        self.sessions.end(request.session.get(ID_IN_COOKIE))
        request.session.clear()
        request.session[ID_IN_COOKIE] = self.sessions.begin(name, self._passwords.mark(name))
        return self._with_a_new_token(RedirectResponse(wanted, 303))

    def _log_out(self, request: Request) -> Response:
        self.sessions.end(request.session.get(ID_IN_COOKIE))
        request.session.clear()
        operator = operator_of(request)
        if operator is not None:
            self._audit.note("logout", operator)
        return self._with_a_new_token(RedirectResponse(LOGIN, 303))

    def _with_a_new_token(self, answer: Response) -> Response:
        """A token that somebody has planted before the login is worth nothing after it."""
        answer.delete_cookie(self.csrf_cookie, secure=self.csrf_cookie.startswith("__Host-"))
        return answer


def _wait(seconds: int) -> str:
    text = ngettext(
        "Too many attempts have failed. Wait a second, and try again.",
        "Too many attempts have failed. Wait %(num)d seconds, and try again.",
        seconds,
    )
    return text % {"num": seconds}


def _page(wanted: str, problem: str = "", *, status: int = 200, comes_back: bool = False) -> Page:
    values: dict[str, Any] = {
        "title": gettext("Log in"),
        "wanted": wanted,
        "problem": problem,
        "comes_back": comes_back,
    }
    return Page("login.html", {"error": problem}, values, status)
