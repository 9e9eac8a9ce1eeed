"""Counts what a regular expression costs: a backtracking matcher as Python's own, in Python, that counts.

`steps` tells how many characters, repetitions and alternatives were tried; wall-clock time would tell of the
machine. `attacks` makes texts of the expression itself: each of its repetitions, texts and beginnings again
and again, behind each of its beginnings. `grows_faster_than_text` says with which of them the steps for twice
the text are more than twice as many.
"""

import importlib
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from itertools import groupby, product
from typing import Any

# ruff: noqa: PLR0917  A matcher gets text, place and what follows behind its own arguments.

_parser: Any = importlib.import_module("re._parser")
_names: Any = importlib.import_module("re._constants")

Then = Callable[[int], int | None]
Matcher = Callable[[str, int, Then], int | None]
Is = Callable[[str], bool]

_SAMPLES = "a0 A-_.,:;=|/[](){}<>'\"#%@+\t\n\\\x1b"
_UNTIL = 8
"""Enough repetitions to tell lines from parabolas."""
_SLACK = 120
_MOST_TEXTS = 40
_MOST_STEPS = 200_000


class _TooMany(Exception):
    """It would not end within hours."""


class Expression:
    """One compiled expression, and how it is used: at the beginning of a text only, or anywhere in it."""

    def __init__(self, pattern: re.Pattern[Any], *, anywhere: bool) -> None:
        text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
        self.tree = _parser.parse(text, pattern.flags & ~re.UNICODE)
        self._ignore_case = bool(pattern.flags & re.IGNORECASE)
        self._dot_all = bool(pattern.flags & re.DOTALL)
        self._anywhere = anywhere
        self._steps = 0
        self._match = self._sequence(list(self.tree))

    def steps(self, text: str) -> int:
        self._steps = 0
        with suppress(_TooMany):
            for begin in range(len(text) + 1 if self._anywhere else 1):
                if self._match(text, begin, _done) is not None:
                    break
        return self._steps

    def end(self, text: str) -> int | None:
        """Where a match at the beginning of the text ends: to compare with Python's."""
        return self._match(text, 0, _done)

    def _sequence(self, nodes: list[Any]) -> Matcher:
        matchers: list[Matcher] = []
        for is_single, some in groupby(nodes, lambda node: self.single(*node) is not None):
            if is_single:
                matchers.append(partial(self._characters, [self._known_single(*node) for node in some]))
            else:
                matchers += [self._node(*node) for node in some]
        if len(matchers) == 1:
            return matchers[0]

        def match(text: str, at: int, then: Then, index: int = 0) -> int | None:
            if index == len(matchers):
                return then(at)
            return matchers[index](text, at, lambda end: match(text, end, then, index + 1))

        return match

    def _node(self, op: Any, value: Any) -> Matcher:
        name = str(op)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            return self._repetition(name, *value)
        match name:
            case "BRANCH":
                return partial(self._branch, [self._sequence(list(way)) for way in value[1]])
            case "SUBPATTERN":
                return self._sequence(list(value[3]))
            case "ATOMIC_GROUP":
                return partial(self._atomic, self._sequence(list(value)))
            case "AT":
                return partial(self._place, str(value))
            case "ASSERT" | "ASSERT_NOT":
                inside = self._sequence(list(value[1]))
                width = value[1].getwidth()[0] if value[0] < 0 else 0
                return partial(self._assertion, inside, width, name == "ASSERT")
        raise NotImplementedError(name)

    def _count(self, steps: int = 1) -> None:
        self._steps += steps
        if self._steps > _MOST_STEPS:
            raise _TooMany

    def _characters(self, singles: list[Is], text: str, at: int, then: Then) -> int | None:
        for single in singles:
            self._count()
            if at >= len(text) or not single(text[at]):
                return None
            at += 1
        return then(at)

    def _branch(self, ways: list[Matcher], text: str, at: int, then: Then) -> int | None:
        return next((end for way in ways if (end := way(text, at, then)) is not None), None)

    def _atomic(self, inside: Matcher, text: str, at: int, then: Then) -> int | None:
        end = inside(text, at, _done)
        return None if end is None else then(end)

    def _assertion(
        self, inside: Matcher, width: int, wanted: bool, text: str, at: int, then: Then
    ) -> int | None:
        self._count()
        found = at >= width and inside(text, at - width, _done) is not None
        return then(at) if found == wanted else None

    def _place(self, name: str, text: str, at: int, then: Then) -> int | None:
        self._count()
        before, after = at > 0 and _is_word(text[at - 1]), at < len(text) and _is_word(text[at])
        holds = {
            "AT_BEGINNING": at == 0,
            "AT_BEGINNING_STRING": at == 0,
            "AT_END": at == len(text) or text[at:] == "\n",
            "AT_END_STRING": at == len(text),
            "AT_BOUNDARY": before != after,
            "AT_NON_BOUNDARY": before == after,
        }
        return then(at) if holds[name] else None

    def _repetition(self, name: str, least: int, most: Any, body: Any) -> Matcher:
        limit = sys.maxsize if str(most) == "MAXREPEAT" else int(most)
        if name == "POSSESSIVE_REPEAT":
            inside = self._repetition("MAX_REPEAT", least, most, body)
            return partial(self._atomic, inside)
        if len(body) == 1 and self.single(*body[0]) is not None:
            single = self._known_single(*body[0])
            return partial(self._run, single, least, limit, name == "MIN_REPEAT")
        return partial(self._again, self._sequence(list(body)), least, limit, name == "MIN_REPEAT", 0)

    def _run(
        self, single: Is, least: int, most: int, lazy: bool, text: str, at: int, then: Then
    ) -> int | None:
        end = at
        if lazy:
            while end - at < least and end < len(text) and single(text[end]):
                end += 1
                self._count()
            while end - at >= least:
                found = then(end)
                if found is not None or end - at >= most or end >= len(text) or not single(text[end]):
                    return found
                end += 1
                self._count()
            return None
        while end - at < most and end < len(text) and single(text[end]):
            end += 1
        self._count(end - at + 1)
        for tried in range(end, at + least - 1, -1):
            self._count()
            found = then(tried)
            if found is not None:
                return found
        return None

    def _again(
        self, inside: Matcher, least: int, most: int, lazy: bool, count: int, text: str, at: int, then: Then
    ) -> int | None:
        def once_more() -> int | None:
            self._count()
            if count >= most:
                return None
            return inside(
                text,
                at,
                lambda end: (
                    then(end)  # As Python does: an empty repetition is the last one.
                    if end == at and count >= least
                    else self._again(inside, least, most, lazy, count + 1, text, end, then)
                ),
            )

        if count < least:
            return once_more()
        if lazy:
            found = then(at)
            return once_more() if found is None else found
        found = once_more()
        return then(at) if found is None else found

    def _known_single(self, op: Any, value: Any) -> Is:
        """The same as `single`, which must not be None; it remembers each character."""
        single = self.single(op, value)
        assert single is not None
        return cache(single)

    def single(self, op: Any, value: Any) -> Is | None:
        """Whether a node stands for one character, and which."""
        match str(op):
            case "LITERAL":
                return lambda char: self._same(char, value)
            case "NOT_LITERAL":
                return lambda char: not self._same(char, value)
            case "ANY":
                return lambda char: self._dot_all or char != "\n"
            case "IN":
                return partial(self._in, value)
        return None

    def _same(self, char: str, code: int) -> bool:
        return char.lower() == chr(code).lower() if self._ignore_case else ord(char) == code

    def _in(self, items: list[Any], char: str) -> bool:
        negated = str(items[0][0]) == "NEGATE"
        return negated != any(self._item(str(op), value, char) for op, value in items[negated:])

    def _item(self, op: str, value: Any, char: str) -> bool:
        if op == "LITERAL":
            return self._same(char, value)
        if op == "RANGE":
            both = (char.lower(), char.upper()) if self._ignore_case else (char,)
            return any(value[0] <= ord(each) <= value[1] for each in both)
        kind = str(value)
        holds = char.isdecimal() if "DIGIT" in kind else char.isspace() if "SPACE" in kind else _is_word(char)
        return holds != ("NOT_" in kind)


