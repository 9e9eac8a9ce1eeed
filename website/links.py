"""Reads a built site: every link inside it leads somewhere, and no page fetches anything from elsewhere."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

_FETCHED: Final = {
    "script": ("src",),
    "img": ("src", "srcset"),
    "source": ("src", "srcset"),
    "iframe": ("src",),
    "object": ("data",),
    "embed": ("src",),
    "video": ("src", "poster"),
    "audio": ("src",),
    "link": ("href",),
}
"""What a browser fetches by itself. A link in <link> is one of these too, whatever its rel says."""


@dataclass(slots=True)
class Page(HTMLParser):
    """Anchors and addresses of one page."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        HTMLParser.__init__(self)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value is not None}
        if "id" in values:
            self.anchors.add(values["id"])
        if tag == "a":
            self.anchors.add(values.get("name", ""))
            if "href" in values:
                self.links.append(values["href"])
        self.fetched += [
            address.split()[0]
            for name in _FETCHED.get(tag, ())
            if name in values
            for address in (values[name].split(",") if name == "srcset" else [values[name]])
            if address.strip()
        ]


@dataclass(frozen=True, slots=True)
class Links:
    """What was found. Nothing in `broken` and `from_elsewhere`: the site is whole."""

    pages: int
    broken: tuple[str, ...]
    from_elsewhere: tuple[str, ...]
    """Scripts, styles and pictures that a browser would fetch from another host."""
    external: tuple[str, ...]
    """Links to other sites. They are listed, and not followed."""


def examine(site: Path) -> Links:
    pages = {path: read_page(path) for path in sorted(site.rglob("*.html"))}
    broken: list[str] = []
    elsewhere: list[str] = list(_styles_from_elsewhere(site))
    external: set[str] = set()
    for path, page in pages.items():
        name = path.relative_to(site)
        elsewhere += [f"{name}: {address}" for address in page.fetched if _is_external(address)]
        for address in [*page.links, *page.fetched]:
            if _is_external(address):
                if address in page.links:
                    external.add(address)
                continue
            problem = _problem(site, path, address, pages)
            if problem:
                broken.append(f"{name}: {address}: {problem}")
    return Links(len(pages), tuple(broken), tuple(elsewhere), tuple(sorted(external)))


def read_page(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    page.close()
    return page


def _is_external(address: str) -> bool:
    parts = urlsplit(address)
    return bool(parts.scheme or parts.netloc) and parts.scheme != "data"


def _problem(site: Path, page: Path, address: str, pages: dict[Path, Page]) -> str | None:
    """What is wrong with an address inside the site."""
    parts = urlsplit(address)
    if parts.scheme == "data":
        return None
    path = unquote(parts.path)
    begin = site if path.startswith("/") else page.parent
    target = (begin / path.lstrip("/")).resolve() if path else page
    if target.is_dir():
        target /= "index.html"
    if not target.is_relative_to(site.resolve()):
        return "it leads out of the site"
    if not target.is_file():
        return "there is no such file"
    if parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
        return "the page has no such anchor"
    return None


def _styles_from_elsewhere(site: Path) -> Iterator[str]:
    for path in sorted(site.rglob("*.css")):
        text = path.read_text(encoding="utf-8")
        for place in ("url(http", "url(//", 'url("http', "url('http", "@import"):
            if place in text:
                yield f"{path.relative_to(site)}: {place}"
