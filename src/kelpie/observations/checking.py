"""Whether plain data from an untrusted file is a row of observations.

`encoding.decode` trusts its input. `fits(kind, data)` checks beforehand that all required fields are present
and that each value has the field's type, so decoding cannot fail and no table gets a text for a number.
"""

import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin

from kelpie.observations.encoding import KINDS, fields_of

_LARGEST = 1 << 63
_LATEST = 253_402_300_799_999
"""The end of the year 9999, the last that datetime can express."""
_TIMES = ("at", "expires", "last_written", "not_before", "not_after")

Check = Callable[[Any], bool]


def fits(kind: str, data: Any) -> bool:
    return kind in KINDS and _record(KINDS[kind])(data)


@cache
def _record(type_: type) -> Check:
    checks, needed = _fields(type_)

    def check(data: Any) -> bool:
        if not isinstance(data, dict) or not needed <= data.keys():
            return False
        for name, value in data.items():
            check_field = checks.get(name)
            if check_field is not None and not check_field(value):
                return False
        return True

    return check


def _fields(type_: type) -> tuple[dict[str, Check], frozenset[str]]:
    """The checks by field name, and the names of the fields without a default."""
    fields = fields_of(type_)
    checks = {
        field.name: _time(field.hint) if field.name in _TIMES else _check(field.hint) for field in fields
    }
    return checks, frozenset(field.name for field in fields if field.default is MISSING)


def _time(hint: Any) -> Check:
    return _is_known_time if hint is int else _is_time


def _check(hint: Any) -> Check:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        (inner,) = (_check(each) for each in get_args(hint) if each is not type(None))
        return lambda value: value is None or inner(value)
    if origin is tuple:
        check_item = _check(get_args(hint)[0])
        return lambda value: isinstance(value, list) and all(map(check_item, value))
    if hint is int:
        return _is_number
    if hint in (str, bool):
        return lambda value: isinstance(value, hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        values = {each.value for each in hint}
        return lambda value: isinstance(value, (int, str)) and not isinstance(value, bool) and value in values
    if isinstance(hint, type) and fields_of(hint):
        return _record(hint)
    if origin is not None and issubclass(origin, Mapping):
        return lambda value: isinstance(value, dict) and all(isinstance(text, str) for text in value.values())
    raise TypeError(f"There is no check for {hint}.")


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -_LARGEST <= value < _LARGEST


def _is_time(value: Any) -> bool:
    return value is None or _is_known_time(value)


def _is_known_time(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= _LATEST
