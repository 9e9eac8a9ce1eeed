"""All of a diagnosis: the verdict, what is hit, what happened when, then each finding with its evidence."""

from collections.abc import Iterator, Sequence

from kelpie.doctor.chapters import Chapter, Part, brief, chapters
from kelpie.doctor.diagnosis import Cost, Diagnosis
from kelpie.doctor.finding import Evidence, Finding, Severity
from kelpie.doctor.rendering.page import Page, commands_by_advice, left_out, names
from kelpie.doctor.report import (
    blast_radius,
    missing_by_want,
    nobody_answered,
    others,
    reasons,
    verdict,
)
from kelpie.doctor.timeline import Timeline, timeline_of
from kelpie.model.quoting import harmless
from kelpie.model.time import Instant, utc
from kelpie.model.words import counted, moment, ranges
from kelpie.observations import OFFSETS_TOPIC

_MOST_EVIDENCE = 6
_LONGEST_TEXT = 320
_MOST_LINES = 12
_MOST_ENTRIES = 24
_MOST_NAMES = 12


def lines(diagnosis: Diagnosis, page: Page) -> Iterator[str]:
    yield from page.headline(verdict(diagnosis), diagnosis.worst)
    if also := others(diagnosis):
        yield from page.wrapped(also, "", "")
    yield from _hit(diagnosis, page)
    yield from _timeline(timeline_of(diagnosis), page)
    for chapter in chapters(diagnosis):
        yield ""
        yield from _chapter(chapter, page)
    yield from _acknowledged(diagnosis, page)
    yield from _gone(diagnosis, page)
    yield from _unasked(diagnosis, page)
    yield from _open(diagnosis, page)
    yield from _cost(diagnosis.cost, page)


def _cost(cost: Cost | None, page: Page) -> Iterator[str]:
    if cost is None:
        return
    apis = sorted(cost.by_api.items(), key=lambda row: (-row[1], row[0]))
    text = (
        f"This look took {counted(cost.requests, 'request')} and {cost.bytes_received:,} bytes of answers: "
        f"{', '.join(f'{many} {api}' for api, many in apis)}."
    )
    yield ""
    yield from page.wrapped(text, "", "  ")


def _hit(diagnosis: Diagnosis, page: Page) -> Iterator[str]:
    radius, cluster = blast_radius(diagnosis), diagnosis.cluster
    rows = []
    total = len(diagnosis.groups)
    if radius.groups:
        rows.append(("groups", f"{len(radius.groups):,} of {total:,}: {names(radius.groups, None)}"))
    elif total and nobody_answered(diagnosis):
        rows.append(("groups", f"{total:,}: {names(diagnosis.groups, None)}"))
    if radius.leaderless:
        share = f"{len(radius.leaderless)} of {cluster.offsets_partitions} of {OFFSETS_TOPIC}"
        rows.append(("partitions", f"{share} have no leader: {ranges(radius.leaderless)}"))
    elif radius.partitions:
        rows.append(("partitions", f"{len(radius.partitions):,}: {names(radius.partitions, _MOST_NAMES)}"))
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
            yield from page.wrapped(text, f"  {label:<12}", " " * 14)


def _timeline(timeline: Timeline, page: Page) -> Iterator[str]:
    entries = timeline.entries
    if len(entries) > 1:
        yield ""
        yield f"What happened ({_day(entries[0].at)}, UTC)"
        for entry in entries[:_MOST_ENTRIES]:
            is_named = len(entry.groups) == 1 and entry.groups[0] in entry.text
            groups = f": {names(entry.groups, _MOST_NAMES)}" if entry.groups and not is_named else ""
            clock = _clock(entry.at, entries[0].at)
            yield from page.wrapped(entry.text + groups, f"  {clock}  ", " " * 12)
        yield from left_out(len(entries), _MOST_ENTRIES, where="--json")
    if timeline.ill_before and timeline.began is not None:
        ill = [f"{group} ({', '.join(codes)})" for group, codes in timeline.ill_before]
        more = f" and {len(ill) - _MOST_NAMES} more" if len(ill) > _MOST_NAMES else ""
        yield from page.wrapped("; ".join(ill[:_MOST_NAMES]) + more, "  ill before that: ", " " * 4)


def _chapter(chapter: Chapter, page: Page) -> Iterator[str]:
    for part in chapter.parts:
        if part is not chapter.cause:
            yield ""
        yield from _part(part, page, "" if part is chapter.cause else "and so: ")


