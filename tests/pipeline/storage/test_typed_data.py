"""Values of declared types survive JSON, and data of other types is refused."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

import pytest

from kelpie.pipeline.sources.logs.progress import LogProgress
from kelpie.pipeline.storage.typed_data import Mismatch, read, shape, written


class Colour(IntEnum):
    RED = 1
    BLUE = 2


class Pair(NamedTuple):
    name: str
    number: int | None = None


@dataclass
class Everything:
    text: str
    flag: bool
    pairs: tuple[Pair, ...]
    mixed: tuple[str, int]
    by_colour: Mapping[Colour, Pair | None]
    names: set[str]
    fixed: frozenset[int]
    count: Counter[Colour]
    keys: Mapping[tuple[str | None, int], str] = field(default_factory=dict)
    rest: Sequence[Pair] = ()


VALUE = Everything(
    "\ud800 é\n",
    True,
    (Pair("a", 1), Pair("b")),
    ("x", 2),
    {Colour.RED: Pair("c"), Colour.BLUE: None},
    {"m", "n"},
    frozenset({1, 2}),
    Counter({Colour.BLUE: 3}),
    {(None, 1): "k"},
    [Pair("z", 0)],
)


def test_what_was_written_is_read() -> None:
    """Through JSON, which knows neither tuples nor sets nor keys that are no texts."""
    assert read(Everything, json.loads(json.dumps(written(VALUE)))) == VALUE


@pytest.mark.parametrize(
    ("hint", "data"),
    [
        (Pair, ["a"]),
        (Pair, ["a", "1"]),
        (Pair, ["a", True]),
        (Pair, ["a", 1, 2]),
        (Pair, {"name": "a"}),
        (Pair, None),
        (Colour, 3),
        (Everything, written(VALUE)[:-1]),
        (tuple[str, int], ["x", 1.0]),
        (frozenset[int], [[1]]),
        (Mapping[str, int], [["a", 1, 1]]),
        (Mapping[str, int], {"a": 1}),
    ],
)
def test_data_of_another_type_is_refused(hint: Any, data: Any) -> None:
    """Whoever can write the file decides what is in it, and not what is made of it."""
    with pytest.raises(Mismatch):
        read(hint, data)


def test_the_shape_changes_with_every_field_of_every_type_within() -> None:
    """A release with other fields must not read what this one wrote as its own."""

    @dataclass
    class Inner:
        a: int

    @dataclass
    class Other:
        a: int
        b: int = 0

    assert "number" in shape(Everything)
    assert shape(Inner) != shape(Other)
    assert all(
        name in shape(LogProgress) for name in ("Part: ", "Known: ", "Groups: ", "Connectors: ", "Stamp: ")
    )
