"""What all renderers say alike of a diagnosis: the verdict, what it hits, what is not known."""

from dataclasses import dataclass

from kelpie.doctor.chapters import Chapter, Part, chapters, presentation_of
from kelpie.doctor.diagnosis import Diagnosis, groups_of
from kelpie.doctor.finding import Severity
from kelpie.model.numbers import whole_number
from kelpie.model.words import counted, first_of, listed, numbered, ranges

_MANY = 5
_NO_PLURAL = {"history", "settings", "sizes", "zookeeper"}


@dataclass(frozen=True, slots=True)
class BlastRadius:
    """What the worst findings hit."""

    groups: tuple[str, ...]
    partitions: tuple[str, ...]
    brokers: tuple[int, ...]
    dead_brokers: tuple[int, ...]
    leaderless: tuple[int, ...]
    """Partitions of the offsets topic without a leader, also those that no known group lives on."""


def verdict(diagnosis: Diagnosis) -> str:
    """One line: severity, fault, groups, cause."""
    worst = diagnosis.worst
    if diagnosis.unheard_of and worst in (None, Severity.NOTICE):
        return _unheard_of(diagnosis)
    if worst is None:
        return _all_well(diagnosis)
    first = chapters(diagnosis)[0]
    part = _spoken_of(first)
    sentence = f"{worst.name}: {_said(part, worst, len(diagnosis.groups))}"
    dead = diagnosis.cluster.dead_brokers
    if dead and part.groups and any(each.presentation.names_dead_brokers for each in (first.cause, part)):
        brokers = numbered("broker", dead) if len(dead) < _MANY else f"brokers {ranges(dead)}"
        sentence += f" ({brokers} {'is' if len(dead) == 1 else 'are'} dead)"
    elif part is not first.cause and first.cause.presentation.of_one and first.cause.groups:
        words = first.cause.presentation
        is_one = len(_hit(part, worst)) == 1
        sentence += f", because {'it' if is_one else 'they'} {words.of_one if is_one else words.of_many}"
    return sentence + "."


def _spoken_of(chapter: Chapter) -> Part:
    """The part that the verdict speaks of: the first that is as bad as the chapter, best with groups."""
    worst = [part for part in chapter.parts if part.severity is chapter.severity]
    return next((part for part in worst if part.groups), worst[0])


def _hit(part: Part, severity: Severity) -> set[str]:
    """The groups that it hits as badly as that."""
    return {each.group for each in part.findings if each.group is not None and each.severity is severity}


def _unheard_of(diagnosis: Diagnosis) -> str:
    rest = len(diagnosis.groups) - len(diagnosis.unheard_of)
    well = f"; nothing wrong was found with the other {counted(rest, 'group')}" if rest else ""
    return f"UNDETERMINED: no broker knows {_unknown_names(diagnosis)}{well}."


def _unknown_names(diagnosis: Diagnosis) -> str:
    names = diagnosis.unheard_of
    return (
        f"the {'group' if len(names) == 1 else 'groups'} {first_of(names, _MANY)} (misspelt, or without "
        "members and commits)"
    )


def _all_well(diagnosis: Diagnosis) -> str:
    total = len(diagnosis.groups)
    if nobody_answered(diagnosis):
        whom = f"the {counted(total, 'group')} known from before" if total else "any group"
        return f"UNKNOWN: not one broker answered; nothing can be said about {whom}."
    if not total:
        return "NOTHING: no group is known; there is nothing to judge."
    unknown = unjudged(diagnosis)
    if unknown:
        others = "; nothing wrong was seen with the others" if len(unknown) < total else ""
        names = first_of(unknown, _MANY)
        of = counted(total, "group")
        return f"UNDETERMINED: {len(unknown)} of {of} could not be judged ({names}){others}."
    known = ", besides what is acknowledged" if diagnosis.findings else ""
    return f"OK: nothing wrong was found with {counted(total, 'group')}{known}."


def nobody_answered(diagnosis: Diagnosis) -> bool:
    return not diagnosis.cluster.brokers and any(row.kind == "broker" for row in diagnosis.unasked)


