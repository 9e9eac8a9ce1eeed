"""A diagnosis for a person at a terminal: the verdict, the groups that are hit, then each finding.

80 columns; commands stay on one line, so that they can be pasted. Colour is an ornament: nothing is said
by it alone. Whatever others wrote (names, log lines) is made harmless first.
"""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import zip_longest

from kelpie.doctor.diagnosis import Diagnosis
from kelpie.doctor.finding import Evidence, Finding, Severity
from kelpie.doctor.report import (
    Chapter,
    blast_radius,
    chapters,
    nobody_answered,
    open_questions,
    others,
    presentation_of,
    verdict,
)
from kelpie.doctor.timeline import Timeline, timeline_of
from kelpie.model.quoting import harmless
from kelpie.model.time import Instant
from kelpie.model.words import counted, moment, ranges
from kelpie.observations import OFFSETS_TOPIC

WIDTH = 80
_MOST_EVIDENCE = 6
_LONGEST_TEXT = 320
_MOST_COMMANDS = 4
_MOST_CHECKS = 2
_MOST_LINES = 12
_MOST_ENTRIES = 24
_MOST_NAMES = 12
_LONGEST_NAME = 120
"""In lists. Commands have the whole name, however long."""

_NO_PLURAL = {"history", "settings", "zookeeper"}

_COLOURS = {Severity.CRITICAL: "31;1", Severity.WARNING: "33;1", Severity.NOTICE: "36"}
_GOOD = "32"


def render(diagnosis: Diagnosis, *, colour: bool = False) -> str:
    return "\n".join(_lines(diagnosis, colour)) + "\n"


def _lines(diagnosis: Diagnosis, colour: bool) -> Iterator[str]:
    yield from _verdict(diagnosis, colour)
    yield from _hit(diagnosis)
    yield from _timeline(timeline_of(diagnosis))
    for chapter in chapters(diagnosis):
        yield ""
        yield from _chapter(chapter, colour)
    yield from _gone(diagnosis)
    yield from _unasked(diagnosis)
    yield from _open(diagnosis)


# The parts of the page, from top to bottom.


def _verdict(diagnosis: Diagnosis, colour: bool) -> Iterator[str]:
    worst = diagnosis.worst
    first, *rest = textwrap.wrap(
        harmless(verdict(diagnosis)), WIDTH, break_long_words=False, break_on_hyphens=False
    )
    word, colon, text = first.partition(":")
    code = _COLOURS[worst] if worst is not None else _GOOD if word == "OK" else ""
    yield _coloured(word, code, colour) + colon + text
    yield from rest
    also = others(diagnosis)
    if also:
        yield also


def _hit(diagnosis: Diagnosis) -> Iterator[str]:
    radius, cluster = blast_radius(diagnosis), diagnosis.cluster
    rows = []
    total = len(diagnosis.groups)
    if radius.groups:
        rows.append(("groups", f"{len(radius.groups):,} of {total:,}: {_names(radius.groups)}"))
    elif total and nobody_answered(diagnosis):
        rows.append(("groups", f"{total:,}: {_names(diagnosis.groups)}"))
    if radius.leaderless:
        share = f"{len(radius.leaderless)} of {cluster.offsets_partitions} of {OFFSETS_TOPIC}"
        rows.append(("partitions", f"{share} have no leader: {ranges(radius.leaderless)}"))
    elif radius.partitions:
        rows.append(("partitions", f"{len(radius.partitions):,}: {_names(radius.partitions)}"))
    dead = [str(cluster.brokers[node]) for node in radius.dead_brokers]
    living = [cluster.broker_name(node) for node in radius.brokers if node not in radius.dead_brokers]
    words = [f"{len(dead)} of {len(cluster.brokers)} dead: {', '.join(dead)}"] if dead else []
    words += [f"concerned: {', '.join(living)}"] if living else []
    if words:
        rows.append(("brokers", "; ".join(words)))
    if rows:
        yield ""
        yield "What is hit"
        for label, text in rows:
            yield from _wrapped(text, f"  {label:<12}", " " * 14)