def _part(part: Part, page: Page, before: str) -> Iterator[str]:
    groups = part.groups
    head = f"{part.code} {part.name}" + (f" · {counted(len(groups), 'group')}" if groups else "")
    yield f"{before}{page.severity(part.severity)} {head}"
    first = part.findings[0]
    yield from page.wrapped(first.summary, "  ", "  ")
    for finding in part.findings[1:]:
        yield from page.wrapped(finding.summary, "  - ", "    ")
    yield from page.wrapped(first.why, "  Why: ", "  ")
    yield from _evidence(first, page)
    yield from _remedies(part.findings, page)
    yield from _checks(part.findings)


def _evidence(finding: Finding, page: Page) -> Iterator[str]:
    if not finding.evidence:
        return
    yield "  Seen:" if finding.group is None else f"  Seen of {harmless(finding.group[: _MOST_NAMES * 4])}:"
    for piece in finding.evidence[:_MOST_EVIDENCE]:
        text = piece.text if len(piece.text) <= _LONGEST_TEXT else f"{piece.text[:_LONGEST_TEXT]} …"
        for number, line in enumerate(text.splitlines()):
            yield from page.wrapped(line, "      " if number else "    ", "      ")
        place = _place(piece)
        if place:
            yield from page.wrapped(place, "      ", "      ")
    yield from left_out(len(finding.evidence), _MOST_EVIDENCE, "    ", where="--json")


def _place(piece: Evidence) -> str:
    """Where and when: "(broker 1, 2026-11-15 20:58:46 UTC)"."""
    words = [piece.source] if piece.source else []
    words += [moment(piece.at)] if piece.at is not None else []
    return f"({', '.join(words)})" if words else ""


def _remedies(findings: Sequence[Finding], page: Page) -> Iterator[str]:
    by_advice = commands_by_advice(findings)
    if by_advice:
        yield "  What to do:"
    for text, commands in by_advice.items():
        yield from page.wrapped(text, "    ", "    ")
        for command in commands:
            yield f"      $ {harmless(command)}"


def _checks(findings: Sequence[Finding]) -> Iterator[str]:
    """Commands of Kafka's own tools, each once."""
    checks = list(dict.fromkeys(finding.check for finding in findings if finding.check))
    if checks:
        yield "  Check without Kelpie:"
        for command in checks:
            yield f"    $ {harmless(command)}"


def _acknowledged(diagnosis: Diagnosis, page: Page) -> Iterator[str]:
    known = brief(diagnosis).acknowledged
    if known:
        yield ""
        yield "Acknowledged"
    for acknowledgement, findings in known:
        until = f"until {moment(acknowledgement.until)} by {acknowledgement.by}: {acknowledgement.why}"
        yield from page.wrapped(until, "  ", "    ")
        for finding in findings:
            yield from page.wrapped(f"{finding.code} {finding.summary}", "    ", "      ")


def _gone(diagnosis: Diagnosis, page: Page) -> Iterator[str]:
    """Groups that are known and no longer listed; those that have a finding are named there already."""
    with_findings = {finding.group for finding in diagnosis.findings if finding.severity > Severity.NOTICE}
    gone = [(group, known) for group, known in diagnosis.unlisted if group not in with_findings]
    if gone:
        yield ""
        yield "Known, and not listed now (deleted, expired, or never committed)"
        for group, known in gone:
            yield from page.wrapped(f"{group}: known from {', '.join(known[:2])}", "  ", "    ")


def _unasked(diagnosis: Diagnosis, page: Page) -> Iterator[str]:
    rows = reasons(diagnosis)
    if rows:
        yield ""
        yield "What could not be asked"
        for what, things, reason in rows[:_MOST_LINES]:
            yield from page.wrapped(f"{what} {names(things, _MOST_NAMES)}: {reason}", "  ", "    ")
        yield from left_out(len(rows), _MOST_LINES, where="--json")


def _open(diagnosis: Diagnosis, page: Page) -> Iterator[str]:
    wants = missing_by_want(diagnosis)
    if not wants:
        return
    yield ""
    yield "Undetermined, for want of"
    for want in wants[:_MOST_LINES]:
        of = f"; {counted(want.groups, 'group')}" if want.groups else ""
        yield from page.wrapped(f"{want.missing} ({', '.join(want.codes)}{of})", "  ", "    ")
    yield from left_out(len(wants), _MOST_LINES, where="--json")


def _day(at: Instant) -> str:
    return utc(at).strftime("%Y-%m-%d")


def _clock(at: Instant, day: Instant) -> str:
    """The time of day; of another day, that day."""
    if _day(at) != _day(day):
        return _day(at)[2:]
    return utc(at).strftime("%H:%M:%S")
