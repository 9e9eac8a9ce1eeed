"""Sentences of the doctor, of repairs and of the lab, and pages of rules, in the languages of `web/locale`.

The doctor speaks English, whoever asks: JSON, tables and programs have one text; so do plans of repairs and
faults of the lab. A page in another language is made of that text: `translator.py` compares it with the
templates of the catalogues in `locale/doctor/`, `locale/repairs/` and `locale/lab/`, which `extraction.py`
finds in the source. Pages of rules are translated by paragraph (`locale/rules/`).
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from io import BytesIO

from babel.messages.pofile import read_po

from kelpie.doctor.rule import Rule
from kelpie.doctor.rules import rules
from kelpie.web.translation.pieces import Kind, Piece
from kelpie.web.translation.said import DOCTOR
from kelpie.web.translation.translator import Translator

__all__ = ["Kind", "Piece", "Translator", "catalogue_of", "paragraphs", "pieces_of", "rule_paragraphs"]


@cache
def catalogue_of(kind: str, language: str) -> Mapping[str, str]:
    """`kind`: the folder, one of `said.KINDS` or "rules". Without messages that have no translation."""
    file = files("kelpie.web") / "locale" / kind / f"{language.replace('-', '_')}.po"
    if not file.is_file():
        return {}
    read = read_po(BytesIO(file.read_bytes()))
    return {str(message.id): str(message.string) for message in read if message.id and message.string}


@cache
def _translator(language: str, kind: str) -> Translator:
    """Read when the first page of a language is written: it takes a tenth of a second."""
    pages = catalogue_of("rules", language)
    names: dict[str, str] = {}
    for rule in rules().values():
        if rule.name in pages:
            name = pages[rule.name]
            names |= {rule.name: name, rule.name.replace("-", " "): name}
            names[f"{rule.code} {rule.name}"] = f"{rule.code} {name}"
    return Translator({**catalogue_of(DOCTOR, language), **catalogue_of(kind, language), **names})


def pieces_of(text: str, language: str, kind: str = DOCTOR) -> tuple[Piece, ...]:
    """`kind`: who says it, one of `said.KINDS`."""
    if not catalogue_of(kind, language):
        return (Piece(text, Kind.ENGLISH),)
    return _translator(language, kind).pieces(text)


def paragraphs(rule: Rule) -> list[str]:
    """Of a rule's page, without its title."""
    return rule.page.split("\n\n")[1:]


def rule_paragraphs(rule: Rule, language: str) -> list[Piece]:
    """The page of a rule, paragraph by paragraph; those without a translation are English."""
    pages = catalogue_of("rules", language)
    texts = paragraphs(rule)
    return [Piece(pages[text]) if text in pages else Piece(text, Kind.ENGLISH) for text in texts]
