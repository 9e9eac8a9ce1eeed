"""A property that is worked out once, as functools.cached_property is.

That one takes a lock before Python 3.12, which costs more than most of what is derived of 10,000 groups.
Here, two threads may both work it out; the last one stays.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class derived(Generic[T]):  # noqa: N801 - it is used like a function.
    def __init__(self, work_out: Callable[[Any], T]) -> None:
        self._work_out = work_out
        self.__doc__ = work_out.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "derived[T]": ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> "derived[T] | T":
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._work_out(instance)
        return value
