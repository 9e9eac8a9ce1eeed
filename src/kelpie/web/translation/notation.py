"""How a sentence with holes is written in a catalogue, and how a text is compared with it.

The doctor makes its sentences with f-strings. In a catalogue, such a sentence has its values as numbered
holes, and words of which the code chooses one as a choice with a letter:

    Group {0} {a:has|have} no coordinator: {1}.

A hole with a sign, as in `{0#} groups`, holds a number and nothing else.

A translation names the holes in any order, and a choice with words of its own, or not at all:

    {0} 没有协调器：{1}。

A text is compared from left to right: the fixed parts are searched one after the other, each where it first
occurs, so the work grows with the length of the text alone, whatever names are in it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, product
from typing import NamedTuple

MOST_ALTERNATIVES = 64
_MOST_MATCHES = 10
_MARK = re.compile(r"\{(\d+#?|[a-z]:[^{}]*)\}")
_NUMBER = re.compile(r"[+\-−]?\d[\d,.]*(?:[eE][+\-]?\d+)?(?:[-–]\d[\d,.]*)? ?%?")


@dataclass(frozen=True, slots=True)
class Hole:
    number: int
    is_numeric: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    letter: str
    options: tuple[str, ...]


Part = str | Hole | Choice


@dataclass(frozen=True, slots=True)
class Match:
    holes: tuple[str, ...]
    chosen: Mapping[str, int]
    """By letter of the choice."""


def parse(text: str) -> tuple[Part, ...]:
    parts: list[Part] = []
    for at, piece in enumerate(_MARK.split(text)):
        if at % 2 == 0:
            if piece:
                parts.append(piece)
        elif piece[0].isdecimal():
            parts.append(Hole(int(piece.rstrip("#")), piece.endswith("#")))
        else:
            letter, _, options = piece.partition(":")
            parts.append(Choice(letter, tuple(options.split("|"))))
    return tuple(parts)


def written(parts: Iterable[Part]) -> str:
    """The reverse of `parse`."""
    text = ""
    for part in parts:
        if isinstance(part, str):
            text += part
        elif isinstance(part, Hole):
            text += f"{{{part.number}{'#' * part.is_numeric}}}"
        else:
            text += f"{{{part.letter}:{'|'.join(part.options)}}}"
    return text


class _Wording(NamedTuple):
    """A fixed part of a template between two holes, in one of its wordings."""

    text: str
    chosen: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Template:
    """`fixed` has one more element than there are holes; each has its longest wording first."""

    text: str
    fixed: tuple[tuple[_Wording, ...], ...]
    numeric: tuple[bool, ...]
    """Of each hole, whether it holds a number."""

    @classmethod
    def of(cls, text: str) -> "Template":
        runs: list[list[Part]] = [[]]
        numeric = []
        for part in parse(text):
            if isinstance(part, Hole):
                runs.append([])
                numeric.append(part.is_numeric)
            else:
                runs[-1].append(part)
        return cls(text, tuple(_wordings(run) for run in runs), tuple(numeric))

    @cached_property
    def anchor(self) -> str:
        """A text without this is none of the template's. Empty: any text may be."""
        sure = [run[0].text for run in self.fixed if len(run) == 1]
        return max(sure, key=len, default="")

    @cached_property
    def weight(self) -> int:
        """How many letters are fixed: the more, the less can a text be the template's by chance."""
        return sum(sum(sign.isalpha() for sign in run[-1].text) for run in self.fixed)

    @property
    def beginnings(self) -> tuple[str, ...]:
        return tuple(wording.text for wording in self.fixed[0])

    def matches(self, text: str) -> Iterator[Match]:
        """The ways in which a text can be of the template, at most `_MOST_MATCHES`: a name may have a fixed
        part in it. No way is tried that does not come to an end.
        """
        for last in self.fixed[-1]:
            if text.endswith(last.text):
                ends = self._latest(text, len(text) - len(last.text)) if len(self.fixed) > 1 else [0]
                if ends is not None:
                    yield from islice(self._ways(text, last, ends), _MOST_MATCHES)
                return

    def _latest(self, text: str, end: int) -> list[int] | None:
        """Where each fixed part begins at the latest, so that all that follow find a place."""
        places = [end]
        for run in reversed(self.fixed[:-1]):
            end = max(text.rfind(wording.text, 0, end) for wording in run)
            if end < 0:
                return None
            places.append(end)
        return places[::-1]

    def _ways(self, text: str, last: _Wording, latest: list[int]) -> Iterator[Match]:
        if len(self.fixed) == 1:
            if text == last.text:
                yield Match((), dict(last.chosen))
            return
        for first in self.fixed[0]:
            if text.startswith(first.text):
                for holes, chosen in self._rest(text, 1, len(first.text), latest):
                    yield Match(holes, dict([*first.chosen, *chosen, *last.chosen]))
                return

    def _rest(
        self, text: str, number: int, at: int, latest: list[int]
    ) -> Iterator[tuple[tuple[str, ...], tuple[tuple[str, int], ...]]]:
        """Holes and choices from the fixed part of this number on; the hole before it begins at `at`."""
        if number == len(self.fixed) - 1:
            if at <= latest[number] and self._fits(number - 1, text[at : latest[number]]):
                yield (text[at : latest[number]],), ()
            return
        for place, wording in _places(self.fixed[number], text, at, latest[number]):
            if not self._fits(number - 1, text[at:place]):
                continue
            behind = place + len(wording.text)
            for holes, chosen in self._rest(text, number + 1, behind, latest):
                yield (text[at:place], *holes), (*wording.chosen, *chosen)

    def _fits(self, hole: int, text: str) -> bool:
        return not self.numeric[hole] or is_number(text)


def is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None


def _wordings(run: list[Part]) -> tuple[_Wording, ...]:
    choices = [part for part in run if isinstance(part, Choice)]
    wordings = []
    for numbers in product(*(range(len(choice.options)) for choice in choices)):
        chosen = dict(zip((choice.letter for choice in choices), numbers, strict=True))
        words = [part.options[chosen[part.letter]] if isinstance(part, Choice) else part for part in run]
        wordings.append(_Wording("".join(map(str, words)), tuple(chosen.items())))
    assert len(wordings) <= MOST_ALTERNATIVES, run
    return tuple(sorted(wordings, key=lambda each: -len(each.text)))


def _places(run: tuple[_Wording, ...], text: str, start: int, latest: int) -> Iterator[tuple[int, _Wording]]:
    """Where a fixed part occurs, from left to right; at one place its longest wording.

    A full stop ends a sentence: the one in "orders.v2" is none.
    """
    while start <= latest:
        found = [(text.find(wording.text, start), -len(wording.text), wording) for wording in run]
        place, _, wording = min((each for each in found if each[0] >= 0), default=(-1, 0, run[0]))
        if not 0 <= place <= latest:
            return
        if not (wording.text.endswith(".") and text[place + len(wording.text) :][:1].strip()):
            yield place, wording
        start = place + 1
