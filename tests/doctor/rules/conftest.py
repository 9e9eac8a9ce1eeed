"""In all tests of rules: a rule that is not asked would have said what it says of all such cases, and pages
can say every finding in Chinese.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from kelpie.doctor.case import Case
from kelpie.doctor.finding import Finding
from kelpie.doctor.rule import Rule
from tests.doctor.asking import wrongly_left_out
from tests.web.translation.leftover import english_left

_init = Case.__init__
_with_fields = Case.with_fields


@pytest.fixture(autouse=True)
def _rules_left_out_are_right(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every case that a test makes, for its own rule or another one, is judged by all rules."""
    cases: list[Case] = []

    def made(self: Case, *arguments: Any, **options: Any) -> None:
        _init(self, *arguments, **options)
        cases.append(self)

    def made_of(self: Case, **fields: Any) -> Case:
        case = _with_fields(self, **fields)
        cases.append(case)
        return case

    monkeypatch.setattr(Case, "__init__", made)
    monkeypatch.setattr(Case, "with_fields", made_of)
    yield
    monkeypatch.undo()
    wrong = [problem for case in cases for problem in wrongly_left_out(case)]
    assert not wrong, "\n".join(dict.fromkeys(wrong))


@pytest.fixture(autouse=True)
def _findings_are_said_in_chinese(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A sentence that is new, or put together anew, has its Chinese text in the same change."""
    wrong: list[str] = []
    finding_of = Rule.finding

    def said(self: Rule, *arguments: Any, **options: Any) -> Finding:
        finding = finding_of(self, *arguments, **options)
        wrong.extend(english_left(finding))
        return finding

    monkeypatch.setattr(Rule, "finding", said)
    yield
    assert not wrong, "\n".join(dict.fromkeys(wrong))