def _done(end: int) -> int:
    return end


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def attacks(expression: Expression) -> Iterator[tuple[str, str, str]]:
    """Beginning, what to repeat, and end."""
    beginnings, again = [""], list("a 0")
    _walk(expression, list(expression.tree), "", beginnings, again)
    pieces = list(dict.fromkeys([*again, *beginnings[1:]]))
    texts = list(product(dict.fromkeys(beginnings), pieces, ("\n\x01", "\x01")))
    yield from texts[:: 1 + len(texts) // _MOST_TEXTS]


def _walk(
    expression: Expression, nodes: list[Any], before: str, beginnings: list[str], again: list[str]
) -> str:
    """Notes the beginnings and repetitions of a part of an expression; the shortest text that fits it."""
    made, literal = "", ""
    for op, value in nodes:
        name = str(op)
        single = expression.single(op, value)
        sample = ""
        if single is not None:
            preferred = (chr(value), *_SAMPLES) if name == "LITERAL" else _SAMPLES
            sample = next((char for char in preferred if single(char)), "")
        elif name.endswith("REPEAT"):
            inner = _walk(expression, list(value[2]), before + made, beginnings, again)
            sample = inner * int(value[0])
            if int(value[1]) > 20:
                beginnings += [before + made, before + made + inner]
                again += [inner, before[-1:] + inner]
        elif name == "BRANCH":
            ways = [_walk(expression, list(way), before + made, beginnings, again) for way in value[1]]
            sample = ways[0]
        elif name in ("SUBPATTERN", "ATOMIC_GROUP"):
            body = value[3] if name == "SUBPATTERN" else value
            sample = _walk(expression, list(body), before + made, beginnings, again)
        literal = literal + sample if name == "LITERAL" else ""
        if len(literal) > 1 and again[-1] == literal[:-1]:
            again[-1] = literal
        elif literal:
            again.append(literal)
        made += sample
    return made


def grows_faster_than_text(
    expression: Expression, texts: Iterator[tuple[str, str, str]]
) -> tuple[str, list[int]] | None:
    """The first text for which the steps do not grow as its length does, and the steps."""
    with _deep():
        for begin, piece, end in texts:
            if not piece:
                continue
            short, middle, long = (
                expression.steps(begin + piece * (_UNTIL * times) + end) for times in (1, 2, 4)
            )
            if long - middle > 2.4 * (middle - short) + _SLACK or long > _MOST_STEPS:
                return begin + piece + "…" + end, [short, middle, long]
    return None


@contextmanager
def _deep() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
