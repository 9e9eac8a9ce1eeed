r"""Whether a regular expression that a user wrote takes time in proportion to a line, whatever the line is.

Python tries the ways in which an expression can divide a text among its parts, one after the other. Where two
repetitions can share a text, as in `(.*?) \[(.*?)\] (.*)` the text " [ [ [ [", there are more ways the longer
the text is: for a line of some thousand characters it takes seconds, and with three repetitions hours.

So the expression is made into an automaton: one state for each character of the expression, and an edge to
each that may follow it. Two states p and q share a text if that text leads from p to p, from p to q, and from
q to q (Weber and Seidl, "On the degree of ambiguity of finite automata", 1991). Without two such states, the
number of ways has a limit that does not depend on the line.

A state q from which every text fits, as in a final `(.*)`, does not count: nothing more is tried behind it.
What the check does not know, as references to earlier groups, it refuses.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from string import printable
from typing import Any

_parser: Any = import_module("re._parser")  # Python has no other way to tell the parts of an expression.
_SAMPLES = " ax0" + printable + "".join(map(chr, range(32))) + "éŽ²٣\u2003中€"
"""At least one character of each class that an expression can name."""
_CLASSES = {
    "CATEGORY_DIGIT": re.compile(r"\d"),
    "CATEGORY_NOT_DIGIT": re.compile(r"\D"),
    "CATEGORY_SPACE": re.compile(r"\s"),
    "CATEGORY_NOT_SPACE": re.compile(r"\S"),
    "CATEGORY_WORD": re.compile(r"\w"),
    "CATEGORY_NOT_WORD": re.compile(r"\W"),
}
_MOST_COPIES = 30
"""Of what is repeated a fixed number of times. More than that count as any number."""
_LONGEST_LOOK = 50
_MOST_STATES = 400
_ENDS = ("AT_END", "AT_END_STRING")


class Ambiguous(ValueError):
    """The expression could take much longer than its text is long. The message says with which text."""


def check(pattern: re.Pattern[str]) -> None:
    """Raises Ambiguous. The pattern is used at the beginning of a line, and its dots fit any character."""
    _Automaton(pattern).check()


@dataclass(slots=True)
class _Part:
    r"""A part of an expression. True beside a state: to pass there has a condition, as `\b` is one."""

    first: dict[int, bool] = field(default_factory=dict)
    last: dict[int, bool] = field(default_factory=dict)
    empty: bool | None = None
    """Whether it fits the empty text: None if not, True on a condition."""


class _Automaton:
    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._ignore_case = bool(pattern.flags & re.IGNORECASE)
        self._samples = _SAMPLES
        self._fits: list[int] = []
        """State → the samples that it fits, as bits."""
        self._edges: list[dict[int, bool]] = []
        self._again: set[tuple[int, int]] = set()
        """Edges that two repetitions have."""
        nodes = list(_parser.parse(pattern.pattern, pattern.flags))
        self._samples += "".join(_named(nodes))
        self._ends = bool(nodes) and str(nodes[-1][0]) == "AT" and str(nodes[-1][1]) in _ENDS
        self._whole = self._sequence(nodes[: len(nodes) - self._ends])

    def check(self) -> None:
        reachable = [self._reachable(state) for state in range(len(self._edges))]
        for before, after in self._again:
            if before in reachable[after]:
                raise Ambiguous("a repetition that is repeated can divide a text in many ways")
        loops = [state for state, others in enumerate(reachable) if state in others]
        final = self._final()
        for p in loops:
            for q in loops:
                if p != q and q in reachable[p] and q not in final:
                    self._check_pair(p, q, reachable)

    def _check_pair(self, p: int, q: int, reachable: Sequence[set[int]]) -> None:
        """Whether a text leads from p to p, from p to q, and from q to q."""
        start = (p, p, q)
        texts = {start: ""}
        to_do = [start]
        for triple in to_do:
            x, y, z = triple
            for after_x in (state for state in self._edges[x] if p in reachable[state]):
                in_x = self._fits[after_x]
                for after_z in (state for state in self._edges[z] if q in reachable[state]):
                    in_z = in_x & self._fits[after_z]
                    for after_y in (state for state in self._edges[y] if in_z & self._fits[state]):
                        text = texts[triple] + self._sample(in_z & self._fits[after_y])
                        following = (after_x, after_y, after_z)
                        if following == (p, q, q):
                            raise Ambiguous(f"two of its parts can share the text {text!r}")
                        if following not in texts and q in {after_y} | reachable[after_y]:
                            texts[following] = text
                            to_do.append(following)

    def _final(self) -> set[int]:
        """States in which the line fits, whatever follows: nothing that was passed is tried again."""
        anything = (1 << len(self._samples)) - 1
        final = {
            state
            for state, is_conditional in self._whole.last.items()
            if not is_conditional
            and (not self._ends or (self._fits[state] == anything and state in self._edges[state]))
        }
        while leaving := {state for state in final if self._edges[state].keys() - final}:
            final -= leaving
        return final

    def _reachable(self, state: int) -> set[int]:
        """By one edge or more."""
        found = set(self._edges[state])
        to_do = list(found)
        while to_do:
            new = self._edges[to_do.pop()].keys() - found
            found |= new
            to_do += new
        return found

    def _sample(self, bits: int) -> str:
        return self._samples[(bits & -bits).bit_length() - 1]

    def _sequence(self, nodes: Iterable[Any]) -> _Part:
        whole = _Part(empty=False)
        for op, value in nodes:
            whole = self._joined(whole, self._part(str(op), value))
        return whole

    def _part(self, op: str, value: Any) -> _Part:
        if op in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
            return self._character(op, value)
        if op in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            return self._repeated(*value)
        if op == "BRANCH":
            return self._one_of([self._sequence(way) for way in value[1]])
        if op == "SUBPATTERN":
            self._ignore_case |= bool(value[1] & re.IGNORECASE)
            return self._sequence(value[3])
        if op == "ATOMIC_GROUP":
            return self._sequence(value)
        if op == "AT":
            return _Part(empty=True)
        if op in ("ASSERT", "ASSERT_NOT") and value[1].getwidth()[1] <= _LONGEST_LOOK:
            return _Part(empty=True)
        raise Ambiguous(f"it has {_WORDS.get(op, op)}")

    def _character(self, op: str, value: Any) -> _Part:
        state = len(self._fits)
        if state >= _MOST_STATES:
            raise Ambiguous(f"it has more than {_MOST_STATES} characters, repetitions counted")
        self._fits.append(
            sum(1 << bit for bit, each in enumerate(self._samples) if self._is(op, value, each))
        )
        self._edges.append({})
        return _Part({state: False}, {state: False})

    def _is(self, op: str, value: Any, sample: str) -> bool:
        return any(
            _fits(op, value, each)
            for each in ({sample, sample.swapcase()} if self._ignore_case else {sample})
        )

    def _repeated(self, least: Any, most: Any, body: Any) -> _Part:
        if least == most and most <= _MOST_COPIES:
            return self._sequence(list(body) * int(most))
        part = self._sequence(body)
        if part.empty is not None:
            raise Ambiguous("a part that may be empty is repeated, or may be left out")
        if most > 1:
            self._connect(part, part)
        return _Part(part.first, part.last, False if int(least) == 0 else None)

    def _joined(self, before: _Part, after: _Part) -> _Part:
        self._connect(before, after)
        first, last = dict(before.first), dict(after.last)
        if before.empty is not None:
            first |= {state: before.empty or condition for state, condition in after.first.items()}
        if after.empty is not None:
            last |= {state: after.empty or condition for state, condition in before.last.items()}
        is_empty = None if before.empty is None or after.empty is None else before.empty or after.empty
        return _Part(first, last, is_empty)

    def _one_of(self, ways: Sequence[_Part]) -> _Part:
        whole = _Part()
        for way in ways:
            whole.first |= way.first
            whole.last |= way.last
            if way.empty is not None:
                if whole.empty is not None:
                    raise Ambiguous("two alternatives may be empty, or begin in the same way")
                whole.empty = way.empty
        return whole

    def _connect(self, before: _Part, after: _Part) -> None:
        for state, condition in before.last.items():
            for following, other in after.first.items():
                if following in self._edges[state]:
                    self._again.add((state, following))
                self._edges[state][following] = self._edges[state].get(following, True) and (
                    condition or other
                )


_WORDS = {
    "GROUPREF": "a reference to an earlier group",
    "GROUPREF_EXISTS": "a condition on an earlier group",
    "ASSERT": f"a look ahead of more than {_LONGEST_LOOK} characters",
    "ASSERT_NOT": f"a look ahead of more than {_LONGEST_LOOK} characters",
}


def _fits(op: str, value: Any, sample: str) -> bool:
    match op:
        case "ANY":
            return True
        case "LITERAL":
            return bool(ord(sample) == value)
        case "NOT_LITERAL":
            return bool(ord(sample) != value)
        case "RANGE":
            return bool(value[0] <= ord(sample) <= value[1])
        case "CATEGORY":
            return _CLASSES[str(value)].match(sample) is not None
    is_negated = str(value[0][0]) == "NEGATE"
    return is_negated != any(_fits(str(each), inside, sample) for each, inside in value[is_negated:])


def _named(nodes: Any) -> set[str]:
    """Characters that the expression names, and those beside its ranges."""
    found: set[str] = set()
    to_do = [nodes]
    while to_do:
        node = to_do.pop()
        if isinstance(node, (list, tuple, _parser.SubPattern)):
            to_do += list(node)
        elif type(node) is int:
            found |= {chr(code) for code in (node - 1, node, node + 1) if 0 <= code <= 0x10FFFF}
    return found
