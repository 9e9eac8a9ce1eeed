"""The language of a page: chosen by `?lang=`, by a cookie, or by what the browser asks for.

English is written in templates and modules; other languages are catalogues in `locale/`, one `.po` file each,
as in `zh_Hans.po`, read when the program starts. Twins in JSON are always in English. `python -m
kelpie.web.catalogue` collects the messages.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from gettext import GNUTranslations, NullTranslations
from http.cookies import SimpleCookie
from importlib.resources import files
from io import BytesIO

from babel import Locale
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

ENGLISH = "en"
PARAMETER = "lang"
COOKIE = "kelpie_language"
_A_YEAR_S = 365 * 86_400
_LONGEST_HEADER = 500

_CURRENT: ContextVar[tuple[str, NullTranslations]] = ContextVar("language")
_ENGLISH = (ENGLISH, NullTranslations())


def catalogues() -> dict[str, NullTranslations]:
    """By tag, as in `zh-Hans`."""
    read: dict[str, NullTranslations] = {ENGLISH: NullTranslations()}
    folder = files("kelpie.web") / "locale"
    if not folder.is_dir():
        return read
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        if file.name.endswith(".po"):
            compiled = BytesIO()
            with file.open("rb") as text:
                write_mo(compiled, read_po(text))
            compiled.seek(0)
            read[file.name.removesuffix(".po").replace("_", "-")] = GNUTranslations(compiled)
    return read


def own_name(language: str) -> str:
    """As its speakers write it."""
    locale = Locale.parse(language, sep="-")
    return locale.languages.get(str(locale)) or locale.get_display_name() or language


def tag() -> str:
    """The language of the page that is being written."""
    return _CURRENT.get(_ENGLISH)[0]


def gettext(message: str) -> str:
    return _CURRENT.get(_ENGLISH)[1].gettext(message)


def ngettext(one: str, many: str, number: int) -> str:
    return _CURRENT.get(_ENGLISH)[1].ngettext(one, many, number)


def N_(message: str) -> str:  # noqa: N802 - the name by which gettext's tools know it.
    """Marks a message that is translated later."""
    return message


def chosen(known: Mapping[str, object], asked: str, kept: str, accepted: str) -> str:
    """The first that is known, of what the address asks for, the cookie keeps, and the browser accepts."""
    for each in (asked, kept, *_by_preference(accepted)):
        found = _nearest(each, known)
        if found is not None:
            return found
    return ENGLISH


def _by_preference(accepted: str) -> list[str]:
    """Of the header Accept-Language."""
    ranked = []
    for part in accepted[:_LONGEST_HEADER].split(","):
        name, _, weight = part.partition(";q=")
        try:
            ranked.append((float(weight or 1), name.strip()))
        except ValueError:
            continue
    return [name for weight, name in sorted(ranked, key=lambda each: -each[0]) if weight > 0]


def _nearest(wanted: str, known: Mapping[str, object]) -> str | None:
    """Chinese of another country is nearer than English."""
    wanted = wanted.casefold().replace("_", "-")
    if not wanted:
        return None
    by_name = {name.casefold(): name for name in known}
    if wanted in by_name:
        return by_name[wanted]
    first = wanted.split("-", maxsplit=1)[0]
    return next((name for low, name in by_name.items() if low.split("-", maxsplit=1)[0] == first), None)


class Speaking:
    """Chooses the language of each answer, and keeps one that the address asked for in a cookie."""

    def __init__(self, app: ASGIApp, known: Mapping[str, NullTranslations]) -> None:
        self._app = app
        self._known = known

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        asked = connection.query_params.get(PARAMETER, "")
        language = chosen(
            self._known,
            asked,
            connection.cookies.get(COOKIE, ""),
            connection.headers.get("accept-language", ""),
        )
        keep = _nearest(asked, self._known) is not None
        mark = _CURRENT.set((language, self._known[language]))

        async def with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).append("set-cookie", _cookie(language))
            await send(message)

        answer: Callable[[Message], Awaitable[None]] = with_cookie if keep else send
        try:
            await self._app(scope, receive, answer)
        finally:
            _CURRENT.reset(mark)


def _cookie(language: str) -> str:
    cookie = SimpleCookie({COOKIE: language})
    for name, value in (("path", "/"), ("max-age", _A_YEAR_S), ("samesite", "Lax"), ("httponly", True)):
        cookie[COOKIE][name] = value
    return cookie[COOKIE].OutputString()
