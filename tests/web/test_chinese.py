"""The Chinese catalogue is complete, and says what the English text says."""

import re
from collections.abc import Iterator
from importlib.resources import files
from io import BytesIO

import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.pofile import read_po
from starlette.testclient import TestClient

from kelpie.evidence import read_evidence
from kelpie.examination import Examination
from kelpie.web.catalogue import messages
from tests.evidence import unpacked
from tests.web.test_pages import PAGES
from tests.web.watching import pages

CHINESE = "zh-Hans"
_HAN = re.compile(r"[\u4e00-\u9fff]")
_PLACE = re.compile(r"%\(\w+\)[sd]")
_TAG = re.compile(r"<[^>]+>")
SAME = {
    "broker",
    "brokers",
    "zookeeper",
    "Broker",
    "Broker %(id)s",
    "Broker %(node)s",
    "Brokers",
    "Leader",
    "%(severity)s: %(count)s",
    "%(sentence)s.",
}
"""Words of Kafka that Chinese readers use as they are, and frames of what has been translated."""


def _catalogue() -> Catalog:
    text = (files("kelpie.web") / "locale" / "zh_Hans.po").read_bytes()
    return read_po(BytesIO(text), locale="zh_Hans")


def _texts(message: Message) -> tuple[str, str]:
    """The English text, of several forms the one for many, and the Chinese one."""
    english = message.id[-1] if isinstance(message.id, (list, tuple)) else message.id
    chinese = message.string[0] if isinstance(message.string, (list, tuple)) else message.string
    return english, chinese or ""


def test_every_message_is_there_and_no_other() -> None:
    """A string that is new on a page has its Chinese text in the same change."""
    expected = {message.id for message in messages() if message.id}
    assert {message.id for message in _catalogue() if message.id} == expected


def test_texts_are_chinese_with_the_same_places_and_tags() -> None:
    """A place that is missing would lose a number, one too many would end the page."""
    wrong = []
    for message in filter(lambda each: each.id, _catalogue()):
        english, chinese = _texts(message)
        is_chinese = _HAN.search(chinese) is not None or english in SAME
        if message.fuzzy or not is_chinese or _marks(chinese) != _marks(english):
            wrong.append((english, chinese))
    assert wrong == []


def _marks(text: str) -> list[str]:
    return sorted(_PLACE.findall(text) + _TAG.findall(text))


@pytest.fixture(scope="module")
def outage() -> Iterator[TestClient]:
    evidence = read_evidence([unpacked("kafka-4.3.1-coordinator-outage")])
    with pages(Examination(evidence=evidence)) as browser:
        yield browser


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_written_in_chinese(outage: TestClient, path: str) -> None:
    """Also for a browser of Taiwan or Hong Kong: simplified characters are nearer than English."""
    for accepted in ("zh-CN,zh;q=0.9,en;q=0.8", "zh-TW"):
        page = outage.get(path or "/", headers={"accept-language": accepted})
        assert f'<html lang="{CHINESE}">' in page.text
        assert _HAN.search(page.text)
