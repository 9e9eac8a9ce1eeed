"""What parts of the site that can be left out need of the application, and what they add to it."""

from collections.abc import Callable, Sequence
from typing import Protocol

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Scope

from kelpie.web.pages import Page

Link = tuple[str, str]
"""Address and name."""


class Site(Protocol):
    def routes(self, path: str, answer: Callable[[Request], Page]) -> list[Route]:
        """A page, and its twin in JSON."""

    def page(self, path: str, answer: Callable[[Request], Page | Response]) -> Route:
        """A page without a twin."""

    def posted(self, path: str, answer: Callable[[Request], Page | Response]) -> Route:
        """What happens with a form that is sent there."""

    def answer(self, request: Request, page: Page) -> Response:
        """The page as HTML."""

    def refuse(self, scope: Scope, status: int, text: str) -> Response:
        """A page, or JSON, that says why nothing was done."""


class Section(Protocol):
    """Pages that belong together, and links to them."""

    def routes(self, site: Site) -> Sequence[BaseRoute]: ...

    def links(self, cluster: str | None) -> Sequence[Link]:
        """For every page; `cluster`: that of the page."""

    def links_of_group(self, cluster: str, group: str) -> Sequence[Link]:
        """For the page of a group."""
