"""`kelpie explain`."""

import pytest

from kelpie.cli import main
from kelpie.doctor.rules import rules


def test_a_code_or_a_name_gives_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    """As it stands in the finding, in any case."""
    assert main(["explain", "klp101"]) == 0
    page = capsys.readouterr().out
    assert page.startswith("KLP101 offsets-partition-leaderless\n\nWhat it sees: ")
    assert "Reproduce: kelpie lab run coordinator-outage" in page
    assert max(map(len, page.splitlines())) <= 80
    assert main(["explain", "offsets-partition-leaderless"]) == 0
    assert capsys.readouterr().out == page


def test_without_a_code_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """To choose from."""
    assert main(["explain"]) == 0
    listed = capsys.readouterr().out
    assert all(f"{rule.code}  {rule.name}\n" in listed for rule in rules().values())


def test_what_does_not_exist_is_told_with_what_does(capsys: pytest.CaptureFixture[str]) -> None:
    """A digit is soon mistyped."""
    assert main(["explain", "KLP198"]) == 64
    assert "There is no finding 'KLP198'. Did you mean KLP201, KLP202 or KLP203?" in capsys.readouterr().err
    assert main(["explain", "rebalance-strom"]) == 64
    assert "Did you mean rebalance-storm" in capsys.readouterr().err
