"""Lets through who is known, and sends the others to the login.

A page sends them to the form of the login; its twin in JSON, and what programs read, answer 401. A request
that would change something is refused: what was typed into its form would be lost on the way.
"""

import json
from collections.abc import Callable
from urllib.parse import quote, urlencode, urlsplit

from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from kelpie.web.access.addresses import Proxies
from kelpie.web.access.operators import ORIGIN, Identification, Operator, put
from kelpie.web.language import N_

LOGIN = "/login"
_STATIC = "/static/"
_FOR_PROGRAMS = ("/metrics", "/v3/")
_NOT_THE_PROXY = N_("Pages are reached through the proxy in front of this server only.")

Refuse = Callable[[Scope, int, str], Response]


class Gate:
    def __init__(
        self, app: ASGIApp, identification: Identification | None, proxies: Proxies, refuse: Refuse
    ) -> None:
        """`identification`: None where nobody has to log in. `refuse`: makes the answer."""
        self._app = app
        self._identification = identification
        self._proxies = proxies
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = await self._refusal(scope)
        await (self._app if answer is None else answer)(scope, receive, send)

    async def _refusal(self, scope: Scope) -> Response | None:
        """None: the request may pass. Notes who it is from."""
        origin = scope[ORIGIN] = self._proxies.origin(scope)
        if self._proxies and not origin.via:
            return self._refuse(scope, 403, _NOT_THE_PROXY)
        if self._identification is None:
            put(scope, Operator("", origin))
            return None
        operator = await self._identification.operator(scope, origin)
        if operator is not None:
            put(scope, operator)
            return None
        if scope["path"].startswith(_STATIC) or scope["path"] in self._identification.open_paths:
            return None
        return self._turned_away(scope, self._identification)

    def _turned_away(self, scope: Scope, identification: Identification) -> Response:
        path: str = scope["path"]
        if not identification.open_paths:
            return self._refuse(scope, 403, N_("The proxy in front of this server does not say who you are."))
        if path.endswith(".json") or path.startswith(_FOR_PROGRAMS):
            text = "Log in first: name and password as HTTP Basic."
            headers = {"www-authenticate": 'Basic realm="kelpie", charset="UTF-8"'}
            return Response(json.dumps({"error": text}), 401, headers, "application/json")
        if scope["method"] not in ("GET", "HEAD"):
            return self._refuse(scope, 403, N_("You are not logged in, or no longer. Nothing was done."))
        return RedirectResponse(login_address(scope), 303)


def login_address(scope: Scope) -> str:
    """The login that leads back to this page."""
    query = scope["query_string"].decode("latin-1")
    wanted = quote(scope["path"]) + (f"?{query}" if query else "")
    return LOGIN if wanted == "/" else f"{LOGIN}?{urlencode({'next': wanted})}"


def local_address(text: str, otherwise: str = "/") -> str:
    """The same if it is a path of this server: a link to the login must lead nowhere else."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return otherwise
    # For a browser, what follows two slashes or more is a host; urlsplit sees one behind exactly two.
    is_path = text.startswith("/") and not text.startswith("//") and "\\" not in text
    is_local = is_path and not parts.scheme and not parts.netloc and not parts.fragment
    return text if is_local and text.isascii() and text.isprintable() else otherwise
