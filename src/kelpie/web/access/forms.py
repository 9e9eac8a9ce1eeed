"""What a form that changes something has to pass before anything reads it.

asgi-csrf compares the token of the form with that of the cookie. It reads bodies of any length, takes
multipart, and fails on tokens and bodies that are not what they should be. So this comes first: only
short forms of the plain kind, from pages of this server, get through to it.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kelpie.web.language import N_

TOKEN = "csrftoken"  # noqa: S105 - the name of the field.
LARGEST_FORM = 128 * 1024
_MOST_FIELDS = 50
_LIMIT_S = 30.0
_KEY = "kelpie.form"
_PLAIN_FORM = "application/x-www-form-urlencoded"
_SAFE = frozenset(("GET", "HEAD"))


class Everywhere:
    """For asgi-csrf: a request without any cookie is checked as well, whatever its path."""

    def __contains__(self, _: object) -> bool:
        return True


class FormRefused(Exception):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def form_of(request: Request) -> Mapping[str, str]:
    """The fields of the form that was sent; of several with one name the last."""
    fields: Mapping[str, str] = request.scope[_KEY]
    return fields


class FormGuard:
    def __init__(
        self, app: ASGIApp, hosts: Sequence[str], refuse: Callable[[Scope, int, str], ASGIApp]
    ) -> None:
        """`hosts`: names of this server. `refuse`: makes the answer."""
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            headers = Headers(scope=scope)
            _check_cookies(headers)
            if scope["method"] not in _SAFE:
                self._check_sender(headers)
                body = await _body(headers, receive)
                scope = {**scope, _KEY: _fields(body)}
                receive = _again(body, receive)
        except FormRefused as refused:
            await self._refuse(scope, refused.status, str(refused))(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _check_sender(self, headers: Headers) -> None:
        """A browser says from which site a form is. Programs say nothing, and need the token all the same."""
        site = headers.get("sec-fetch-site", "same-origin")
        origin = headers.get("origin")
        if site != "same-origin" or (origin is not None and _host(origin) not in self._hosts):
            raise FormRefused(403, N_("This form was sent by a page of another site. Nothing was done."))
        if headers.get("content-type", "").partition(";")[0].strip().lower() != _PLAIN_FORM:
            raise FormRefused(415, N_("Forms of this type are not read here."))
        token = headers.get(f"x-{TOKEN}", "")
        if not token.isascii():
            raise FormRefused(403, N_("The token is none of this server's."))


def _check_cookies(headers: Headers) -> None:
    try:
        headers.get("cookie", "").encode("latin-1").decode()
    except UnicodeError:
        raise FormRefused(400, N_("The cookies are no text.")) from None


async def _body(headers: Headers, receive: Receive) -> bytes:
    said = headers.get("content-length", "0")
    too_long = FormRefused(413, N_("The form is too long."))
    if not said.isascii() or not said.isdecimal() or int(said[:20]) > LARGEST_FORM:
        raise too_long
    body = bytearray()
    try:
        async with asyncio.timeout(_LIMIT_S):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise FormRefused(400, N_("The form ended in the middle."))
                body += message.get("body", b"")
                if len(body) > LARGEST_FORM:
                    raise too_long
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        raise FormRefused(408, N_("The form did not come in time.")) from None


def _fields(body: bytes) -> dict[str, str]:
    try:
        text = body.decode("ascii")
        pairs = parse_qsl(
            text,
            keep_blank_values=True,
            strict_parsing=bool(text),
            errors="strict",
            max_num_fields=_MOST_FIELDS,
        )
    except ValueError:
        raise FormRefused(400, N_("This is no form.")) from None
    fields = dict(pairs)
    if not all(value.isascii() for name, value in pairs if name == TOKEN):
        raise FormRefused(403, N_("The token is none of this server's."))
    return fields


def _again(body: bytes, receive: Receive) -> Receive:
    """The body as one message, and then what comes after it."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Any:
        return messages.pop() if messages else await receive()

    return replay


def _host(origin: str) -> str:
    """Empty for what is no origin, such as "null"."""
    try:
        name = urlsplit(origin).hostname or ""
    except ValueError:
        return ""
    return f"[{name}]" if ":" in name else name
