"""Values in the files of the store. SQLite holds any type in any column."""

from kelpie.model.time import Instant, plausible
from kelpie.observations.earlier import Unpackable

UNREADABLE = (Unpackable, AttributeError, TypeError, ValueError, OverflowError, OSError)
"""What reading a row may raise."""


def whole(number: object) -> int:
    if not isinstance(number, int):
        raise TypeError(f"{number!r} is no whole number")
    return number


def time_from(at: object) -> Instant:
    time = plausible(whole(at))
    if time is None:
        raise ValueError(f"{at!r} is no time")
    return time


def written_name(group: str) -> bytes:
    return group.encode("utf-8", "surrogatepass")


def read_name(name: bytes) -> str:
    return name.decode("utf-8", "surrogatepass")
