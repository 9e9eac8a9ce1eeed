"""Every word that a page shows can be translated, and the language is the one that was asked for."""

import re
from collections.abc import Iterator
from gettext import NullTranslations
from html.parser import HTMLParser
from typing import Any

import pytest
from starlette.testclient import TestClient

from kelpie.doctor.rules import rules
from kelpie.evidence import read_evidence
from kelpie.examination import Examination
from kelpie.web import language
from kelpie.web.catalogue import messages
from tests.evidence import unpacked
from tests.web.test_pages import CLUSTER, PAGES
from tests.web.watching import pages

OTHER = "eo"
RULES = {f"{rule.code} {rule.name}" for rule in rules().values()}
OF_KAFKA = {"Stable", "Empty", "classic", "consumer"}
"""States and types of groups keep Kafka's words."""


class _Marked(NullTranslations):
    """A language that is English in brackets."""

    def gettext(self, message: str) -> str:
        return f"⟦{message}⟧"

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return f"⟦{msgid1 if n == 1 else msgid2}⟧"


@pytest.fixture(scope="module")
def outage() -> Iterator[TestClient]:
    evidence = read_evidence([unpacked("kafka-4.3.1-coordinator-outage")])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(language, "catalogues", lambda: {"en": NullTranslations(), OTHER: _Marked()})
        made = pages(Examination(evidence=evidence))
        browser = made.__enter__()
    yield browser
    made.__exit__(None, None, None)


class _Text(HTMLParser):
    """What a reader sees or hears of a page, but for code, times, and what is said to be in English."""

    UNREAD = ("script", "pre", "code", "time")
    EMPTY = ("meta", "link", "input", "img", "br")

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self._open: list[bool] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.pieces += [
            given[name] or "" for name in ("aria-label", "alt", "title", "placeholder") if name in given
        ]
        if tag not in self.EMPTY:
            self._open.append(tag in self.UNREAD or (tag != "html" and "lang" in given))

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.EMPTY:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if not any(self._open):
            self.pieces.append(data)


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for each in value.values():
            yield from _leaves(each)
    elif isinstance(value, list):
        for each in value:
            yield from _leaves(each)
    elif isinstance(value, str):
        yield value


@pytest.mark.parametrize("path", [*PAGES, "/nowhere"])
def test_every_word_of_a_page_is_a_message(outage: TestClient, path: str) -> None:
    """In a language that puts brackets around messages, only names of the cluster are outside of them."""
    page = outage.get(path or "/", headers={"accept-language": OTHER})
    assert f'<html lang="{OTHER}">' in page.text
    address, _, query = path.partition("?")
    twin = outage.get(f"{address or '/index'}.json?{query}").json() if page.status_code == 200 else {}
    names = {"Kelpie", "UTC", "main", *OF_KAFKA, *RULES, *_leaves(twin)}
    reader = _Text()
    reader.feed(page.text)
    text = _without_messages("\0".join(reader.pieces))
    outside = {part.strip(" \n\t:,.()+·") for part in re.split(r"\0|, | · |: ", text)}
    strange = {part for part in outside if re.search(r"[a-z]{2}", part) and part not in names}
    assert strange == set()


def _without_messages(text: str) -> str:
    """Messages hold others: the innermost goes first."""
    while True:
        text, count = re.subn(r"⟦[^⟦⟧]*⟧", "", text)
        if not count:
            return text


def test_the_address_chooses_a_language_and_a_cookie_keeps_it(outage: TestClient) -> None:
    asked = outage.get(f"{CLUSTER}/groups", params={"sort": "lag", "lang": OTHER})
    assert "⟦" in asked.text
    cookie = asked.headers["set-cookie"]
    assert "HttpOnly" in cookie
    kept = {"cookie": cookie.split(";")[0]}
    assert "⟦" in outage.get("/", headers=kept).text
    assert "⟦" not in outage.get("/?lang=en", headers=kept).text
    assert f'href="?sort=lag&amp;lang={OTHER}"' in asked.text, "the other choices stay"
    outage.cookies.clear()


@pytest.mark.parametrize(
    ("accepted", "expected"),
    [
        ("", "en"),
        ("eo", "eo"),
        ("fr, eo;q=0.5, en;q=0.4", "eo"),
        ("en, eo;q=0.5", "en"),
        ("eo-ZZ", "eo"),
        ("eo;q=0", "en"),
        ("eo;q=x, ,;;", "en"),
        ("*" * 9_999, "en"),
    ],
)
def test_a_browser_is_answered_in_the_language_that_it_prefers(
    outage: TestClient, accepted: str, expected: str
) -> None:
    assert f'<html lang="{expected}">' in outage.get("/", headers={"accept-language": accepted}).text


def test_twins_are_in_english(outage: TestClient) -> None:
    """Programs read them."""
    for path in (f"{CLUSTER}/overview.json", f"{CLUSTER}/group.json?name=nobody"):
        answer = outage.get(path, headers={"accept-language": OTHER})
        assert "⟦" not in answer.text


def test_messages_of_templates_and_modules_are_collected() -> None:
    found = {message.id for message in messages()}
    assert "To the content" in found
    assert "No group of this name was seen in the last look." in found
    assert ("%(shown)s group.", "%(shown)s groups.") in found


def test_a_catalogue_in_the_folder_is_read(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "locale").mkdir()
    (tmp_path / "locale" / "zh_Hans.po").write_text(
        'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=utf-8\\n"\n"Language: zh_Hans\\n"\n\n'
        'msgid "Groups"\nmsgstr "消费者组"\n'
    )
    monkeypatch.setattr(language, "files", lambda _: tmp_path)
    read = language.catalogues()
    assert list(read) == ["en", "zh-Hans"]
    assert read["zh-Hans"].gettext("Groups") == "消费者组"
    assert language.own_name("zh-Hans") == "简体中文"
    assert language.chosen(read, "", "", "zh-CN,zh;q=0.9,en;q=0.8") == "zh-Hans"
