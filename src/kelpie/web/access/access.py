"""All that stands before the pages: guards of forms, sessions, tokens, the gate."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from asgi_csrf import asgi_csrf
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.routing import BaseRoute
from starlette.types import Scope, Send

from kelpie.web.access.addresses import Proxies
from kelpie.web.access.forms import TOKEN, Everywhere, FormGuard
from kelpie.web.access.gate import Gate
from kelpie.web.access.header_login import HeaderLogin
from kelpie.web.access.password_login import PasswordLogin
from kelpie.web.access.sessions import LIFE_S
from kelpie.web.language import N_
from kelpie.web.site import Site

_SESSION = "kelpie-session"


@dataclass(frozen=True, slots=True)
class Access:
    login: PasswordLogin | HeaderLogin | None = None
    """None: nobody has to log in."""
    proxies: Proxies = field(default_factory=Proxies)
    """If there are some, only they reach the server."""
    is_encrypted: bool = False
    """Browsers reach the pages by https: cookies are for that only, and no other host can set them."""

    def routes(self, site: Site) -> Sequence[BaseRoute]:
        return self.login.routes(site) if isinstance(self.login, PasswordLogin) else ()

    def middleware(self, site: Site, hosts: Sequence[str]) -> list[Middleware]:
        """The outermost first. `hosts`: names of this server."""
        prefix = "__Host-" if self.is_encrypted else ""
        if isinstance(self.login, PasswordLogin):
            self.login.csrf_cookie = prefix + TOKEN

        async def token_refused(scope: Scope, send: Send, _: object) -> None:
            text = N_("The token of this form is missing, or old. Nothing was done. Load the page anew.")
            await site.refuse(scope, 403, text)(scope, _nothing, send)

        return [
            Middleware(FormGuard, hosts=hosts, refuse=site.refuse),
            Middleware(
                SessionMiddleware,
                secret_key=secrets.token_urlsafe(32),
                session_cookie=prefix + _SESSION,
                max_age=LIFE_S,
                same_site="strict",
                https_only=self.is_encrypted,
            ),
            Middleware(
                asgi_csrf,
                cookie_name=prefix + TOKEN,
                signing_secret=secrets.token_urlsafe(32),
                always_protect=Everywhere(),
                cookie_secure=self.is_encrypted,
                cookie_samesite="Strict",
                send_csrf_failed=token_refused,
            ),
            Middleware(Gate, identification=self.login, proxies=self.proxies, refuse=site.refuse),
        ]


async def _nothing() -> dict[str, object]:
    return {"type": "http.disconnect"}