def unjudged(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Groups of which not even the coordinator is known, or of a kind that no rule judges: silence about them
    is no good news.
    """
    groups = set(diagnosis.of_other_kinds)
    for question in diagnosis.open:
        if presentation_of(question.code).is_essential:
            groups.update(question.groups)
    return tuple(sorted(groups))


def is_judged(diagnosis: Diagnosis) -> bool:
    """Whether silence of the rules means that all is well: every group that was asked for was judged."""
    return bool(diagnosis.groups) and not (
        diagnosis.unheard_of or nobody_answered(diagnosis) or unjudged(diagnosis)
    )


def _said(part: Part, severity: Severity, total: int) -> str:
    groups, presentation = _hit(part, severity), part.presentation
    if not groups:
        return part.findings[0].summary.partition(". ")[0].rstrip(".")
    number, is_one = len(groups), total == 1
    if part.is_over:
        what = presentation.when_over or part.name
        return f"{number:,} of {total:,} {'group' if is_one else 'groups'} had {what}, which is over"
    if not presentation.of_one:
        return f"{number:,} of {total:,} {'group' if is_one else 'groups'}: {part.name.replace('-', ' ')}"
    words = presentation.of_one if number == 1 else presentation.of_many
    return f"{number:,} of {total:,} {'group' if is_one else 'groups'} {words}"


def others(diagnosis: Diagnosis) -> str:
    """What there is besides the worst, as a sentence; empty if that is all."""
    severities = [chapter.severity for chapter in chapters(diagnosis)[1:]]
    words = {Severity.CRITICAL: "critical finding", Severity.WARNING: "warning", Severity.NOTICE: "notice"}
    counts = [(severities.count(severity), word) for severity, word in words.items()]
    parts = [counted(number, word) for number, word in counts if number]
    sentences = [f"Also {listed(parts)}."] if parts else []
    if diagnosis.unheard_of and diagnosis.worst not in (None, Severity.NOTICE):
        sentences.append(f"No broker knows {_unknown_names(diagnosis)}.")
    return " ".join(sentences)


def blast_radius(diagnosis: Diagnosis) -> BlastRadius:
    worst = diagnosis.worst
    findings = diagnosis.unacknowledged
    hit = [finding for finding in findings if finding.severity is worst and worst > Severity.NOTICE]
    dead = diagnosis.cluster.dead_brokers
    return BlastRadius(
        groups=groups_of(hit),
        partitions=tuple(sorted({name for finding in hit for name in finding.partitions}, key=_by_number)),
        brokers=tuple(sorted({node for finding in hit for node in finding.brokers} | set(dead))),
        dead_brokers=dead,
        leaderless=tuple(name.partition for name in diagnosis.cluster.leaderless),
    )


@dataclass(frozen=True, slots=True)
class Want:
    """Something that is missing, the codes that need it, and for how many groups."""

    missing: str
    codes: tuple[str, ...]
    groups: int


def missing_by_want(diagnosis: Diagnosis) -> list[Want]:
    """What is missing for most groups comes first. Of groups that cannot be asked, all is open: no need to
    say it.
    """
    if nobody_answered(diagnosis):
        return []
    silent = {each.group for each in diagnosis.findings if presentation_of(each.code).silences}
    codes: dict[str, set[str]] = {}
    whom: dict[str, set[str]] = {}
    for question in diagnosis.open:
        groups = set(question.groups) - silent
        if question.groups and not groups:
            continue
        for missing in question.missing:
            codes.setdefault(missing, set()).add(question.code)
            whom.setdefault(missing, set()).update(groups)
    wants = [Want(missing, tuple(sorted(codes[missing])), len(whom[missing])) for missing in codes]
    return sorted(wants, key=lambda want: (-want.groups, -len(want.codes), want.missing))


def reasons(diagnosis: Diagnosis) -> list[tuple[str, list[str], str]]:
    """What could not be asked, by reason: a dead broker costs many rows of the same kind."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for row in diagnosis.unasked:
        by_reason.setdefault((row.kind, row.reason), []).append(row.name)
    return [
        (kind if len(names) == 1 or kind in _NO_PLURAL else f"{kind}s", names, reason)
        for (kind, reason), names in by_reason.items()
    ]


def _by_number(name: str) -> tuple[str, int]:
    topic, _, number = name.rpartition("-")
    place = whole_number(number)
    return (name, -1) if place is None else (topic, place)
