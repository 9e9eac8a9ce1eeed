"""Every command line that the documentation shows is one that the program takes."""

import argparse
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from kelpie.cli import parser

ROOT = Path(__file__).parents[2]
MADE_BY_THE_PROGRAM = {"commands.md", "exit-codes.md"}
PAGES = [
    page
    for page in sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
    if page.name not in MADE_BY_THE_PROGRAM
]
_BLOCK = re.compile(r"^```\w*\n(.*?)^```$", re.M | re.S)
_LINE = re.compile(r"^ *(?:\$ )?kelpie (?P<words>[a-z-]+(?: .+?)?)(?: +#.*| &)?$", re.M)
_INLINE = re.compile(r"`kelpie (?P<words>[a-z-]+(?: [^`]*)?)`")


def whole(page: str) -> Iterator[list[str]]:
    """Command lines in blocks."""
    for block in _BLOCK.findall(page):
        for found in _LINE.finditer(block.replace("\\\n", " ")):
            yield shlex.split(found["words"])


def named(page: str) -> Iterator[list[str]]:
    """Command lines in text, where places may be left out or stand for something."""
    for found in _INLINE.finditer(_BLOCK.sub("", page)):
        yield found["words"].replace("[", " ").replace("]", " ").split()


@cache
def _parser() -> argparse.ArgumentParser:
    return parser()


def _is_taken(words: list[str]) -> bool:
    try:
        _parser().parse_args(words)
    except SystemExit as end:
        return not end.code
    return True


def _is_known(words: list[str]) -> bool:
    """Whether command and options exist."""
    at = _parser()
    for word in words:
        below = [action for action in at._actions if isinstance(action, argparse._SubParsersAction)]
        if below and not word.startswith("-"):
            if word not in below[0].choices:
                return word.isupper() or word == "…"
            at = below[0].choices[word]
        elif word == "--":
            break
        elif (
            re.match(r"--?[a-z]", word)
            and word.partition("=")[0].rstrip(",") not in at._option_string_actions
        ):
            return False
    return True


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_command_lines_exist(page: Path) -> None:
    """An option that was renamed is renamed in the pages, too."""
    text = page.read_text(encoding="utf-8")
    shown = list(whole(text))
    abridged = [words for words in shown if "…" in words]
    assert [" ".join(words) for words in shown if words not in abridged and not _is_taken(words)] == []
    assert [" ".join(words) for words in [*abridged, *named(text)] if not _is_known(words)] == []


def test_command_lines_are_found() -> None:
    """In blocks, with and without a prompt, and in text."""
    page = (
        "`kelpie doctor --watch`, `kelpie undo ID`\n"
        "```\n$ kelpie doctor -b a:1   # here\nkelpie lab \\\n  list\nkelpies\nkelpie guard: restarts\n```\n"
    )
    assert list(whole(page)) == [["doctor", "-b", "a:1"], ["lab", "list"]]
    assert list(named(page)) == [["doctor", "--watch"], ["undo", "ID"]]


def test_a_wrong_line_is_noticed() -> None:
    """The judges of the test above judge."""
    assert not _is_taken(["doctor", "--no-such-option"])
    assert not _is_known(["doctor", "--no-such-option"])
    assert not _is_known(["no-such-command"])
    assert _is_known(["reset", "GROUP", "--to-earliest"])