def _timeline(timeline: Timeline) -> Iterator[str]:
    entries = timeline.entries
    if len(entries) > 1:
        yield ""
        yield f"What happened ({_day(entries[0].at)}, UTC)"
        for entry in entries[:_MOST_ENTRIES]:
            is_named = len(entry.groups) == 1 and entry.groups[0] in entry.text
            groups = f": {_names(entry.groups)}" if entry.groups and not is_named else ""
            yield from _wrapped(entry.text + groups, f"  {_clock(entry.at, entries[0].at)}  ", " " * 12)
        yield from _more(len(entries), _MOST_ENTRIES)
    if timeline.ill_before and timeline.began is not None:
        ill = [f"{group} ({', '.join(codes)})" for group, codes in timeline.ill_before]
        more = f" and {len(ill) - _MOST_NAMES} more" if len(ill) > _MOST_NAMES else ""
        yield from _wrapped("; ".join(ill[:_MOST_NAMES]) + more, "  ill before that: ", " " * 4)


def _chapter(chapter: Chapter, colour: bool) -> Iterator[str]:
    groups = chapter.groups
    head = f"{chapter.code} {chapter.name}" + (f" · {counted(len(groups), 'group')}" if groups else "")
    yield _coloured(chapter.severity.name, _COLOURS[chapter.severity], colour) + f" {head}"
    first = chapter.findings[0]
    yield from _wrapped(first.summary, "  ", "  ")
    yield from _others_of(chapter)
    yield from _wrapped(first.why, "  Why: ", "  ")
    yield from _evidence(first)
    yield from _remedies(chapter.findings)
    yield from _checks(chapter.findings)


def _others_of(chapter: Chapter) -> Iterator[str]:
    """The same for others, by cause."""
    rest = chapter.findings[1:]
    if not rest:
        return
    if all(finding.group is None for finding in rest):
        for finding in rest[:_MOST_LINES]:
            yield from _wrapped(finding.summary, "  ", "  ")
        return
    by_cause: dict[str, list[str]] = {}
    for finding in rest:
        by_cause.setdefault(finding.cause, []).append(finding.group or "the cluster")
    yield from _wrapped(
        f"The same holds for {counted(len({finding.group for finding in rest}), 'other group')}:",
        "  ",
        "  ",
    )
    for cause, groups in list(by_cause.items())[:_MOST_LINES]:
        label = "" if [cause] == groups else f"{cause}: "
        yield from _wrapped(label + _names(sorted(groups)), "    ", "      ")
    yield from _more(len(by_cause), indent="    ")


def _gone(diagnosis: Diagnosis) -> Iterator[str]:
    """Who is known and no longer listed; those that have a finding are named there already."""
    with_findings = {finding.group for finding in diagnosis.findings if finding.severity > Severity.NOTICE}
    gone = [(group, known) for group, known in diagnosis.unlisted if group not in with_findings]
    if gone:
        yield ""
        yield "Known, and not listed now (deleted, expired, or never committed)"
        for group, known in gone[:_MOST_LINES]:
            yield from _wrapped(f"{group}: known from {', '.join(known[:2])}", "  ", "    ")
        yield from _more(len(gone))


