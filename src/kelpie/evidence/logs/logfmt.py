"""Lines of the form `time=2026-11-15T20:56:40Z level=INFO msg="heartbeat errored" group=g`, as Go's slog."""

import re

LOGFMT_BEGINS = ("time=", "ts=", "timestamp=", "level=", "lvl=", "t=")
_FIELD = re.compile(
    r"(?P<name>[\w.@-]{1,60})=(?:\"(?P<quoted>(?:[^\"\\]|\\.)*)\"|(?P<plain>[^\s\"]*))(?:\s+|\Z)"
)
_ESCAPED = re.compile(r"\\(.)")


def parse_logfmt(line: str) -> dict[str, str] | None:
    """Names and values of a line of the form `name=value name="a value"`. None: it has another form."""
    fields: dict[str, str] = {}
    at = 0
    while at < len(line):
        match = _FIELD.match(line, at)
        if match is None:
            return None
        quoted = match["quoted"]
        fields[match["name"]] = match["plain"] if quoted is None else _ESCAPED.sub(r"\1", quoted)
        at = match.end()
    return fields
