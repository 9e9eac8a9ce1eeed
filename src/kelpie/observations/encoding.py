"""Rows of observations as plain data, ready for JSON, and back: nothing is lost on the way.

Each kind of row has a word ("broker", "partition", "ends" …). What a row does not say, because it is the
field's default, is left out; so rows of an older release can still be read when a field was added.

    kind, data = kind_of(row), encode(row)
    assert decode(kind, data) == row
"""

import json
import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from kelpie.observations.cluster import Broker, CoordinatorAnswer, PartitionView, Setting, Unasked
from kelpie.observations.collection import Observations
from kelpie.observations.events import Event
from kelpie.observations.groups import Generation, GroupRemoved, GroupState, Listing
from kelpie.observations.positions import Commit, Committed, EpochEnd, LogEnds, OpenTransaction

KINDS: dict[str, type] = {
    "broker": Broker,
    "partition": PartitionView,
    "listing": Listing,
    "answer": CoordinatorAnswer,
    "state": GroupState,
    "generation": Generation,
    "removal": GroupRemoved,
    "commit": Commit,
    "committed": Committed,
    "ends": LogEnds,
    "transaction": OpenTransaction,
    "epoch-end": EpochEnd,
    "setting": Setting,
    "event": Event,
    "unasked": Unasked,
}
_LISTS = {
    "broker": "brokers",
    "partition": "partitions",
    "listing": "listings",
    "answer": "answers",
    "state": "states",
    "generation": "generations",
    "removal": "removals",
    "commit": "commits",
    "committed": "committed",
    "ends": "ends",
    "transaction": "transactions",
    "epoch-end": "epoch_ends",
    "setting": "settings",
    "event": "events",
    "unasked": "unasked",
}
_WORDS = {type_: kind for kind, type_ in KINDS.items()}


def kind_of(row: Any) -> str:
    return _WORDS[type(row)]


def encode(row: Any) -> dict[str, Any]:
    """A row as a dict of plain values: texts, numbers, truth values, None, lists and dicts of these."""
    own: type = type(row)
    return {
        name: _plain(value)
        for name, (_, default) in _fields(own).items()
        if (value := getattr(row, name)) != default or type(value) is not type(default)
    }


def decode(kind: str, data: Mapping[str, Any]) -> Any:
    """The row. Raises KeyError for a kind that nobody knows; fields that nobody knows are passed over."""
    return _made(KINDS[kind], data)


def dumps(row: Any) -> str:
    """A row as JSON, in ASCII: any text, also a broken one, comes back as it was."""
    return json.dumps(encode(row), separators=(",", ":"))


def loads(kind: str, text: str) -> Any:
    return decode(kind, json.loads(text))


def rows_of(observations: Observations) -> Iterator[tuple[str, Any]]:
    """All rows, with their kind; not what is merely known of groups (`known_groups`)."""
    for kind, name in _LISTS.items():
        for row in getattr(observations, name):
            yield kind, row


def add(observations: Observations, kind: str, row: Any) -> None:
    """Puts a row where rows of its kind are."""
    getattr(observations, _LISTS[kind]).append(row)


@cache
def _fields(type_: type) -> dict[str, tuple[Any, Any]]:
    """Of a dataclass or a named tuple: name → (type, default)."""
    hints = get_type_hints(type_)
    if is_dataclass(type_):
        return {it.name: (hints[it.name], _default(it)) for it in fields(type_)}
    defaults = getattr(type_, "_field_defaults", {})
    names: tuple[str, ...] = getattr(type_, "_fields", ())
    return {name: (hints[name], defaults.get(name, MISSING)) for name in names}


def _default(field: Any) -> Any:
    return field.default_factory() if field.default_factory is not MISSING else field.default


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) or hasattr(value, "_fields"):
        return encode(value)
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return value


def _value(type_: Any, data: Any) -> Any:
    origin = get_origin(type_)
    if origin in (Union, types.UnionType):
        if data is None:
            return None
        (type_,) = (each for each in get_args(type_) if each is not type(None))
        return _value(type_, data)
    if origin is tuple:
        return tuple(_value(get_args(type_)[0], each) for each in data)
    if isinstance(type_, type) and issubclass(type_, Enum):
        return type_(data)
    if isinstance(type_, type) and _fields(type_):
        return _made(type_, data)
    return dict(data) if isinstance(data, Mapping) else data


def _made(type_: type, data: Mapping[str, Any]) -> Any:
    known = _fields(type_)
    return type_(**{name: _value(known[name][0], value) for name, value in data.items() if name in known})
