"""Every word that a template shows is a message, so that it can be translated; nothing is left unescaped."""

import re
from pathlib import Path

import pytest

from kelpie import web

TEMPLATES = sorted((Path(web.__file__).parent / "templates").glob("*.html"))
NOT_TRANSLATED = {"Kelpie"}


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_template_has_no_words_of_its_own(path: Path) -> None:
    text = re.sub(r"{% trans.*?{% endtrans %}", "", path.read_text(), flags=re.DOTALL)
    text = re.sub(r"{{.*?}}|{%.*?%}|{#.*?#}", "", text, flags=re.DOTALL)
    text = re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    attributes = re.findall(r'(?:aria-label|title|alt|placeholder)="([^"]*)"', text)
    words = re.findall(r"[A-Za-z]{2,}", re.sub(r"<[^>]*>", " ", text)) + attributes
    assert {word for word in words if word.strip()} <= NOT_TRANSLATED


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_template_turns_no_escaping_off(path: Path) -> None:
    assert not re.search(r"\|\s*safe\b|autoescape", path.read_text())
