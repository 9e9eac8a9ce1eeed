"""The documentation as a site: `make docs`."""

import re
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.browsers import a_browser
from website import build as building
from website.build import ROOT, BuildFailed, build
from website.links import Links, examine, read_page

DOCS = ROOT / "docs"
_SWALLOWED = re.compile(r"<p>(?:(?!</p>).)*?\n(?:[-*]|\d+\.) ", re.S)
_CODE = re.compile(r"<pre.*?</pre>", re.S)


def test_no_link_is_broken_and_nothing_comes_from_elsewhere(built: tuple[Path, Links]) -> None:
    """A reader offline, or behind a firewall, sees all of it."""
    _, links = built
    assert links.broken == ()
    assert links.from_elsewhere == ()
    assert links.pages >= len(list(DOCS.rglob("*.md")))


def test_every_page_is_in_the_navigation(site: Path) -> None:
    """A page that no navigation names is one that nobody finds."""
    pages = {page.relative_to(DOCS).with_suffix("").as_posix() for page in DOCS.rglob("*.md")}
    pages = {page.replace("/README", "/index") for page in pages}
    linked = {link.removeprefix("./").removesuffix(".html") for link in read_page(site / "admin.html").links}
    assert pages - linked == {"admin"} - linked
    assert {"architecture", "security", "contributing", "roadmap"} <= linked


def test_lists_are_lists(site: Path) -> None:
    """The generator wants a blank line before a list; GitHub does not, so nobody would see it there."""
    swallowed = {
        page.name: found[0][-80:]
        for page in site.rglob("*.html")
        if (found := _SWALLOWED.search(_CODE.sub("", page.read_text(encoding="utf-8"))))
    }
    assert swallowed == {}


def test_a_warning_of_the_generator_fails_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says where, and shows no traceback."""
    root = tmp_path / "root"
    (root / "docs" / "rules").mkdir(parents=True)
    (root / "docs" / "rules" / "README.md").write_text("# Rules\n")
    (root / "docs" / "index.md").write_text("# Start\n\n[nowhere](nowhere.md)\n")
    for name in building.FROM_ROOT:
        (root / name).write_text(f"# {name}\n\n[start](docs/index.md)\n")
    monkeypatch.setattr(building, "ROOT", root)
    with pytest.raises(BuildFailed, match=r"index\.md:3") as failed:
        build(tmp_path / "build")
    assert "Traceback" not in str(failed.value)


@pytest.mark.parametrize(
    ("markup", "complaint"),
    [
        ('<a href="gone.html">x</a>', "there is no such file"),
        ('<a href="#gone">x</a>', "the page has no such anchor"),
        ('<a href="other.html#gone">x</a>', "the page has no such anchor"),
        ('<a href="../../etc/passwd">x</a>', "it leads out of the site"),
        ('<img src="gone.svg">', "there is no such file"),
    ],
)
def test_a_broken_link_is_found(tmp_path: Path, markup: str, complaint: str) -> None:
    """A file, an anchor, a picture, a path that leaves the site."""
    (tmp_path / "other.html").write_text('<h1 id="here">x</h1>')
    (tmp_path / "index.html").write_text(f'<a href="other.html#here">x</a>{markup}')
    (broken,) = examine(tmp_path).broken
    assert complaint in broken


@pytest.mark.parametrize(
    "markup",
    [
        '<script src="https://cdn.example/x.js"></script>',
        '<link rel="stylesheet" href="//fonts.example/css">',
        '<img srcset="here.svg 1x, https://img.example/x.png 2x">',
    ],
)
def test_what_a_page_would_fetch_is_found(tmp_path: Path, markup: str) -> None:
    """A link to another site is none of it."""
    (tmp_path / "here.svg").write_text("<svg/>")
    (tmp_path / "index.html").write_text(f'<a href="https://example.org/">x</a>{markup}')
    links = examine(tmp_path)
    assert len(links.from_elsewhere) == 1
    assert links.external == ("https://example.org/",)


def test_fonts_in_styles_are_found(tmp_path: Path) -> None:
    """A style can fetch, too."""
    (tmp_path / "a.css").write_text("@font-face { src: url(https://fonts.example/x.woff2) }")
    assert examine(tmp_path).from_elsewhere == ("a.css: url(http",)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing: a test's output is for failures."""


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join(60)


def test_a_browser_fetches_nothing_from_elsewhere(address: str) -> None:
    """Scripts fetch more than markup names. The search, too, has its words from the site."""
    with a_browser() as browser:
        page = browser.new_page()
        page.set_default_timeout(60_000)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        for name in ("index.html", "doctor.html", "rules/KLP101.html", "attribution.html"):
            page.goto(f"{address}/{name}", wait_until="networkidle")
        page.keyboard.press("/")
        page.keyboard.type("leaderless")
        assert f"{address}/search.json" in asked
        assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []
