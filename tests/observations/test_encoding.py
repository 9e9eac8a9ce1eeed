"""Observations as plain data and back."""

import json
import typing
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelpie.observations import Observations
from kelpie.observations.encoding import KINDS, add, decode, dumps, encode, kind_of, loads, rows_of

_TEXT = st.text(st.characters(exclude_categories=()), max_size=12)


def _values(type_: Any) -> st.SearchStrategy[Any]:
    """Any value that a field of this type may have."""
    arguments = typing.get_args(type_)
    origin = typing.get_origin(type_)
    if origin is tuple:
        return st.lists(_values(arguments[0]), max_size=3).map(tuple)
    if arguments and type(None) in arguments:
        return st.none() | st.one_of([_values(it) for it in arguments if it is not type(None)])
    if origin is not None:
        return st.dictionaries(_TEXT, _TEXT, max_size=3)
    if issubclass(type_, Enum):
        return st.sampled_from(type_)
    plain = {str: _TEXT, int: st.integers(-(2**63), 2**63 - 1), bool: st.booleans()}
    return plain[type_] if type_ in plain else _rows(type_)


def _rows(type_: type) -> st.SearchStrategy[Any]:
    hints = typing.get_type_hints(type_)
    names = [it.name for it in fields(type_)] if is_dataclass(type_) else type_._fields  # type: ignore[attr-defined]
    return st.builds(type_, **{name: _values(hints[name]) for name in names})


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_every_row_comes_back_as_it_was(kind: str, data: st.DataObject) -> None:
    """Tables hold rows as JSON: what is lost there is lost to the doctor."""
    row = data.draw(_rows(KINDS[kind]))
    back = loads(kind, dumps(row))
    assert back == row
    assert type(back) is type(row)
    assert kind_of(row) == kind


def test_there_is_a_kind_for_every_list_of_observations() -> None:
    """Who adds a kind of row must say how it is written down."""
    lists = {it.name for it in fields(Observations)} - {"known_groups"}
    found = Observations()
    for kind, type_ in KINDS.items():
        add(found, kind, typing.cast(Any, type_))
    assert all(len(getattr(found, name)) == 1 for name in lists)
    assert [kind for kind, _ in rows_of(found)] == list(KINDS)


def test_what_a_row_does_not_say_is_left_out_and_what_is_new_passed_over() -> None:
    """Releases come and go, tables stay."""
    row = decode("broker", {"node_id": 3, "colour": "blue"})
    assert encode(row) == {"node_id": 3}
    assert json.loads(dumps(row)) == {"node_id": 3}
