"""The ASGI application: addresses, and what every answer has in common.

Each page has a twin with `.json` at the end of its path and the same query. Groups are named in the query:
a group's name may hold anything, also slashes and dots.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from importlib.resources import files
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kelpie.model.prometheus_text import CONTENT_TYPE
from kelpie.web import burrow_api, language, pages, words
from kelpie.web.access.access import Access
from kelpie.web.access.forms import TOKEN
from kelpie.web.access.operators import operator_of
from kelpie.web.exposition import BURROW, OWN, Exposition, Limits
from kelpie.web.language import N_, Speaking
from kelpie.web.pages import Page
from kelpie.web.rendered import GZIP_LEVEL, RecentPages, Rendered
from kelpie.web.site import Link, Section
from kelpie.web.watch import Watch

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
}
_LEAST_TO_COMPRESS = 1_000
_PACKED = {"content-encoding": "gzip", "vary": "accept-encoding"}


def application(
    watches: Sequence[Watch],
    hosts: Sequence[str],
    exporters: Sequence[str] = (OWN,),
    *,
    access: Access | None = None,
    sections: Sequence[Section] = (),
    limits: Limits | None = None,
) -> Starlette:
    """`hosts`: the names under which browsers may ask. A page elsewhere could use another to read along.

    `access`: who may ask; needed for sections with forms. `sections`: what else there is.
    """
    assert access is not None or not sections, "forms need their guards"
    by_name = {watch.name: watch for watch in watches}
    languages = language.catalogues()
    exposition = Exposition([watch for watch in watches if not watch.is_of_tables], exporters, limits)
    site = _Site(by_name, _templates(), exposition, languages, sections)
    static = StaticFiles(directory=str(files("kelpie.web") / "static"))
    return Starlette(
        routes=[
            *site.routes("/", site.clusters),
            *site.routes("/rules", site.rules),
            *site.routes("/rule", site.rule),
            *(route for path, page in pages.OF_CLUSTER.items() for route in site.routes(path, site.of(page))),
            Route("/metrics", site.metrics),
            *(burrow_api.routes(by_name) if BURROW in exporters else ()),
            *(access.routes(site) if access is not None else ()),
            *(route for section in sections for route in section.routes(site)),
            Mount("/static", static),
        ],
        middleware=[
            Middleware(_Headers),
            Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False),
            Middleware(GZipMiddleware, minimum_size=_LEAST_TO_COMPRESS, compresslevel=GZIP_LEVEL),
            Middleware(Speaking, known=languages),
            *(access.middleware(site, hosts) if access is not None else ()),
        ],
        exception_handlers={HTTPException: site.refusal},
    )


def _templates() -> Environment:
    made = Environment(
        loader=PackageLoader("kelpie.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        extensions=["jinja2.ext.i18n"],
        auto_reload=False,
    )
    made.install_gettext_callables(language.gettext, language.ngettext, newstyle=True)  # type: ignore[attr-defined]
    made.globals["gettext"] = made.globals["_"] = words.translated
    made.policies["ext.i18n.trimmed"] = True
    made.filters.update(words.FILTERS)
    return made


_WRITERS = 4
"""Pages that are written at the same time. With more, threads take the interpreter from each other, and who
asked first waits longest.
"""


class _Site:
    """Pages are written in threads, so that a long one delays no other."""

    def __init__(
        self,
        watches: dict[str, Watch],
        templates: Environment,
        exposition: Exposition,
        languages: Iterable[str],
        sections: Sequence[Section],
    ) -> None:
        self._languages = {tag: language.own_name(tag) for tag in languages}
        self._sections = sections
        self._watches = watches
        self._templates = templates
        self._exposition = exposition
        self._recent = RecentPages()
        self._writing = asyncio.Semaphore(_WRITERS)

    def routes(self, path: str, answer: Callable[[Request], Page]) -> list[Route]:
        twin = "/index.json" if path == "/" else f"{path}.json"

        def written(request: Request) -> Rendered:
            page = answer(request)
            return Rendered.of(self._render(request, page, twin_of(request)), page.status)

        async def write(request: Request) -> Rendered:
            async with self._writing:
                return await run_in_threadpool(written, request)

        async def html(request: Request) -> Response:
            return _html(request, await self._shared(request, partial(write, request)))

        def as_json(request: Request) -> Response:
            page = answer(request)
            data = page.data() if callable(page.data) else page.data
            text = json.dumps(data)  # Only ASCII: names of any kind survive.
            return Response(text, page.status, media_type="application/json")

        def twin_of(request: Request) -> str:
            query = request.url.query
            address = twin if path == "/" else f"{request.scope['raw_path'].decode()}.json"
            return f"{address}?{query}" if query else address

        return [Route(path, html), Route(twin, as_json)]

    async def _shared(self, request: Request, write: Callable[[], Awaitable[Rendered]]) -> Rendered:
        """With a login, or with forms, each reader has a page of their own."""
        if operator_of(request) is not None or TOKEN in request.scope:
            return await write()
        looks = tuple(watch.latest and watch.latest.at for watch in self._watches.values())
        address = (request.scope["raw_path"], request.scope["query_string"])
        return await self._recent.page((address, language.tag(), looks), write)

    def page(self, path: str, answer: Callable[[Request], Page | Response]) -> Route:
        return Route(path, self._answering(answer))

    def posted(self, path: str, answer: Callable[[Request], Page | Response]) -> Route:
        return Route(path, self._answering(answer), methods=["POST"])

    def answer(self, request: Request, page: Page) -> Response:
        return HTMLResponse(self._render(request, page, ""), page.status)

    def refuse(self, scope: Scope, status: int, text: str) -> Response:
        return self.refusal(Request(scope), HTTPException(status, text))

    def _answering(self, answer: Callable[[Request], Page | Response]) -> Callable[[Request], Response]:
        def endpoint(request: Request) -> Response:
            made = answer(request)
            return self.answer(request, made) if isinstance(made, Page) else made

        return endpoint

    def of(self, page: Callable[[Watch, Request], Page]) -> Callable[[Request], Page]:
        """The page of a cluster, or why there is none yet."""

        def answer(request: Request) -> Page:
            watch = self._watches.get(request.path_params["cluster"])
            if watch is None:
                raise HTTPException(404, N_("No cluster of this name is watched here."))
            return page(watch, request) if watch.latest is not None else pages.waiting(watch)

        return answer

    def clusters(self, _: Request) -> Page:
        return pages.clusters(list(self._watches.values()))

    def rules(self, _: Request) -> Page:
        return pages.all_rules()

    def rule(self, request: Request) -> Page:
        return pages.one_rule(request.query_params.get("code", ""))

    def metrics(self, request: Request) -> Response:
        """Compressed here and kept: the text may have many megabytes."""
        if _takes_gzip(request):
            return Response(self._exposition.gzipped(), headers=_PACKED, media_type=CONTENT_TYPE)
        return Response(self._exposition.text(), media_type=CONTENT_TYPE)

    def refusal(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        title = language.gettext(error.detail)
        page = Page("refusal.html", {"error": error.detail}, {"title": title}, error.status_code)
        if request.url.path.endswith(".json"):
            return Response(json.dumps(page.data), page.status, media_type="application/json")
        return self.answer(request, page)

    def _render(self, request: Request, page: Page, twin: str) -> str:
        cluster = request.path_params.get("cluster")
        shared: dict[str, Any] = {
            "path": request.url.path,
            "twin": twin,
            "language": language.tag(),
            "languages": self._languages,
            "changed_query": partial(_changed_query, request),
            "clusters": list(self._watches),
            "cluster": cluster,
            "operator": operator_of(request),
            "csrftoken": request.scope.get(TOKEN, str),
            "links": [link for section in self._sections for link in section.links(cluster)],
            "links_of_group": self._links_of_group,
        }
        words.show(page.values.get("at"))
        return self._templates.get_template(page.template).render(shared | dict(page.values))

    def _links_of_group(self, cluster: str, group: str) -> list[Link]:
        return [link for section in self._sections for link in section.links_of_group(cluster, group)]


def _html(request: Request, page: Rendered) -> Response:
    if _takes_gzip(request):
        return HTMLResponse(page.packed, page.status, _PACKED)
    return HTMLResponse(page.text, page.status)


def _takes_gzip(request: Request) -> bool:
    return "gzip" in request.headers.get("accept-encoding", "")


def _changed_query(request: Request, **changes: str | None) -> str:
    """The address of the same page but for what is named; None: without it."""
    others = [(name, text) for name, text in request.query_params.multi_items() if name not in changes]
    return "?" + urlencode([*others, *((name, text) for name, text in changes.items() if text is not None)])


class _Headers:
    """Adds what keeps a browser from running what a name says."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        added = [(name.encode(), value.encode()) for name, value in HEADERS.items()]

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *added]
            await send(message)

        inner: Callable[[Message], Awaitable[None]] = with_headers if scope["type"] == "http" else send
        await self._app(scope, receive, inner)
