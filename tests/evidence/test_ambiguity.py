"""A user's expression with which a hostile line would take hours is refused, before the line is there."""

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelpie.evidence.logs.ambiguity import Ambiguous, check
from kelpie.evidence.logs.hints import parse_layout
from tests.evidence.regex_steps import Expression, attacks, grows_faster_than_text

TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}"
SLOW = [
    r"(.*?) \[(.*?)\] (.*)",
    r"(.+?)\s+(\w+)\s+(.*)",
    rf".*?{TIME} +\w+ +\[.*?\] (.*)",
    r"~[^A-Z]*(\w+) (.*)",
    r"(.*),(.*)=$",
    r"\s*\s*x(.*)",
    r"[a-m]+[m-z]+x",
    r"(?i)a+A+x",
    r"\d{1,90}\d{1,90}x",
    r"(?:\w+\s?)*$",
    r"(a+)+b",
    r"(?:a*b*)*c",
    r"(?:ab|a|b)*c",
    r".*?[ab]*$",
    r"(?:[ab]*x|.)*",
    r"(?:[ab]|[ab])*$",
    r"(?:(?:a?)?b)*c",
    r"(?:(?:a?)*b)*c",
]
_CHARACTERS = ("a", "b", " ", ".", r"\S", r"\w", "[^a]", "[ab]")
_REPETITIONS = ("", "", "?", "*", "+", "*?", "+?", "{2}")


@st.composite
def _expressions(draw: st.DrawFn) -> str:
    """Some repetitions in a row, some of them in a group that is repeated."""
    pieces = draw(st.lists(st.sampled_from([*map("".join, product(_CHARACTERS, _REPETITIONS))]), min_size=1))
    begin, end = sorted((draw(st.integers(0, len(pieces))), draw(st.integers(0, len(pieces)))))
    inside = "".join(pieces[begin:end])
    group = f"(?:{inside}|{draw(st.sampled_from(_CHARACTERS))}){draw(st.sampled_from(_REPETITIONS))}"
    return (
        "".join(pieces[:begin]) + group + "".join(pieces[end:]) + draw(st.sampled_from(["", "$", r"\b", "c"]))
    )


@pytest.mark.parametrize(
    "expression",
    [
        r"(?P<time>\S+ \S+)\|(?P<level>\w+)\|(?P<message>.*)",
        rf".*?(?P<time>{TIME}) +(?P<level>\w+) +(?P<message>.*)",
        r"<(?P<time>[^>]+)> (?P<level>\w+) (?P<message>.*)",
        r"^(?P<time>.{23}) \[(?P<logger>[^]]*)\] (?P<message>.*)$",
        r"(?i)(?P<level>info|warn)\b\s+(?P<message>.*)",
        r"(?P<message>.*) \((?P<logger>[\w.]+)\)$",
        r"(.*?) - (.*)$",
        r"([^|]+)\|([^|]+)\|(.+)",
        r"(?:\w+=\S+ )*(.*)",
    ],
)
def test_an_expression_with_one_way_through_a_line_is_taken(expression: str) -> None:
    """Also one with several parts of any length, if they share no text."""
    check(re.compile(expression, re.DOTALL))


@pytest.mark.parametrize("expression", SLOW)
def test_an_expression_whose_parts_can_share_a_text_is_refused(expression: str) -> None:
    """There is a text for which it takes much longer than the text is long: the counting matcher finds it."""
    pattern = re.compile(expression, re.DOTALL)
    with pytest.raises(Ambiguous) as caught:
        check(pattern)
    shared = re.search(r"share the text '(.*)'", str(caught.value))
    counted = Expression(pattern, anywhere=False)
    texts = [*attacks(counted), ("", "b", "\x01")]
    if shared is not None:
        texts += [(begin, shared[1], "\x01") for begin, _, _ in texts]
    assert grows_faster_than_text(counted, iter(texts)) is not None


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        (r"(\w+)\1", "a reference to an earlier group"),
        (r"a(?=.*b)c", "a look ahead"),
        (r"(?:.{20}){30}", "more than 400 characters"),
    ],
)
def test_what_cannot_be_checked_is_refused(expression: str, words: str) -> None:
    """The message says what it is."""
    with pytest.raises(Ambiguous, match=words):
        check(re.compile(expression, re.DOTALL))


@given(_expressions())
def test_an_expression_that_is_taken_takes_time_in_proportion_to_the_text(expression: str) -> None:
    """Whatever it is made of: steps are counted for texts that are made of its own parts."""
    pattern = re.compile(expression, re.DOTALL)
    try:
        check(pattern)
    except Ambiguous:
        return
    counted = Expression(pattern, anywhere=False)
    assert grows_faster_than_text(counted, attacks(counted)) is None


def test_a_layout_that_would_be_slow_is_refused_in_words() -> None:
    """They say which text it is about, and what to write instead."""
    with pytest.raises(ValueError, match="one long line could take hours") as caught:
        parse_layout(r"shop.log=(?P<time>.*?) \[(?P<level>.*?)\] (?P<message>.*)")
    assert "two of its parts can share the text ' [" in str(caught.value)
    assert "[^]]* in place of .*?" in str(caught.value)
