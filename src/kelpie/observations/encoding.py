"""Rows of observations as plain data, ready for JSON, and back. Nothing is lost on the way.

Each kind of row has a word ("broker", "partition", "ends" …). A field that has its default value is left out,
so rows of an older release can still be read after a field was added.

    kind, data = kind_of(row), encode(row)
    assert decode(kind, data) == row
"""

import json
import types
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache, partial
from itertools import chain, islice, repeat, starmap
from operator import attrgetter
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

from kelpie.observations.cluster import (
    BrokerView,
    Certificate,
    ClockReading,
    CoordinatorAnswer,
    PartitionView,
    Setting,
    TopicView,
    Unasked,
)
from kelpie.observations.collection import Observations
from kelpie.observations.events import Event
from kelpie.observations.groups import Generation, GroupRemoved, GroupState, Illness, KnownGroup, Listing
from kelpie.observations.mappings import MappingListing, MappingNode
from kelpie.observations.positions import (
    Commit,
    Committed,
    LeaderEpochEnd,
    LogEnds,
    LogSize,
    OpenTransaction,
    PendingCommit,
)
from kelpie.observations.traffic import MalformedSeries, Scrape, TrafficSeries
from kelpie.observations.zookeeper_groups import ZooKeeperGroup

KNOWN = "known"
KINDS: dict[str, type] = {
    "broker": BrokerView,
    "partition": PartitionView,
    "topic": TopicView,
    "clock": ClockReading,
    "certificate": Certificate,
    "listing": Listing,
    "answer": CoordinatorAnswer,
    "state": GroupState,
    "generation": Generation,
    "removal": GroupRemoved,
    "commit": Commit,
    "pending-commit": PendingCommit,
    "committed": Committed,
    "ends": LogEnds,
    "size": LogSize,
    "transaction": OpenTransaction,
    "epoch-end": LeaderEpochEnd,
    "setting": Setting,
    "event": Event,
    "unasked": Unasked,
    "scrape": Scrape,
    "traffic": TrafficSeries,
    "malformed": MalformedSeries,
    "mapping-listing": MappingListing,
    "mapping": MappingNode,
    "zookeeper-group": ZooKeeperGroup,
    "illness": Illness,
    KNOWN: KnownGroup,
}
_UNCHANGED_WORDS = ("committed", "ends", "unasked", "traffic", "malformed")


def _plural(kind: str) -> str:
    return f"{kind.replace('-', '_')}{'es' if kind.endswith('s') else 's'}"


_LISTS = {kind: kind if kind in _UNCHANGED_WORDS else _plural(kind) for kind in KINDS if kind != KNOWN}
"""Kind of row → name of its list in `Observations`."""
_WORDS = {type_: kind for kind, type_ in KINDS.items()}

Conversion = Callable[[Any], Any]
_value: Conversion = attrgetter("_value_")
"""Of a member of an enum, by C alone."""


class Field(NamedTuple):
    """One field of a row type."""

    name: str
    hint: Any
    default: Any
    """MISSING if the field must be given."""
    read: Conversion | None
    """From plain data to the field's value; None where both are the same."""
    row_type: type | None
    """The type of the rows in a field that is a tuple of rows; else None."""
    is_enum: bool


def kind_of(row: Any) -> str:
    return _WORDS[type(row)]


def encode(row: Any) -> dict[str, Any]:
    """A row as a dict of plain values: str, int, bool, None, lists and dicts of these."""
    data = {}
    row_type: type = type(row)
    for name, _, default, read, *_ in fields_of(row_type):
        value = getattr(row, name)
        if value is not default and (value != default or type(value) is not type(default)):
            data[name] = value if read is None else _plain(value)
    return data


def decode(kind: str, data: Mapping[str, Any]) -> Any:
    """The row. Raises KeyError for an unknown kind; unknown fields are ignored."""
    return _made(KINDS[kind], data)


def dumps(row: Any) -> str:
    """A row as JSON, in ASCII, so that any text comes back as it was, also one with lone surrogates."""
    return json.dumps(encode(row), separators=(",", ":"))


def loads(kind: str, text: str) -> Any:
    return decode(kind, json.loads(text))


def write_columns(type_: type, rows: Sequence[Any], without: Container[str] = ()) -> dict[str, Any]:
    """Rows of one type as plain data: field → one value per row. Tuples of rows are written so, too."""
    return {field.name: _column(field, rows) for field in fields_of(type_) if field.name not in without}


def read_columns(type_: type, columns: Mapping[str, Any], given: Mapping[str, Any]) -> Iterator[Any]:
    """The rows. `given` has the values of fields that were not written."""
    fields = fields_of(type_)
    values = [given.get(field.name) or _column_of(field, columns) for field in fields]
    rows = zip(*values, strict=False)
    # A named tuple is made by C alone, without a call of its own __new__.
    return map(partial(tuple.__new__, type_), rows) if issubclass(type_, tuple) else starmap(type_, rows)


