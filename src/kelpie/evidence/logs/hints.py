"""What the user says about logs: the zone of their times, an unusual layout."""

import re
from dataclasses import dataclass
from datetime import tzinfo
from fnmatch import fnmatchcase
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kelpie.evidence.logs.ambiguity import Ambiguous, check
from kelpie.evidence.logs.layouts import Head

MISFIT = "None of its lines fits the layout that was given for it."
_DATE, _CLOCK = ("year", "month", "day"), ("hour", "minute", "second")
_PARTS = (*_DATE, *_CLOCK, "fraction")
_KNOWN = {"time", "level", "logger", "message", *_PARTS}
_EXAMPLE = r"shop-*.log=(?P<time>\S+ \S+)\|(?P<level>\w+)\|(?P<message>.*)"


@dataclass(frozen=True, slots=True)
class LogLayout:
    """Of files whose name or path fits; a line that fits the pattern begins an entry, and no other does."""

    files: str
    pattern: re.Pattern[str]

    def head(self, line: str) -> Head | None:
        match = self.pattern.match(line)
        if match is None:
            return None
        parts = {name: text for name, text in match.groupdict().items() if text is not None}
        time = parts.get("time") or _put_together(parts)
        return Head(time, parts.get("level", "").upper(), parts.get("logger", ""), parts["message"])

    def fits(self, name: str) -> bool:
        return fnmatchcase(name, self.files) or fnmatchcase(name.rpartition("/")[2], self.files)


@dataclass(frozen=True, slots=True)
class Hints:
    zone: tzinfo | None = None
    """Of times that name none."""
    layouts: tuple[LogLayout, ...] = ()

    def layout_of(self, name: str) -> LogLayout | None:
        """None: it is found out."""
        return next((layout for layout in self.layouts if layout.fits(name)), None)


NO_HINTS = Hints()


def zone_of(name: str) -> tzinfo:
    """Raises ValueError."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"There is no time zone {name!r}; write it as Europe/Vienna, or UTC.") from None


def parse_layout(text: str) -> LogLayout:
    """FILES=PATTERN. Raises ValueError."""
    files, equals, pattern = text.partition("=")
    if not equals or not files or not pattern:
        raise ValueError(f"{text!r} is no layout: write it as FILES=PATTERN, for example {_EXAMPLE}")
    try:
        compiled = re.compile(pattern, re.DOTALL)
    except re.error as error:
        raise ValueError(f"The layout of {files} is no regular expression: {error}.") from None
    names = set(compiled.groupindex)
    if names - _KNOWN:
        unknown = ", ".join(sorted(names - _KNOWN))
        raise ValueError(
            f"The layout of {files} names {unknown}; it may name time, level, logger, message, and in place "
            f"of time {', '.join(_PARTS)}."
        )
    if "message" not in names:
        raise ValueError(f"The layout of {files} has no (?P<message>…), so nothing would be read.")
    parts = names & set(_PARTS)
    if parts and ("time" in names or not {*_DATE, *_CLOCK} <= parts):
        raise ValueError(
            f"The layout of {files} must name either time, or all of {', '.join((*_DATE, *_CLOCK))}."
        )
    try:
        check(compiled)
    except Ambiguous as error:
        raise ValueError(
            f"With the layout of {files} one long line could take hours: {error}. Write where parts end: "
            r"[^]]* in place of .*? before a bracket, \S+ in place of .+? before a blank."
        ) from None
    return LogLayout(files, compiled)


def _put_together(parts: dict[str, str]) -> str:
    if not all(name in parts for name in (*_DATE, *_CLOCK)):
        return ""
    date = "-".join(parts[name].zfill(2) for name in _DATE)
    clock = ":".join(parts[name].zfill(2) for name in _CLOCK)
    return f"{date} {clock}.{parts['fraction']}" if parts.get("fraction") else f"{date} {clock}"
