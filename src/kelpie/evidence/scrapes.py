"""Scrapes of Prometheus endpoints in the text format: kafka_exporter's, kminion's, KoP's and all others.

    kafka_consumergroup_lag{consumergroup="billing-1",partition="0",topic="orders"} 12

A line that does not follow the format is returned with its place, and the other lines are read. KoP writes
such lines: it does not escape quotes, backslashes and ends of lines in names of groups. It also repeats TYPE
lines, which is harmless.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from kelpie.model.time import Instant, plausible

_LONGEST_QUOTE = 4096
_MOST_NOTES = 40
_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*+\s*+=\s*+"(?:[^"\\\n]|\\[\\"n])*"'
_SAMPLE = re.compile(
    rf"(?P<name>{_NAME})\s*+(?:\{{(?P<labels>\s*+(?:{_LABEL}\s*+(?:,\s*+{_LABEL}\s*+)*,?\s*+)?)\}})?"
    r"\s*+(?<=[\s}])(?P<value>[^\s{}\"]++)(?:\s+(?P<at>-?\d{1,18}))?(?:\s+#.*)?\s*$"
)
_PAIR = re.compile(r'(?<![a-zA-Z0-9_])([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\\n]|\\[\\"n])*)"')
_NOTE = re.compile(rf"#\s*(?P<what>TYPE|HELP|UNIT)\s+(?P<name>{_NAME})(?:\s+(?P<text>.*))?$")
_ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}
_ESCAPE = re.compile(r'\\[\\"n]')
_TYPE = re.compile(r"counter|gauge|histogram|summary|untyped|unknown|info|stateset|gaugehistogram")
_SUFFIXES = ("_total", "_created", "_bucket", "_count", "_sum", "_info")


class Sample(NamedTuple):
    line: int
    name: str
    labels: Mapping[str, str]
    value: float
    type: str | None = None
    at: Instant | None = None
    """Its own time, if the scrape gives it one."""


class MalformedLine(NamedTuple):
    """A line that is not of the format."""

    line: int
    position: int
    """The byte where it begins, as far as the text is UTF-8."""
    text: str


def looks_like_scrape(lines: Sequence[str]) -> bool:
    """Whether lines that begin a file are of the text format: it has TYPE lines, or only samples.

    A line of a metric that a TYPE line names counts, also if it is malformed: KoP can write many such lines.
    """
    named = [line for line in lines if line.strip()]
    if not named:
        return False
    notes = [note for line in named if (note := _NOTE.match(line)) is not None]
    samples = [line for line in named if _read(line) is not None]
    typed = {note["name"] for note in notes}
    malformed = sum(_read(line) is None and line.partition("{")[0] in typed for line in named)
    if len(notes) + len(samples) + malformed < 0.8 * len(named):
        return False
    if any(line.startswith("# TYPE ") for line in named[:_MOST_NOTES]):
        return True
    return len(samples) == len(named) and any("{" in line for line in named)


def read_scrape(lines: Iterable[str]) -> Iterator[Sample | MalformedLine]:
    """All samples, and all lines that do not follow the format."""
    types: dict[str, str] = {}
    position = 0
    for number, line in enumerate(lines, start=1):
        size = len(line.encode("utf-8", "replace")) + 1
        text = line.strip()
        if text.startswith("#"):
            note = _NOTE.match(text)
            if note is not None and note["what"] == "TYPE" and _TYPE.fullmatch(note["text"] or ""):
                types[note["name"]] = note["text"]
        elif text and text != "# EOF":
            sample = _read(text)
            if sample is None:
                yield MalformedLine(number, position, line[:_LONGEST_QUOTE])
            else:
                yield sample._replace(line=number, type=_type(sample.name, types))
        position += size


def _read(line: str) -> Sample | None:
    match = _SAMPLE.match(line.strip())
    if match is None:
        return None
    try:
        value = float(match["value"])
    except ValueError:
        return None
    if "_" in match["value"]:
        return None  # Python would take 1_000 for a number.
    labels = {
        name: _ESCAPE.sub(lambda escape: _ESCAPES[escape[0]], text)
        for name, text in _PAIR.findall(match["labels"] or "")
    }
    return Sample(0, match["name"], labels, value, None, plausible(int(match["at"])) if match["at"] else None)


def _type(name: str, types: Mapping[str, str]) -> str | None:
    if name in types:
        return types[name]
    for suffix in _SUFFIXES:
        if name.endswith(suffix) and name.removesuffix(suffix) in types:
            return types[name.removesuffix(suffix)]
    return None
