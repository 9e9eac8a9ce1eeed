"""Twice the line, twice the work: no expression that reads evidence takes longer, whatever it reads.

Work is counted in steps (`regex_steps`), never in seconds.
"""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kelpie
from kelpie.evidence.logs import librdkafka
from kelpie.evidence.logs.expressions import NotLinear, expression, pieces_of, trimmed
from kelpie.evidence.logs.log_reader import TABLE
from kelpie.evidence.logs.matching import Pattern, pattern
from kelpie.observations import EventKind
from tests.evidence.reading import events_of
from tests.evidence.regex_steps import Expression, attacks, grows_faster_than_text

_PACKAGES = ("evidence", "guard", "model", "observations")
_ANYWHERE = {"search", "finditer", "findall", "sub", "subn", "split"}
_AT_BEGINNINGS = {"kelpie.evidence.logs.wrappers"}
"""Modules that hand their expressions to a function, which looks at the beginning of a line only."""
_HEAD = "[2026-11-15 20:56:40,123] INFO "


def _expressions() -> Iterator[tuple[str, re.Pattern[str], bool]]:
    """Every expression of a module, and whether the module looks for it anywhere in a text."""
    source = Path(kelpie.__file__).parent
    for path in sorted(path for package in _PACKAGES for path in (source / package).rglob("*.py")):
        name = ".".join(("kelpie", *path.relative_to(source).with_suffix("").parts))
        name = name.removesuffix(".__init__")
        tree = ast.parse(path.read_text())
        used: dict[str, set[str]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                used.setdefault(node.value.id, set()).add(node.attr)
        module = importlib.import_module(name)
        for assigned in tree.body:
            targets = assigned.targets if isinstance(assigned, ast.Assign) else []
            for target in targets:
                value = getattr(module, target.id) if isinstance(target, ast.Name) else None
                if isinstance(target, ast.Name) and isinstance(value, re.Pattern):
                    uses = used.get(target.id, set())
                    anywhere = bool(uses & _ANYWHERE) or not (uses or name in _AT_BEGINNINGS)
                    yield f"{name}.{target.id}", value, anywhere


def _templates() -> Iterator[Pattern]:
    yield from TABLE.patterns
    for table in librdkafka.TABLES.values():
        yield from table.patterns


def test_every_expression_takes_time_in_proportion_to_the_text() -> None:
    """A file that somebody else wrote must not decide how long the reader takes."""
    slow = {}
    count = 0
    for name, compiled, anywhere in _expressions():
        count += 1
        counted = Expression(compiled, anywhere=anywhere)
        grown = grows_faster_than_text(counted, attacks(counted))
        if grown is not None:
            slow[name] = grown
    assert not slow
    assert count > 80, "the expressions are no longer found"


def test_every_template_takes_time_in_proportion_to_the_line() -> None:
    """A group's name, an error, a reason reach the line: each text of a template may come again and again."""
    for template in _templates():
        counted = Expression(template.regex, anywhere=False)
        tried = ((template.beginning, piece, "\x01") for piece in (" ", template.longest))
        assert grows_faster_than_text(counted, tried) is None, template.regex.pattern


@given(st.text(" abg-1()[].,{}", max_size=60), st.sampled_from(list(_templates())))
def test_steps_are_counted_as_python_takes_them(filling: str, template: Pattern) -> None:
    """The counting matcher finds what Python's finds, so what it counts is what Python does."""
    text = trimmed(template.beginning + filling + template.longest + filling)
    match = template.regex.match(text)
    assert Expression(template.regex, anywhere=False).end(text) == (None if match is None else match.end())


def test_an_expression_that_tries_every_way_is_found() -> None:
    """The test above can fail: two holes that may share what is between them."""
    for slow in (r"a(.*?) b(.*?) c(.*?)\Z", r"(\S+):(\d+)", r"x(.*?)\s*$", r"(?:a|a)*b", r"(a+)+b"):
        counted = Expression(re.compile(slow), anywhere=True)
        assert grows_faster_than_text(counted, attacks(counted)) is not None, slow


@pytest.mark.parametrize(
    "template",
    [
        "Group {group}{reason} ends",
        "At {offset}{*} it ended",
        "{*}{node} left",
        "Generation {generation}0 began",
    ],
)
def test_a_template_that_would_not_be_linear_is_refused(template: str) -> None:
    """When the tables are loaded, and not when somebody's log is read."""
    with pytest.raises(NotLinear):
        pattern(EventKind.JOINED, template)


def test_a_hole_ends_where_the_text_behind_it_is_found_first() -> None:
    """Also if the text is in the name of a group; numbers behind it decide."""
    found = expression("Stabilized group {group} generation {generation} with {members} members.").match(
        "Stabilized group a generation b generation 7 with 3 members"
    )
    assert found is not None
    assert found.groupdict() == {"group": "a generation b", "generation": "7", "members": "3"}
    assert pieces_of("A {group} b {*}…") == ["A ", "group", " b ", "*", ""]


def test_a_line_that_took_minutes_is_read() -> None:
    """Several holes, each of which could end at any of a thousand places. It took minutes."""
    name = "Created a new member id " * 160 + "joins group " * 160
    line = f"{_HEAD}[GroupCoordinator 1]: Dynamic member with unknown member id joins group {name}"
    counted = [
        Expression(template.regex, anywhere=False).steps(line.partition("]: ")[2])
        for template in _templates()
        if template.beginning.startswith("Dynamic")
    ]
    assert counted
    assert max(counted) < 6 * len(line)


def test_a_member_before_anything_is_read_whole() -> None:
    """With anything behind it, the id of the member used to be empty."""
    (event,) = events_of(
        f"{_HEAD}[GroupCoordinator 1]: Static member with groupInstanceId=i-1 and unknown member id joins "
        "group g in Stable state. Assigned member id i-1-abc to it."
    )
    assert (event.group, event.member, event.instance_id) == ("g", "i-1-abc", "i-1")