def _unasked(diagnosis: Diagnosis) -> Iterator[str]:
    """By reason: a dead broker costs many rows of the same kind."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for row in diagnosis.unasked:
        by_reason.setdefault((row.kind, row.reason), []).append(row.name)
    if by_reason:
        yield ""
        yield "What could not be asked"
        for (kind, reason), names in list(by_reason.items())[:_MOST_LINES]:
            plural = "" if len(names) == 1 or kind in _NO_PLURAL else "s"
            yield from _wrapped(f"{kind}{plural} {_names(names)}: {reason}", "  ", "    ")
        yield from _more(len(by_reason))


def _open(diagnosis: Diagnosis) -> Iterator[str]:
    """By what is missing. Of groups that cannot be asked all the rest is open: no need to say it."""
    if nobody_answered(diagnosis):
        return
    silencing = [finding for finding in diagnosis.findings if presentation_of(finding.code).silences]
    silent = {finding.group for finding in silencing}
    codes: dict[str, set[str]] = {}
    whom: dict[str, set[str]] = {}
    for question in open_questions(diagnosis):
        groups = set(question.groups) - silent
        if question.groups and not groups:
            continue
        for missing in question.missing:
            codes.setdefault(missing, set()).add(question.code)
            whom.setdefault(missing, set()).update(groups)
    if not codes:
        return
    yield ""
    yield "Undetermined, for want of"
    ordered = sorted(codes, key=lambda missing: (-len(whom[missing]), -len(codes[missing]), missing))
    for missing in ordered[:_MOST_LINES]:
        number = len(whom[missing])
        of = f"; {counted(number, 'group')}" if number else ""
        yield from _wrapped(f"{missing} ({', '.join(sorted(codes[missing]))}{of})", "  ", "    ")
    yield from _more(len(ordered))


def _coloured(text: str, code: str, colour: bool) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if colour and code else text


def _evidence(finding: Finding) -> Iterator[str]:
    if not finding.evidence:
        return
    yield "  Seen:"
    for piece in finding.evidence[:_MOST_EVIDENCE]:
        text = piece.text if len(piece.text) <= _LONGEST_TEXT else f"{piece.text[:_LONGEST_TEXT]} …"
        for number, line in enumerate(text.splitlines()):
            yield from _wrapped(line, "      " if number else "    ", "      ")
        place = _place(piece)
        if place:
            yield from _wrapped(place, "      ", "      ")
    yield from _more(len(finding.evidence), _MOST_EVIDENCE, "    ")


def _place(piece: Evidence) -> str:
    """Where and when: "(broker 1, 2026-11-15 20:58:46 UTC)"."""
    words = [piece.source] if piece.source else []
    words += [moment(piece.at)] if piece.at is not None else []
    return f"({', '.join(words)})" if words else ""


def _remedies(findings: Sequence[Finding]) -> Iterator[str]:
    """Each advice once, with the commands for all groups; first steps come first."""
    by_text: dict[str, dict[str, None]] = {}
    for remedies in zip_longest(*(finding.remedies for finding in findings)):
        for remedy in remedies:
            if remedy is not None:
                commands_of_text = by_text.setdefault(remedy.text, {})
                if remedy.command:
                    commands_of_text[remedy.command] = None
    if not by_text:
        return
    yield "  What to do:"
    for text, commands in by_text.items():
        yield from _wrapped(text, "    ", "    ")
        for command in list(commands)[:_MOST_COMMANDS]:
            yield f"      $ {harmless(command)}"
        yield from _more(len(commands), _MOST_COMMANDS, "      ", " such")


def _checks(findings: Sequence[Finding]) -> Iterator[str]:
    """Commands of Kafka's own tools, each once."""
    checks = list(dict.fromkeys(finding.check for finding in findings if finding.check))
    if checks:
        yield "  Check without Kelpie:"
        for command in checks[:_MOST_CHECKS]:
            yield f"    $ {harmless(command)}"
        yield from _more(len(checks), _MOST_CHECKS, "    ", " such")


def _wrapped(text: str, first: str, rest: str) -> Iterator[str]:
    lines = textwrap.wrap(
        harmless(text), WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    )
    yield from lines or [first.rstrip()]


def _names(names: Iterable[str]) -> str:
    known = [name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…" for name in names]
    more = len(known) - _MOST_NAMES
    return ", ".join(known[:_MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")


def _more(number: int, shown: int = _MOST_LINES, indent: str = "  ", such: str = "") -> Iterator[str]:
    """How many were left out."""
    if number > shown:
        yield f"{indent}… and {number - shown} more{such}; --json has them all"


def _day(at: Instant) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d")


def _clock(at: Instant, day: Instant) -> str:
    """The time of day; of another day, that day."""
    if _day(at) != _day(day):
        return _day(at)[2:]
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%H:%M:%S")
