"""docs/tutorial.md, as a reader goes through it."""

from pathlib import Path

import pytest

from tests.documentation.console import Step, Terminal, files, is_as_shown, steps

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial.md"
PORTS = "1909"


def test_a_reader_can_follow_the_tutorial(tmp_path: Path) -> None:
    """Every command in its order; what it shows is what comes."""
    page = TUTORIAL.read_text(encoding="utf-8")
    with Terminal(tmp_path, PORTS) as terminal:
        for name, text in files(page).items():
            terminal.write(name, text)
        for step in steps(page):
            said = terminal.run(step)
            assert is_as_shown(said, step.shown), f"line {step.line}: $ {step.command}\n{said}"


def test_commands_are_taken_from_console_blocks_in_order() -> None:
    """A line may go on on the next one; other blocks are not run."""
    page = "```console\n$ a \\\n   b\nout\n$ c\n```\n\n```bash\n$ d\n```\n"
    assert steps(page) == [Step(2, "a b", "out\n"), Step(5, "c", "")]


@pytest.mark.parametrize(
    ("said", "shown", "same"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\nb\n", "a\n", False),
        ("a\nx\ny\nb\n", "a\n…\nb\n", True),
        ("a\nb\n", "a\n…\nb\n", True),
        ("took 12 s.\n", "took … s.\n", True),
        ("took 12 s!\n", "took … s.\n", False),
        ("", "", True),
        ("oops\n", "", False),
    ],
)
def test_what_comes_is_compared_in_full(said: str, shown: str, same: bool) -> None:
    """A line more, or another word, is a difference; an ellipsis allows it."""
    assert is_as_shown(said, shown) == same