def _column(field: Field, rows: Sequence[Any]) -> list[Any]:
    values = list(map(attrgetter(field.name), rows))
    if field.row_type is not None:
        counts = [None if value is None else len(value) for value in values]
        return [counts, write_columns(field.row_type, list(chain.from_iterable(filter(None, values))))]
    if field.is_enum:
        return list(map(_value, values))
    return values if field.read is None else list(map(_plain, values))


def _column_of(field: Field, columns: Mapping[str, Any]) -> Iterable[Any]:
    """The values of a field; its default where an older release wrote the rows, without this field."""
    if field.name not in columns and field.default is not MISSING:
        return repeat(field.default)
    return _read_column(field, columns[field.name])


def _read_column(field: Field, column: list[Any]) -> Iterable[Any]:
    if field.row_type is not None:
        counts, columns = column
        if not any(counts):  # Of thousands of groups, most have no members.
            return [None if count is None else () for count in counts]
        rows = read_columns(field.row_type, columns, {})
        return (None if count is None else tuple(islice(rows, count)) for count in counts)
    return column if field.read is None else map(field.read, column)


def rows_of(observations: Observations) -> Iterator[tuple[str, Any]]:
    """All rows with their kind; last, a `KnownGroup` for each of `known_groups`."""
    return ((kind, row) for kind, rows in rows_by_kind(observations) for row in rows)


def rows_by_kind(observations: Observations) -> Iterator[tuple[str, list[Any]]]:
    """The kinds of which there are rows, and these rows; in the order of `rows_of`."""
    for kind, name in _LISTS.items():
        rows = getattr(observations, name)
        if kind == "commit" and observations.group_commits:
            rows = list(observations.all_commits)
        elif kind == "committed" and observations.group_offsets:
            rows = list(observations.all_committed)
        if rows:
            yield kind, rows
    if observations.known_groups:
        yield KNOWN, list(starmap(KnownGroup, observations.known_groups.items()))


def gathered(rows: Iterable[tuple[str, Any]]) -> Observations:
    """Rows with their kinds, as observations."""
    observations = Observations()
    for kind, row in rows:
        add(observations, kind, row)
    return observations


def extend(observations: Observations, kind: str, rows: Iterable[Any]) -> None:
    """Puts rows into the list of their kind."""
    if kind == KNOWN:
        for row in rows:
            observations.known_groups.setdefault(row.group, row.source)
    else:
        getattr(observations, _LISTS[kind]).extend(rows)


def add(observations: Observations, kind: str, row: Any) -> None:
    """Puts a row into the list of its kind."""
    if kind == KNOWN:
        observations.known_groups.setdefault(row.group, row.source)
    else:
        getattr(observations, _LISTS[kind]).append(row)


@cache
def fields_of(type_: type) -> tuple[Field, ...]:
    """The fields of a dataclass or a named tuple; none for other types."""
    hints = get_type_hints(type_)
    if is_dataclass(type_):
        defaults = {field.name: _default(field) for field in fields(type_)}
    else:
        defaults = dict.fromkeys(getattr(type_, "_fields", ()), MISSING) | getattr(
            type_, "_field_defaults", {}
        )
    return tuple(
        Field(name, hints[name], default, _reader(hints[name]), _row_type(hints[name]), _is_enum(hints[name]))
        for name, default in defaults.items()
    )


def _default(field: Any) -> Any:
    return field.default_factory() if field.default_factory is not MISSING else field.default


def _row_type(hint: Any) -> type | None:
    tuples = (each for each in (hint, *get_args(hint)) if get_origin(each) is tuple)
    return next((get_args(each)[0] for each in tuples if fields_of(get_args(each)[0])), None)


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) or hasattr(value, "_fields"):
        return encode(value)
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return dict(value) if isinstance(value, Mapping) else value


def _is_enum(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Enum)


class _Members(dict[Any, Enum]):
    """The members of an enum by value. To call the enum takes ten times as long."""

    def __init__(self, type_: type[Enum]) -> None:
        self._type = type_

    def __missing__(self, value: Any) -> Enum:
        member = self[value] = self._type(value)
        return member


def _reader(hint: Any) -> Conversion | None:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        (read,) = (_reader(each) for each in get_args(hint) if each is not type(None))
        return None if read is None else lambda data: None if data is None else read(data)
    if origin is tuple:
        read_item = _reader(get_args(hint)[0])
        return tuple if read_item is None else lambda data: tuple(map(read_item, data))
    if _is_enum(hint):
        return _Members(hint).__getitem__
    if isinstance(hint, type) and fields_of(hint):
        return lambda data: _made(hint, data)
    return dict if origin is not None and issubclass(origin, Mapping) else None


def _made(type_: type, data: Mapping[str, Any]) -> Any:
    names, readers = _conversions(type_)
    values = data if data.keys() <= names else {name: data[name] for name in names & data.keys()}
    if readers:
        values = {name: readers[name](value) if name in readers else value for name, value in values.items()}
    return type_(**values)


@cache
def _conversions(type_: type) -> tuple[frozenset[str], dict[str, Conversion]]:
    """The names of all fields; and the conversions of those that need one."""
    fields = fields_of(type_)
    readers = {field.name: field.read for field in fields if field.read is not None}
    return frozenset(field.name for field in fields), readers
