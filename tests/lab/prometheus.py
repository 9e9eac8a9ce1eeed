"""Prometheus' text format, read as strictly as its definition allows."""

import re
from typing import NamedTuple

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
_SAMPLE = re.compile(rf"({_NAME})(?:\{{({_LABEL}(?:,{_LABEL})*)\}})? (NaN|[+-]Inf|-?[0-9.e+-]+)(?: (\d+))?")
_ONE_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')
_DECLARED = re.compile(rf"# (HELP|TYPE) ({_NAME}) (.+)")
_KINDS = {"counter", "gauge", "summary", "histogram", "untyped"}


class ReadSample(NamedTuple):
    name: str
    labels: dict[str, str]
    value: float
    text: str
    """Name and labels as they are written."""
    at: int | None


def read_strictly(text: str) -> list[ReadSample]:
    """All samples. Fails at the first line that Prometheus might refuse, or a strict reader of it."""
    samples: dict[str, ReadSample] = {}
    declared: dict[str, set[str]] = {}
    family, kind = "", ""
    assert text.endswith("\n")
    for line in text[:-1].split("\n"):
        comment = _DECLARED.fullmatch(line)
        if comment:
            what, name, rest = comment.groups()
            assert what not in declared.setdefault(name, set()), f"{name} has two lines of {what}"
            declared[name].add(what)
            assert name == family or what == "HELP", "HELP comes first, and families do not mix"
            family = name
            if what == "TYPE":
                assert rest in _KINDS, line
                kind = rest
            continue
        match = _SAMPLE.fullmatch(line)
        assert match, f"this is no sample: {line!r}"
        name, inside, value, at = match.groups()
        suffixes = ("", "_sum", "_count") if kind == "summary" else ("",)
        assert name in {family + suffix for suffix in suffixes}, f"{name} stands below {family}"
        labels = {label: _plain(quoted) for label, quoted in _ONE_LABEL.findall(inside or "")}
        assert len(labels) == len(_ONE_LABEL.findall(inside or "")), f"a label is there twice: {line}"
        key = line[: match.end(2) + 1] if inside else name
        assert key not in samples, f"{key} is there twice"
        samples[key] = ReadSample(name, labels, float(value), key, int(at) if at else None)
    return list(samples.values())


def _plain(quoted: str) -> str:
    return re.sub(r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], quoted)
