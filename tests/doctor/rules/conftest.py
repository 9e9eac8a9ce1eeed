"""In all tests of rules: a rule that is not asked would have said what it says of all such cases."""

from collections.abc import Iterator
from typing import Any

import pytest

from kelpie.doctor.case import Case
from tests.doctor.asking import wrongly_left_out

_init = Case.__init__


@pytest.fixture(autouse=True)
def _rules_left_out_are_right(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every case that a test makes, for its own rule or another one, is judged by all rules."""
    cases: list[Case] = []

    def made(self: Case, *arguments: Any, **options: Any) -> None:
        _init(self, *arguments, **options)
        cases.append(self)

    monkeypatch.setattr(Case, "__init__", made)
    yield
    monkeypatch.undo()
    wrong = [problem for case in cases for problem in wrongly_left_out(case)]
    assert not wrong, "\n".join(dict.fromkeys(wrong))
