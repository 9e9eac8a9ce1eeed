"""Text for a terminal: lines of a given width, lists of names cut short, colour.

Commands stay on one line, so that they can be pasted. Colour is an ornament: nothing is said by it alone.
Whatever others wrote (names, log lines) is made harmless first.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from kelpie.doctor.finding import Finding, Severity
from kelpie.model.cells import wrap
from kelpie.model.quoting import harmless

WIDTH = 80
"""Where no terminal says otherwise."""
LARGEST_WIDTH = 120
"""Longer lines are hard to read, however wide the terminal is."""
LEAST_WIDTH = 40
_LONGEST_NAME = 120
"""In lists. Commands have the whole name, however long."""
_COLOURS = {Severity.CRITICAL: "31;1", Severity.WARNING: "33;1", Severity.NOTICE: "36"}
_GOOD = "32"


@dataclass(frozen=True, slots=True)
class Page:
    width: int = WIDTH
    has_colour: bool = False

    def severity(self, severity: Severity) -> str:
        return self._coloured(severity.name, _COLOURS[severity])

    def headline(self, text: str, severity: Severity | None) -> Iterator[str]:
        """The verdict: its first word, up to the colon, has the colour of the severity."""
        first, *rest = wrap(harmless(text), self.width)
        word, colon, words = first.partition(":")
        code = _COLOURS[severity] if severity is not None else _GOOD if word == "OK" else ""
        yield self._coloured(word, code) + colon + words
        yield from rest

    def wrapped(self, text: str, first: str, rest: str) -> Iterator[str]:
        lines = wrap(harmless(text), self.width, first, rest, breaks_words=True)
        yield from lines or [first.rstrip()]

    def wrapped_after(self, head: str, length: int, text: str) -> Iterator[str]:
        """Text behind a head with colour in it, which is so long without the colour."""
        lines = list(self.wrapped(text, " " * length, "  "))
        yield head + lines[0][length:]
        yield from lines[1:]

    def _coloured(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.has_colour and code else text


def names(things: Iterable[str], most: int | None) -> str:
    """The first of them: "a, b, c and 97 more". `most` is None: all."""
    known = [name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…" for name in things]
    left_out = 0 if most is None else len(known) - most
    return ", ".join(known[:most]) + (f" and {left_out:,} more" if left_out > 0 else "")


def left_out(number: int, shown: int, indent: str = "  ", *, where: str = "--full") -> Iterator[str]:
    """How many were left out."""
    if number > shown:
        yield f"{indent}… and {number - shown:,} more; {where} has them all"


def commands_by_advice(findings: Sequence[Finding], said: Collection[str] = ()) -> dict[str, list[str]]:
    """Each advice once, with its commands for all groups; first steps come first.

    `said`: the codes of findings whose advice stands before these.
    """
    by_text: dict[str, dict[str, None]] = {}
    for remedies in zip_longest(*(finding.remedies for finding in findings)):
        for remedy in remedies:
            if remedy is not None and remedy.said_by not in said:
                commands = by_text.setdefault(remedy.text, {})
                if remedy.command:
                    commands[remedy.command] = None
    return {text: list(commands) for text, commands in by_text.items()}
