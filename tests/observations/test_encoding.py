"""Observations as plain data and back."""

import json
import typing
from dataclasses import fields, replace
from enum import Enum
from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kelpie.model.names import TopicPartition
from kelpie.observations import Commit, Committed, GroupState, Member, Observations
from kelpie.observations.encoding import (
    KINDS,
    add,
    decode,
    dumps,
    encode,
    kind_of,
    loads,
    read_columns,
    rows_of,
    write_columns,
)
from kelpie.observations.group_offsets import GroupCommits, GroupOffsets

_LETTERS = "\0\t \"\\'a7é€\ud800😀\U0010ffff"


def _value(type_: Any, random: Random) -> Any:
    """Any value that a field of this type may have."""
    arguments = typing.get_args(type_)
    origin = typing.get_origin(type_)
    if origin is tuple:
        return tuple(_value(arguments[0], random) for _ in range(random.randrange(4)))
    if arguments and type(None) in arguments:
        some = random.choice([argument for argument in arguments if argument is not type(None)])
        return None if random.random() < 0.3 else _value(some, random)
    if origin is not None:
        return {_value(str, random): _value(str, random) for _ in range(random.randrange(4))}
    if type_ is str:
        return "".join(random.choices(_LETTERS, k=random.randrange(13)))
    if type_ is bool:
        return random.random() < 0.5
    if type_ is int:
        return random.choice((-(2**63), -1, 0, 1, 2**63 - 1, random.randint(-(2**63), 2**63 - 1)))
    return random.choice(list(type_)) if issubclass(type_, Enum) else _row(type_, random)


def _row(type_: type, random: Random) -> Any:
    hints = typing.get_type_hints(type_)
    return type_(**{name: _value(hint, random) for name, hint in hints.items()})


_TOGETHER = 10
TEN_AT_ONCE = settings(max_examples=settings().max_examples // _TOGETHER)
"""Ten rows are one example: as many rows as else, and Hypothesis takes more time for an example than for a
row.
"""


def rows(type_: type) -> st.SearchStrategy[list[Any]]:
    """Hypothesis draws a seed; to draw every field takes it ten times as long."""

    def of(seed: int) -> list[Any]:
        random = Random(seed)
        return [_row(type_, random) for _ in range(_TOGETHER)]

    return st.integers(0, 2**32 - 1).map(of)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@TEN_AT_ONCE
def test_every_row_comes_back_as_it_was(kind: str, data: st.DataObject) -> None:
    """Tables hold rows as JSON: what is lost there is lost to the doctor."""
    for row in data.draw(rows(KINDS[kind])):
        back = loads(kind, dumps(row))
        assert back == row
        assert type(back) is type(row)
        assert kind_of(row) == kind


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@TEN_AT_ONCE
def test_rows_come_back_from_columns(kind: str, data: st.DataObject) -> None:
    """The store holds surveys by column: members and their partitions must come back to their own groups."""
    drawn = data.draw(rows(KINDS[kind]))
    for size, first in product(range(4), (0, 3, 6)):
        some = drawn[first : first + size]
        columns = json.loads(json.dumps(write_columns(KINDS[kind], some)))
        assert list(read_columns(KINDS[kind], columns, {})) == some


TOGETHER = ("group_commits", "group_offsets")
"""Lists whose rows stand for several rows of another kind."""


def test_rows_for_several_partitions_are_written_as_one_for_each() -> None:
    """Snapshots and recordings have one form, however the rows came."""
    names = (TopicPartition("orders", 0), TopicPartition("orders", 1))
    told = GroupOffsets("billing", names, (7, 8), (3, 4), ("", "m"), 1, "broker 1")
    commits = GroupCommits(
        "billing", names, (7, 8), (3, 4), ("", ""), ("id", "id"), 1, False, "offsets-3", [20, 22]
    )
    rows = list(rows_of(Observations(group_offsets=[told], group_commits=[commits])))
    assert rows == [
        ("commit", Commit("billing", "orders", 0, 7, 1, 3, "", source="offsets-3@20", topic_id="id")),
        ("commit", Commit("billing", "orders", 1, 8, 1, 4, "", source="offsets-3@22", topic_id="id")),
        ("committed", Committed("billing", "orders", 0, 7, 0, 3, "", 1, "broker 1")),
        ("committed", Committed("billing", "orders", 1, 8, 0, 4, "m", 1, "broker 1")),
    ]


def test_there_is_a_kind_for_every_list_of_observations() -> None:
    """Who adds a kind of row must say how it is written down."""
    lists = {field.name for field in fields(Observations)} - {"known_groups", *TOGETHER}
    observations = Observations()
    for kind, type_ in KINDS.items():
        add(observations, kind, typing.cast(Any, type_))
    assert all(len(getattr(observations, name)) == 1 for name in lists)
    assert [kind for kind, _ in rows_of(observations)] == list(KINDS)


def test_what_a_row_does_not_say_is_left_out_and_what_is_new_passed_over() -> None:
    """Releases come and go, tables stay."""
    row = decode("broker", {"node_id": 3, "colour": "blue"})
    assert encode(row) == {"node_id": 3}
    assert json.loads(dumps(row)) == {"node_id": 3}


def test_columns_of_an_older_release_lack_what_came_later() -> None:
    """A store must not forget all surveys because a row has got another field."""
    member = Member("app-1", "app", target=(TopicPartition("orders", 0),))
    row = GroupState("billing", "Stable", members=(member,), at=1, source="broker 1")
    columns = write_columns(GroupState, [row])
    del columns["share_positions"]
    _, members = columns["members"]
    del members["target"]
    assert list(read_columns(GroupState, columns, {})) == [
        row._replace(members=(replace(member, target=None),))
    ]
    del columns["state"]
    with pytest.raises(KeyError):
        list(read_columns(GroupState, columns, {}))
