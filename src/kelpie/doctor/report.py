"""What all renderers say alike of a diagnosis: the verdict, the blast radius, what belongs together."""

from collections import defaultdict
from dataclasses import dataclass

from kelpie.doctor.diagnosis import Diagnosis, Open, groups_of
from kelpie.doctor.finding import Finding, Severity
from kelpie.doctor.rule import Presentation
from kelpie.doctor.rules import rules
from kelpie.model.words import counted, first_of, listed, numbered, ranges

_MANY = 5


@dataclass(frozen=True, slots=True)
class BlastRadius:
    """What the worst findings hit."""

    groups: tuple[str, ...]
    partitions: tuple[str, ...]
    brokers: tuple[int, ...]
    dead_brokers: tuple[int, ...]
    leaderless: tuple[int, ...]
    """Partitions of the offsets topic without a leader, also those that no known group lives on."""


@dataclass(frozen=True, slots=True)
class Chapter:
    """All findings of one code: reports show them together."""

    code: str
    name: str
    findings: tuple[Finding, ...]

    @property
    def severity(self) -> Severity:
        return max(finding.severity for finding in self.findings)

    @property
    def presentation(self) -> Presentation:
        return presentation_of(self.code)

    @property
    def groups(self) -> tuple[str, ...]:
        return groups_of(self.findings)

    @property
    def is_over(self) -> bool:
        return all(finding.until is not None for finding in self.findings)


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """What a rule could not decide, for all groups for which it lacks the same."""

    code: str
    name: str
    missing: tuple[str, ...]
    groups: tuple[str, ...]
    """Empty: it concerns the cluster."""


def presentation_of(code: str) -> Presentation:
    """Of a rule; tables may hold findings of a rule that this release does not have."""
    rule = rules().get(code)
    return rule.presentation if rule is not None else Presentation()


def chapters(diagnosis: Diagnosis) -> tuple[Chapter, ...]:
    """Worst first, then by code: without a coordinator nothing else works.

    What is over, and what is but a risk, comes after what is wrong now.
    """
    by_code: defaultdict[tuple[str, str, bool], list[Finding]] = defaultdict(list)
    for incident in diagnosis.incidents:
        is_over = all(finding.until is not None for finding in incident.findings)
        by_code[incident.code, incident.name, is_over] += incident.findings
    of_all = [Chapter(code, name, tuple(findings)) for (code, name, _), findings in by_code.items()]
    return tuple(sorted(of_all, key=_order))


def _order(chapter: Chapter) -> tuple[int, bool, bool, str]:
    is_a_risk = chapter.presentation.is_risk_alone and not chapter.groups
    return -chapter.severity, chapter.is_over, is_a_risk, chapter.code


def verdict(diagnosis: Diagnosis) -> str:
    """One line: severity, fault, groups, cause."""
    worst = diagnosis.worst
    if diagnosis.unheard_of and worst in (None, Severity.NOTICE):
        return _unheard_of(diagnosis)
    if worst is None:
        return _all_well(diagnosis)
    first = chapters(diagnosis)[0]
    sentence = f"{worst.name}: {_said(first, len(diagnosis.groups))}"
    dead = diagnosis.cluster.dead_brokers
    if dead and worst is Severity.CRITICAL and first.presentation.names_dead_brokers:
        brokers = numbered("broker", dead) if len(dead) < _MANY else f"brokers {ranges(dead)}"
        sentence += f" ({brokers} {'is' if len(dead) == 1 else 'are'} dead)"
    return sentence + "."


def _unheard_of(diagnosis: Diagnosis) -> str:
    names = diagnosis.unheard_of
    rest = len(diagnosis.groups) - len(names)
    well = f"; nothing wrong was found with the other {counted(rest, 'group')}" if rest else ""
    return (
        f"UNDETERMINED: no broker knows the {'group' if len(names) == 1 else 'groups'} "
        f"{first_of(names, _MANY)} (misspelt, or without members and commits){well}."
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
        return (
            f"UNDETERMINED: {len(unknown)} of {counted(total, 'group')} could not be judged; nothing wrong "
            "was seen with the rest."
        )
    return f"OK: nothing wrong was found with {counted(total, 'group')}."


def nobody_answered(diagnosis: Diagnosis) -> bool:
    return not diagnosis.cluster.brokers and any(row.kind == "broker" for row in diagnosis.unasked)


def unjudged(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Groups of which not even the coordinator is known, or of a kind that no rule judges: silence about them
    is no good news.
    """
    groups = {question.group for question in diagnosis.open if presentation_of(question.code).is_essential}
    groups |= set(diagnosis.of_other_kinds)
    return tuple(sorted(group for group in groups if group is not None))


def is_judged(diagnosis: Diagnosis) -> bool:
    """Whether silence of the rules means that all is well: every group that was asked for was judged."""
    return bool(diagnosis.groups) and not (
        diagnosis.unheard_of or nobody_answered(diagnosis) or unjudged(diagnosis)
    )


def _said(chapter: Chapter, total: int) -> str:
    groups, presentation = chapter.groups, chapter.presentation
    if not groups:
        return chapter.findings[0].summary.rstrip(".")
    hit = f"{len(groups):,} of {counted(total, 'group')}"
    if chapter.is_over:
        return f"{hit} had {presentation.when_over or chapter.name}, which is over"
    if not presentation.of_one:
        return f"{hit}: {chapter.name.replace('-', ' ')}"
    return f"{hit} {presentation.of_one if len(groups) == 1 else presentation.of_many}"


def others(diagnosis: Diagnosis) -> str:
    """What there is besides the worst, as a sentence; empty if that is all."""
    severities = [chapter.severity for chapter in chapters(diagnosis)[1:]]
    words = {Severity.CRITICAL: "critical finding", Severity.WARNING: "warning", Severity.NOTICE: "notice"}
    counts = [(severities.count(severity), word) for severity, word in words.items()]
    parts = [counted(number, word) for number, word in counts if number]
    return f"Also {listed(parts)}." if parts else ""


def blast_radius(diagnosis: Diagnosis) -> BlastRadius:
    worst = diagnosis.worst
    hit = [finding for finding in diagnosis.findings if finding.severity is worst and worst > Severity.NOTICE]
    dead = diagnosis.cluster.dead_brokers
    return BlastRadius(
        groups=groups_of(hit),
        partitions=tuple(sorted({name for finding in hit for name in finding.partitions}, key=_by_number)),
        brokers=tuple(sorted({node for finding in hit for node in finding.brokers} | set(dead))),
        dead_brokers=dead,
        leaderless=tuple(name.partition for name in diagnosis.cluster.leaderless),
    )


def open_questions(diagnosis: Diagnosis) -> tuple[OpenQuestion, ...]:
    """Those that lack the same are one, by code."""
    by_missing: defaultdict[tuple[str, tuple[str, ...]], list[Open]] = defaultdict(list)
    for row in diagnosis.open:
        by_missing[row.code, row.missing].append(row)
    return tuple(
        OpenQuestion(
            code, rows[0].name, missing, tuple(sorted(row.group for row in rows if row.group is not None))
        )
        for (code, missing), rows in sorted(by_missing.items())
    )


def _by_number(name: str) -> tuple[str, int]:
    topic, _, number = name.rpartition("-")
    return (topic, int(number)) if number.isdecimal() else (name, -1)
