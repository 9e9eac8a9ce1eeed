"""Small pieces of sentences: counts, lists, times and durations as a person says them."""

from collections.abc import Iterable, Sequence

from kelpie.model.time import Instant, utc

_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86_400


def listed(things: Sequence[object], last: str = "and") -> str:
    """With three of them: "1, 2 and 3"."""
    words = [str(thing) for thing in things]
    return f" {last} ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def counted(number: int, thing: str, things: str = "") -> str:
    """Three, for example: "3 groups"."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def first_of(things: Sequence[object], most: int) -> str:
    """Of five, at most two: "1, 2 and 3 more"."""
    rest = len(things) - most
    return listed([*things[:most], f"{rest:d} more"] if rest > 0 else things)


def numbered(thing: str, numbers: Sequence[int]) -> str:
    """As in "broker 1" or "brokers 1 and 2"."""
    return f"{thing if len(numbers) == 1 else thing + 's'} {listed(numbers)}"


def ranges(numbers: Iterable[int]) -> str:
    """In short: "0-3, 7, 9-12"."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def moment(at: Instant | None) -> str:
    if at is None:
        return "at a time that is not known"
    return utc(at).strftime("%Y-%m-%d %H:%M:%S UTC")


def duration(ms: float) -> str:
    """As a person says it: "412 ms", "8.5 s", "12 min", "3 h 20 min", "6 d 4 h"."""
    seconds = ms / 1000
    if seconds < 1:
        return f"{ms:.0f} ms"
    if seconds < _MINUTE_S:
        return f"{seconds:.3g} s"
    if seconds < _HOUR_S:
        return f"{seconds / _MINUTE_S:.3g} min"
    for unit, name, part, part_name in ((_DAY_S, "d", _HOUR_S, "h"), (_HOUR_S, "h", _MINUTE_S, "min")):
        if seconds >= unit:
            whole, rest = divmod(int(seconds), unit)
            return f"{whole} {name}" + (f" {rest // part} {part_name}" if rest // part else "")
    return ""
