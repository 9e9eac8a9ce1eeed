"""Where bearer tokens come from: see `TokenSource`. A token is kept until shortly before its end."""

import base64
import http.client
import json
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from kelpie.client.background import in_background
from kelpie.client.client_errors import BadSettings, NotAuthenticated
from kelpie.client.memory import Memory, Token
from kelpie.client.security import TokenSource
from kelpie.client.tls import make_context

_EARLY_S = 30.0
_UNSIGNED_LIFE_S = 3600
_LARGEST_ANSWER = 1 << 20
_LONGEST = 300
"""Of what an endpoint says, where an error quotes it."""


async def token_from(source: TokenSource, memory: Memory, limit_s: float) -> str:
    """Raises NotAuthenticated or BadSettings; their text holds neither token nor secret."""
    async with memory.fetching_token:
        known = memory.token
        if known is None or (known.ends is not None and known.ends - _EARLY_S < time.time()):
            memory.token = known = await _fresh(source, limit_s)
        return known.text


async def _fresh(source: TokenSource, limit_s: float) -> Token:
    if source.token is not None:
        return _given(source.token.reveal(), "The token in the settings")
    if source.file is not None:
        path = source.file
        try:
            text = await in_background(Path(path).read_text)
        except (OSError, UnicodeError) as error:
            raise BadSettings(f"The token file {path} cannot be read: {_why(error)}.") from None
        return _given(text, f"The token in {path}")
    if source.endpoint is not None:
        return await in_background(lambda: _from_endpoint(source, limit_s))
    if source.subject is not None:
        return _unsigned(source)
    raise BadSettings(
        "OAUTHBEARER needs a token: set sasl.oauthbearer.token.endpoint.url with clientId and clientSecret "
        "in sasl.jaas.config, or a file: address there, or, for tests, unsecuredLoginStringClaim_sub."
    )


def _given(text: str, what: str) -> Token:
    token = text.strip()
    if not token or not token.isascii() or any(sign.isspace() for sign in token):
        raise BadSettings(f"{what} is not a bearer token: it is empty, or holds what a token cannot hold.")
    return Token(token, _end_of(token))


def _end_of(token: str) -> float | None:
    """A token in three parts is a JWT, and says itself when it ends."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return float(claims["exp"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def _unsigned(source: TokenSource) -> Token:
    """An unsecured JWS (RFC 7515, appendix A.5) as Kafka's default login module makes it."""
    now = time.time()
    claims: dict[str, object] = {"iat": now, "exp": now + _UNSIGNED_LIFE_S}
    claims |= dict(source.claims)
    head = _encoded(json.dumps({"alg": "none"}).encode())
    return Token(f"{head}.{_encoded(json.dumps(claims).encode())}.", now + _UNSIGNED_LIFE_S)


def _from_endpoint(source: TokenSource, limit_s: float) -> Token:
    """The client credentials grant of RFC 6749, section 4.4. Runs in a thread of its own."""
    endpoint = source.endpoint or ""
    where = urllib.parse.urlsplit(endpoint)
    if where.scheme not in ("http", "https") or not where.hostname:
        raise BadSettings(
            f"sasl.oauthbearer.token.endpoint.url is no address of http, https or file: {endpoint!r}."
        )
    secret = source.client_secret.reveal() if source.client_secret is not None else ""
    form = {"grant_type": "client_credentials"} | ({"scope": source.scope} if source.scope else {})
    credentials = base64.b64encode(f"{source.client_id}:{secret}".encode()).decode()
    request = urllib.request.Request(  # noqa: S310 - its scheme was checked above
        endpoint,
        data=urllib.parse.urlencode(form).encode(),
        headers={"Accept": "application/json", "Authorization": f"Basic {credentials}"},
        method="POST",
    )
    context = make_context(source.tls) if source.tls is not None and where.scheme == "https" else None
    try:
        with _opener(context).open(request, timeout=limit_s) as response:
            body = response.read(_LARGEST_ANSWER)
    except urllib.error.HTTPError as error:
        raise _refused(error, endpoint, source.client_id) from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise NotAuthenticated(f"The token endpoint {endpoint} cannot be asked: {_why(error)}.") from None
    return _issued(body, endpoint)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the client's secret to whatever address it names."""

    def redirect_request(self, *_: object) -> None:
        return None


def _opener(context: ssl.SSLContext | None) -> urllib.request.OpenerDirector:
    handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
    if context is not None:
        handlers.append(urllib.request.HTTPSHandler(context=context))
    return urllib.request.build_opener(*handlers)


def _refused(error: urllib.error.HTTPError, endpoint: str, client_id: str) -> NotAuthenticated:
    with error:
        if 300 <= error.code < 400:
            target = str(error.headers.get("Location", "nowhere"))[:_LONGEST]
            return NotAuthenticated(
                f"The token endpoint {endpoint} redirects to {target} (HTTP {error.code}). Kelpie does not "
                "follow: the client's secret would go there. If that address is right, set "
                "sasl.oauthbearer.token.endpoint.url to it."
            )
        try:
            said = _refusal(error.read(_LARGEST_ANSWER))
        except (OSError, ValueError, http.client.HTTPException):
            said = ""
    return NotAuthenticated(
        f"The token endpoint {endpoint} refused client {client_id!r}: HTTP {error.code}{said}."
    )


def _issued(body: bytes, endpoint: str) -> Token:
    try:
        answer = json.loads(body)
        text = answer["access_token"]
        lasts = answer.get("expires_in")
        if not isinstance(text, str):
            raise TypeError
        ends = time.time() + float(lasts) if isinstance(lasts, int | float) else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        raise NotAuthenticated(
            f"What the token endpoint {endpoint} answers holds no access_token that can be used."
        ) from None
    token = _given(text, f"What {endpoint} gave out")
    return token if ends is None else Token(token.text, ends)


def _refusal(body: bytes) -> str:
    try:
        answer = json.loads(body)
        words = [str(answer[key]) for key in ("error", "error_description") if answer.get(key)]
    except (ValueError, TypeError, AttributeError, RecursionError):
        return ""
    return f" ({': '.join(words)[:_LONGEST]})" if words else ""


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _why(error: BaseException) -> str:
    reason = getattr(error, "reason", None) or error
    return str(getattr(reason, "strerror", None) or reason)
