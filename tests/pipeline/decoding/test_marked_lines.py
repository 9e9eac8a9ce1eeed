"""Lines with words in them: what the compiled search finds is what looking at every line finds."""

from random import Random

import pytest

from kelpie.pipeline.decoding import marked_lines
from kelpie.pipeline.decoding.marked_lines import Brackets, Lines, Words

SURE, IN_BRACKET, OTHER = 1, 2, 4
WORDS = {b"abab": SURE, b"abcab": OTHER, b"groupId=": IN_BRACKET, b"cabca": OTHER, b"bbbbbb": SURE}
LONGEST = 60


def naive(text: bytes, known: set[bytes]) -> list[tuple[int, bytes]]:
    """Number and text of each line of interest."""
    found = []
    for number, line in enumerate(text.removesuffix(b"\n").split(b"\n") if text else []):
        wanted = len(line) > LONGEST or (line.startswith(b"{") and b"\\" in line)
        wanted |= any(word in line for word, mark in WORDS.items() if mark != IN_BRACKET)
        brackets = line.count(b"groupId=")
        wanted |= brackets > 1 or (brackets == 1 and not any(it + b" " in line for it in known))
        if wanted:
            found.append((number, line))
    return found


def searched(text: bytes, known: set[bytes]) -> list[tuple[int, bytes]]:
    brackets = Brackets()
    for it in known:
        brackets.add(it)
    words = Words.of(WORDS, bracketed=IN_BRACKET, sure=SURE)
    lines = Lines(words, text, LONGEST, brackets)
    found = [(it.number, text[it.start : it.end]) for it in lines]
    assert lines.count == len(text.removesuffix(b"\n").split(b"\n")) * bool(text)
    return found


@pytest.mark.parametrize("seed", range(40))
def test_search_finds_what_looking_at_every_line_finds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words that overlap, at every edge, in texts of few letters."""
    monkeypatch.setattr(marked_lines, "_BLOCK", 64)
    random = Random(seed)
    parts = [b"a", b"b", b"c", b"\n", b"\n", b"{", b"\\", b"abab", b"x" * 9]
    parts += [b"[x groupId=1] ", b"[y groupId=2] "]
    text = b"".join(random.choices(parts, k=random.randrange(300)))
    known = {b"[x groupId=1]"} if seed % 2 else set()
    assert searched(text, known) == naive(text, known)


def test_brackets_that_are_many_are_all_known() -> None:
    """The table of hashes grows."""
    brackets = Brackets()
    names = [b"[client %d, groupId=%d]" % (number, number) for number in range(5000)]
    for name in (*names, *names):
        brackets.add(name)
    words = Words.of(WORDS, bracketed=IN_BRACKET, sure=SURE)
    text = b"".join(name + b" says nothing\n" for name in (*names, b"[client 5000, groupId=5000]"))
    assert [it.number for it in Lines(words, text, LONGEST, brackets)] == [5000]
