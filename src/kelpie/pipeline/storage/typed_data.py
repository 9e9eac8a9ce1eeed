"""Values of declared types as plain data, ready for JSON, and back.

The annotations of dataclasses and named tuples are the schema. Reading checks every value against its
annotation, and makes nothing but values of the declared types: a file that somebody else wrote can be wrong,
and cannot run code.

    assert read(LogProgress, written(progress)) == progress
"""

import types
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")
Reader = Callable[[Any], Any]
_PLAIN = (str, int, bool, float, types.NoneType)


class Mismatch(ValueError):
    """Data that is not of the declared type."""


def written(value: Any) -> Any:
    """Strings, numbers, None, and lists of these; a mapping is a list of pairs, a record a list of fields."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, _PLAIN):
        return value
    type_: Any = type(value)
    if names := _names(type_):
        return [written(getattr(value, name)) for name in names]
    if isinstance(value, Mapping):
        return [[written(key), written(item)] for key, item in value.items()]
    if isinstance(value, Set):
        return sorted(map(written, value), key=repr)
    if isinstance(value, Sequence):
        return [written(item) for item in value]
    raise TypeError(f"{type(value).__name__} cannot be written as plain data")


def read(hint: type[T], data: Any) -> T:
    """The value that was written. Raises Mismatch."""
    reader = _reader(cast("Any", hint))
    return cast("T", reader(data))


def shape(hint: type) -> str:
    """The declared fields of a type, and of all types in it. Data of another shape cannot be read."""
    parts: dict[type, str] = {}
    _describe(hint, parts)
    return "; ".join(parts.values())


def _describe(hint: Any, parts: dict[type, str]) -> None:
    for each in get_args(hint):
        _describe(each, parts)
    if isinstance(hint, type) and hint not in parts and (names := _names(hint)):
        hints = get_type_hints(hint)
        parts[hint] = f"{hint.__name__}: " + ", ".join(f"{name} {_text(hints[name])}" for name in names)
        for name in names:
            _describe(hints[name], parts)


def _text(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)


@cache
def _names(type_: Any) -> tuple[str, ...]:
    if is_dataclass(type_):
        return tuple(field.name for field in fields(type_))
    return tuple(getattr(type_, "_fields", ()))


@cache
def _reader(hint: Any) -> Reader:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _either(inner)
    if origin is tuple:
        if inner[-1] is Ellipsis:
            return _collection(tuple, inner[0])
        return _record(tuple, [_reader(each) for each in inner])
    if origin is Counter:
        return _mapping(Counter, inner[0], int)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(dict, *inner)
    if isinstance(origin, type) and issubclass(origin, Set):
        return _collection(frozenset if origin is frozenset else set, inner[0])
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return _collection(list, inner[0])
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _enumerated(hint)
    if isinstance(hint, type) and (names := _names(hint)):
        hints = get_type_hints(hint)
        return _record(lambda values: hint(*values), [_reader(hints[name]) for name in names])
    if hint in _PLAIN:
        return _plain(hint)
    raise TypeError(f"no schema says how {hint} is read")


def _plain(kind: type) -> Reader:
    def read_plain(data: Any) -> Any:
        if type(data) is not kind:
            raise Mismatch(f"{data!r:.60} is no {kind.__name__}")
        return data

    return read_plain


def _either(kinds: Sequence[Any]) -> Reader:
    (wanted,) = (kind for kind in kinds if kind is not types.NoneType)
    read_value = _reader(wanted)
    return lambda data: None if data is None else read_value(data)


def _enumerated(kind: type[Enum]) -> Reader:
    def read_member(data: Any) -> Any:
        try:
            return kind(data)
        except ValueError:
            raise Mismatch(f"{data!r:.60} is no {kind.__name__}") from None

    return read_member


def _collection(make: Callable[[Any], Any], kind: Any) -> Reader:
    read_item = _reader(kind)
    return lambda data: make([read_item(item) for item in _list(data)])


def _record(make: Callable[[Any], Any], readers: Sequence[Reader]) -> Reader:
    def read_record(data: Any) -> Any:
        items = _list(data)
        if len(items) != len(readers):
            raise Mismatch(f"{len(items)} values where {len(readers)} are declared")
        return make(tuple(read_value(item) for read_value, item in zip(readers, items, strict=True)))

    return read_record


def _mapping(make: Callable[[Any], Any], key: Any, value: Any) -> Reader:
    read_pair = _record(tuple, [_reader(key), _reader(value)])
    return lambda data: make(dict(read_pair(pair) for pair in _list(data)))


def _list(data: Any) -> list[Any]:
    if not isinstance(data, list):
        raise Mismatch(f"{data!r:.60} is no list")
    return data
