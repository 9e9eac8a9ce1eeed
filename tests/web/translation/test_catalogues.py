"""Sentences of the doctor, of repairs and of the lab, and pages of rules, have their Chinese text, made of
the English text of today.
"""

import re

import pytest
from babel.messages.catalog import Catalog

from kelpie.doctor.rules import rules
from kelpie.web.translation import catalogue_of, rule_paragraphs
from kelpie.web.translation.catalogue import rule_pages, sentences
from kelpie.web.translation.notation import Choice, Hole, parse
from kelpie.web.translation.said import KINDS, NOT_SAID, unsaid
from tests.web.translation.leftover import CHINESE

_HAN = re.compile("[\u4e00-\u9fff]")
SAME = {
    " (leader epoch {0})",
    " of {0}",
    " of {0}.",
    ", broker {0}",
    ", transactional id {0}",
    "broker {0#} ({1})",
    "broker {0}",
    "brokers {0}",
    "owners/{0}/{1} = {2}, {3}",
    "that {0}",
    "{0#} GB",
    "{0#} MB",
    "{0#} UTC",
    "leader {0}",
    "{0#} {a:leader|leaders}",
    "{0} → broker {1}",
    "{0}: broker {1}",
    "{0}: leader epoch {1}",
    "{0}: leader {1}",
    "{0}: leader {1}, leader epoch {2}",
    "{0}: rebalance.max.retries={1}, rebalance.backoff.ms={2}, zookeeper.session.timeout.ms={3}: "
    "({4} − 1) × {5} ms = {6} ms",
    "{a:broker|brokers} {0}",
}
"""Words of Kafka that Chinese readers use as they are, and units."""


def _ids(catalogue: Catalog) -> set[str]:
    return {str(message.id) for message in catalogue if message.id}


@pytest.mark.parametrize("kind", KINDS)
def test_every_sentence_that_may_reach_a_page_has_its_chinese_text(kind: str) -> None:
    """Whoever changes a sentence runs `python -m kelpie.web.translation.catalogue zh_Hans`, and writes it."""
    assert catalogue_of(kind, CHINESE).keys() == _ids(sentences(kind))


def test_every_paragraph_of_a_rules_page_has_its_chinese_text() -> None:
    """The English paragraph is the key: one that was changed is missing, and is shown in English."""
    assert catalogue_of("rules", CHINESE).keys() == _ids(rule_pages())
    for rule in rules().values():
        assert not [each.text for each in rule_paragraphs(rule, CHINESE) if each.is_english]


def test_what_is_said_to_be_no_sentence_is_still_there() -> None:
    assert unsaid() == NOT_SAID.keys()


@pytest.mark.parametrize("kind", KINDS)
def test_translations_are_chinese_and_show_the_values(kind: str) -> None:
    """A value that is left out must be a verb such as "has": the translator shows English otherwise."""
    wrong = []
    for english, translation in catalogue_of(kind, CHINESE).items():
        holes = {part.number for part in parse(english) if isinstance(part, Hole)}
        shown = {part.number for part in parse(translation) if isinstance(part, Hole)}
        choices = {part.letter: len(part.options) for part in parse(english) if isinstance(part, Choice)}
        chosen = {part.letter: len(part.options) for part in parse(translation) if isinstance(part, Choice)}
        is_chinese = _HAN.search(translation) is not None or english in SAME
        if not is_chinese or shown - holes or len(holes - shown) > 1 or chosen.items() - choices.items():
            wrong.append((english, translation))
    assert wrong == []


def test_paragraphs_keep_codes_commands_and_settings() -> None:
    """What a reader types or searches is the same in both languages."""
    names = re.compile(r"KLP\d{3}|\bkelpie [a-z-]+|[a-z]+(?:\.[a-z]+){2,}")
    wrong = []
    for english, translation in catalogue_of("rules", CHINESE).items():
        missing = set(names.findall(" ".join(english.split()))) - set(names.findall(translation))
        if missing:
            wrong.append((english[:60], missing))
    assert wrong == []
