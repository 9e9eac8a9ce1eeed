"""Whether plain data is a row of observations: asked of what comes from files that anybody may have written.

`encoding.decode` believes what it is given. `fits(kind, data)` says before whether all fields are there that
a row must have, and are what they should be: so decoding cannot fail, and no table meets a text for a number.
"""

import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from kelpie.observations.encoding import KINDS

_LARGEST = 1 << 63
_LATEST = 253_402_300_799_999
"""The end of the year 9999, behind which calendars end."""
_TIMES = ("at", "expires", "last_written")

Check = Callable[[Any], bool]


def fits(kind: str, data: Any) -> bool:
    return kind in KINDS and _record(KINDS[kind])(data)


@cache
def _record(type_: type) -> Check:
    checks, needed = _fields(type_)
    find = checks.get

    def check(data: Any) -> bool:
        if not isinstance(data, dict) or not needed <= data.keys():
            return False
        for name, value in data.items():
            of_field = find(name)
            if of_field is not None and not of_field(value):
                return False
        return True

    return check


def _fields(type_: type) -> tuple[dict[str, Check], frozenset[str]]:
    """The checks by name, and which fields have no default."""
    hints = get_type_hints(type_)
    if is_dataclass(type_):
        names = [it.name for it in fields(type_)]
        needed = {it.name for it in fields(type_) if it.default is MISSING and it.default_factory is MISSING}
    else:
        names = list(getattr(type_, "_fields", ()))
        needed = set(names) - set(getattr(type_, "_field_defaults", ()))
    checks = {name: _is_time if name in _TIMES else _check(hints[name]) for name in names}
    return checks, frozenset(needed)


def _check(hint: Any) -> Check:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        (inner,) = (_check(each) for each in get_args(hint) if each is not type(None))
        return lambda value: value is None or inner(value)
    if origin is tuple:
        each_one = _check(get_args(hint)[0])
        return lambda value: isinstance(value, list) and all(map(each_one, value))
    if hint is int:
        return _is_number
    if hint in (str, bool):
        return lambda value: isinstance(value, hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        values = {each.value for each in hint}
        return lambda value: isinstance(value, (int, str)) and not isinstance(value, bool) and value in values
    if isinstance(hint, type) and (is_dataclass(hint) or hasattr(hint, "_fields")):
        return _record(hint)
    if origin is not None and issubclass(origin, Mapping):
        return lambda value: isinstance(value, dict) and all(isinstance(it, str) for it in value.values())
    raise TypeError(f"There is no check for {hint}.")


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -_LARGEST <= value < _LARGEST


def _is_time(value: Any) -> bool:
    return value is None or (_is_number(value) and 0 <= value <= _LATEST)
