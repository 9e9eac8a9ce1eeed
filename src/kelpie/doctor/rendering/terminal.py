"""A diagnosis for a person at a terminal: the verdict, the groups that are hit, then each finding.

80 columns; commands stay on one line, so that they can be pasted. Colour is an ornament: nothing is said
by it alone. Whatever others wrote (names, log lines) is made harmless first.
"""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from kelpie.doctor.diagnosis import Diagnosis
from kelpie.doctor.finding import Evidence, Finding, Severity
from kelpie.doctor.report import (
    BlastRadius,
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
_MOST_LINES = 12
_MOST_NAMES = 12
_LONGEST_NAME = 120
"""In lists. Commands have the whole name, however long."""

_NO_PLURAL = {"history", "settings"}

_COLOURS = {Severity.CRITICAL: "31;1", Severity.WARNING: "33;1", Severity.NOTICE: "36"}
_GOOD = "32"


def render(diagnosis: Diagnosis, *, colour: bool = False) -> str:
    return "\n".join(_Page(diagnosis, colour).lines()) + "\n"


class _Page:
    def __init__(self, diagnosis: Diagnosis, colour: bool) -> None:
        self.diagnosis = diagnosis
        self._colour = colour

    def lines(self) -> Iterator[str]:
        yield from self._verdict()
        yield from self._hit(blast_radius(self.diagnosis))
        yield from self._timeline(timeline_of(self.diagnosis))
        for chapter in chapters(self.diagnosis):
            yield ""
            yield from self._chapter(chapter)
        yield from self._gone()
        yield from self._unasked()
        yield from self._open()

    # The parts of the page, from top to bottom.

    def _verdict(self) -> Iterator[str]:
        worst = self.diagnosis.worst
        first, *rest = textwrap.wrap(
            harmless(verdict(self.diagnosis)), WIDTH, break_long_words=False, break_on_hyphens=False
        )
        word, colon, text = first.partition(":")
        code = _COLOURS[worst] if worst is not None else _GOOD if word == "OK" else ""
        yield self._coloured(word, code) + colon + text
        yield from rest
        also = others(self.diagnosis)
        if also:
            yield also

    def _hit(self, radius: BlastRadius) -> Iterator[str]:
        rows = []
        total = len(self.diagnosis.groups)
        if radius.groups:
            rows.append(("groups", f"{len(radius.groups):,} of {total:,}: {_names(radius.groups)}"))
        elif total and nobody_answered(self.diagnosis):
            rows.append(("groups", f"{total:,}: {_names(self.diagnosis.groups)}"))
        count = self.diagnosis.cluster.offsets_partitions
        if radius.leaderless:
            rows.append(
                (
                    "partitions",
                    f"{len(radius.leaderless)} of {count} of {OFFSETS_TOPIC} have no leader: "
                    f"{ranges(radius.leaderless)}",
                )
            )
        elif radius.partitions:
            rows.append(("partitions", f"{len(radius.partitions):,}: {_names(radius.partitions)}"))
        if radius.brokers:
            known = self.diagnosis.cluster.brokers
            dead = [str(known[node]) for node in radius.dead_brokers]
            living = [
                self.diagnosis.cluster.broker_name(node)
                for node in radius.brokers
                if node not in radius.dead_brokers
            ]
            words = [f"{len(dead)} of {len(known)} dead: {', '.join(dead)}"] if dead else []
            words += [f"concerned: {', '.join(living)}"] if living else []
            rows.append(("brokers", "; ".join(words)))
        if rows:
            yield ""
            yield "What is hit"
            for label, text in rows:
                yield from _wrapped(text, f"  {label:<12}", " " * 14)

    def _timeline(self, timeline: Timeline) -> Iterator[str]:
        if len(timeline.entries) > 1:
            yield ""
            yield f"What happened ({_day(timeline.entries[0].at)}, UTC)"
            shown = (
                timeline.entries
                if len(timeline.entries) <= 2 * _MOST_LINES
                else timeline.entries[: 2 * _MOST_LINES]
            )
            for entry in shown:
                text = entry.text + (
                    f": {_names(entry.groups)}"
                    if entry.groups and not _named(entry.text, entry.groups)
                    else ""
                )
                yield from _wrapped(text, f"  {_clock(entry.at, timeline.entries[0].at)}  ", " " * 12)
            if len(shown) < len(timeline.entries):
                yield f"  … and {len(timeline.entries) - len(shown)} more; --json has them all"
        if timeline.ill_before and timeline.began is not None:
            text = "; ".join(
                f"{group} ({', '.join(codes)})" for group, codes in timeline.ill_before[:_MOST_NAMES]
            )
            more = len(timeline.ill_before) - _MOST_NAMES
            yield from _wrapped(
                text + (f" and {more} more" if more > 0 else ""), "  ill before that: ", " " * 4
            )

    def _chapter(self, chapter: Chapter) -> Iterator[str]:
        groups = chapter.groups
        head = f"{chapter.code} {chapter.name}"
        if groups:
            head += f" · {counted(len(groups), 'group')}"
        yield self._coloured(chapter.severity.name, _COLOURS[chapter.severity]) + f" {head}"
        first = chapter.findings[0]
        yield from _wrapped(first.summary, "  ", "  ")
        yield from self._others_of(chapter)
        yield from _labelled("Why", first.why)
        yield from _evidence(first)
        yield from _remedies(chapter.findings)

    def _others_of(self, chapter: Chapter) -> Iterator[str]:
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
        if len(by_cause) > _MOST_LINES:
            yield f"    … and {len(by_cause) - _MOST_LINES} more; --json has them all"

    def _gone(self) -> Iterator[str]:
        """Who is known and no longer listed; those that have a finding are named there already."""
        with_findings = {
            finding.group for finding in self.diagnosis.findings if finding.severity > Severity.NOTICE
        }
        gone = [(group, known) for group, known in self.diagnosis.unlisted if group not in with_findings]
        if gone:
            yield ""
            yield "Known, and not listed now (deleted, expired, or never committed)"
            for group, known in gone[:_MOST_LINES]:
                yield from _wrapped(f"{group}: known from {', '.join(known[:2])}", "  ", "    ")
            yield from _more(len(gone))

    def _unasked(self) -> Iterator[str]:
        """By reason: a dead broker costs many rows of the same kind."""
        by_reason: dict[tuple[str, str], list[str]] = {}
        for row in self.diagnosis.unasked:
            by_reason.setdefault((row.kind, row.reason), []).append(row.name)
        if by_reason:
            yield ""
            yield "What could not be asked"
            for (kind, reason), names in list(by_reason.items())[:_MOST_LINES]:
                plural = "" if len(names) == 1 or kind in _NO_PLURAL else "s"
                yield from _wrapped(f"{kind}{plural} {_names(names)}: {reason}", "  ", "    ")
            yield from _more(len(by_reason))

    def _open(self) -> Iterator[str]:
        """By what is missing. Of groups that cannot be asked all the rest is open: no need to say it."""
        if nobody_answered(self.diagnosis):
            return
        silencing = [finding for finding in self.diagnosis.findings if presentation_of(finding.code).silences]
        silent = {finding.group for finding in silencing}
        codes: dict[str, set[str]] = {}
        whom: dict[str, set[str]] = {}
        for question in open_questions(self.diagnosis):
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

    def _coloured(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colour and code else text


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
    if len(finding.evidence) > _MOST_EVIDENCE:
        yield f"    … and {len(finding.evidence) - _MOST_EVIDENCE} more; --json has them all"


def _place(it: Evidence) -> str:
    """Where and when: "(broker 1, 2026-11-15 20:58:46 UTC)"."""
    words = [it.source] if it.source else []
    words += [moment(it.at)] if it.at is not None else []
    return f"({', '.join(words)})" if words else ""


def _remedies(findings: Sequence[Finding]) -> Iterator[str]:
    """Each advice once, with the commands for all groups; first steps come first."""
    commands: dict[str, dict[str, None]] = {}
    for step in range(max((len(finding.remedies) for finding in findings), default=0)):
        for remedy in (finding.remedies[step] for finding in findings if step < len(finding.remedies)):
            own = commands.setdefault(remedy.text, {})
            if remedy.command:
                own[remedy.command] = None
    if not commands:
        return
    yield "  What to do:"
    for text, own in commands.items():
        yield from _wrapped(text, "    ", "    ")
        for command in list(own)[:_MOST_COMMANDS]:
            yield f"      $ {harmless(command)}"
        if len(own) > _MOST_COMMANDS:
            yield f"      … and {len(own) - _MOST_COMMANDS} more such; --json has them all"


def _labelled(label: str, text: str) -> Iterator[str]:
    return _wrapped(text, f"  {label}: ", "  ")


def _wrapped(text: str, first: str, rest: str) -> Iterator[str]:
    lines = textwrap.wrap(
        harmless(text), WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    )
    yield from lines or [first.rstrip()]


def _names(names: Iterable[str]) -> str:
    known = [name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…" for name in names]
    more = len(known) - _MOST_NAMES
    return ", ".join(known[:_MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")


def _named(text: str, groups: Sequence[str]) -> bool:
    return len(groups) == 1 and groups[0] in text


def _more(number: int) -> Iterator[str]:
    if number > _MOST_LINES:
        yield f"  … and {number - _MOST_LINES} more; --json has them all"


def _day(at: Instant) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d")


def _clock(at: Instant, day: Instant) -> str:
    """The time of day; of another day, that day."""
    if _day(at) != _day(day):
        return _day(at)[2:]
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%H:%M:%S")
