"""The rules' pages: complete, and in step with the docstrings."""

import ast
import inspect
import re
import sys
from pathlib import Path

import pytest

from kelpie.doctor.pages import pages
from kelpie.doctor.rules import rules

FOLDER = Path(__file__).parents[2] / "docs" / "rules"
PARAGRAPHS = (
    "What it sees",
    "Why it matters",
    "How it decides",
    "What it needs",
    "What to do",
    "When it is wrong",
    "Reproduce",
)

NO_TOOL = {
    "KLP305": "no tool of Kafka asks a leader where an epoch ends (OffsetForLeaderEpoch)",
    "KLP316": "no tool of Kafka shows the clock of a broker",
    "KLP603": "no tool of Kafka shows a certificate; openssl does",
    "KLP504": "settings of consumers are in their own files and logs; no broker and no ZooKeeper has them",
}
"""Rules whose findings nobody can check with Kafka's own tools, and why."""


def test_the_pages_on_disk_are_those_of_the_docstrings() -> None:
    """Write them anew with: python -m kelpie.doctor.pages docs/rules."""
    on_disk = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    assert on_disk == pages()


@pytest.mark.parametrize("code", rules())
def test_a_page_says_all_that_a_reader_asks(code: str) -> None:
    """What, why, how, what it needs, what to do, when it errs, and how to see it oneself."""
    told = re.findall(rf"^({'|'.join(PARAGRAPHS)})[:,]", rules()[code].page, re.M)
    assert told == list(PARAGRAPHS)


@pytest.mark.parametrize("code", rules())
def test_a_page_says_what_the_rule_says_without_what_it_needs(code: str) -> None:
    """Rights, releases, logs and two looks are often missing; "no data" is never "healthy"."""
    needs = rules()[code].page.partition("\nWhat it needs:")[2].partition("\n\n")[0]
    assert re.search(r"undetermined|says nothing|says no more", needs), needs


@pytest.mark.parametrize("code", [code for code, rule in rules().items() if rule.judge is not None])
def test_a_report_says_in_words_what_groups_have(code: str) -> None:
    """Whoever is woken at night reads "1 of 3 groups has no room for more members", not a rule's name."""
    words = rules()[code].presentation
    assert words.of_one
    assert words.of_many
    source = inspect.getsource(sys.modules[rules()[code].judge.__module__])
    assert words.when_over or "until=" not in source


def test_codes_and_names_are_used_once() -> None:
    """A code is never reused; a name is what people search for."""
    assert len({rule.name for rule in rules().values()}) == len(rules())


@pytest.mark.parametrize("code", rules())
def test_a_finding_names_the_command_that_shows_it_without_kelpie(code: str) -> None:
    """Who does not trust a finding at night checks it with the tools that they know."""
    rule = rules()[code]
    judge = rule.judge or rule.judge_cluster
    assert judge is not None
    calls = [
        node
        for node in ast.walk(ast.parse(inspect.getsource(sys.modules[judge.__module__])))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "RULE.finding"
    ]
    assert calls
    without = [call.lineno for call in calls if "check" not in {word.arg for word in call.keywords}]
    assert len(without) == (len(calls) if code in NO_TOOL else 0), f"lines {without} of {judge.__module__}"
