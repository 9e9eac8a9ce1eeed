"""What all renderers say alike of a diagnosis: the verdict, the blast radius, what belongs together."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from kelpie.cluster import ClusterView
from kelpie.doctor.diagnosis import Diagnosis, Incident, Open
from kelpie.doctor.finding import Finding, Severity
from kelpie.doctor.rule import Presentation
from kelpie.doctor.rules import rules
from kelpie.model.names import TopicPartition
from kelpie.model.words import counted, listed, ranges
from kelpie.observations import OFFSETS_TOPIC

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
    """All incidents of one code: reports show them together."""

    code: str
    name: str
    severity: Severity
    incidents: tuple[Incident, ...]

    @property
    def presentation(self) -> Presentation:
        return presentation_of(self.code)

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(finding for incident in self.incidents for finding in incident.findings)

    @property
    def groups(self) -> tuple[str, ...]:
        return tuple(sorted({finding.group for finding in self.findings if finding.group is not None}))


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
    by_code: defaultdict[tuple[str, bool], list[Incident]] = defaultdict(list)
    for incident in diagnosis.incidents:
        over = all(finding.until is not None for finding in incident.findings)
        by_code[incident.code, over].append(incident)
    by_code_and_state = [
        Chapter(code, own[0].name, max(row.severity for row in own), tuple(own))
        for (code, _), own in by_code.items()
    ]
    return tuple(
        sorted(by_code_and_state, key=lambda row: (-row.severity, _is_over(row), _is_a_risk(row), row.code))
    )


def _is_over(chapter: Chapter) -> bool:
    return all(finding.until is not None for finding in chapter.findings)


def _is_a_risk(chapter: Chapter) -> bool:
    return chapter.presentation.is_risk_alone and not chapter.groups


def verdict(diagnosis: Diagnosis) -> str:
    """One line: severity, fault, groups, cause."""
    worst = diagnosis.worst
    if diagnosis.unheard_of and worst in (None, Severity.NOTICE):
        return _unheard_of(diagnosis)
    if worst is None:
        return _all_well(diagnosis)
    told = chapters(diagnosis)
    first = told[0]
    sentence = f"{worst.name}: {_said(first, len(diagnosis.groups))}"
    dead = dead_brokers(diagnosis.cluster)
    if dead and worst is Severity.CRITICAL and first.presentation.names_dead_brokers:
        sentence += f" ({brokers(dead)} {'is' if len(dead) == 1 else 'are'} dead)"
    return sentence + "."


def _unheard_of(diagnosis: Diagnosis) -> str:
    names = diagnosis.unheard_of
    some = (
        listed(names) if len(names) <= _MANY else f"{', '.join(names[:_MANY])} and {len(names) - _MANY} more"
    )
    rest = len(diagnosis.groups) - len(names)
    well = f"; nothing wrong was found with the other {counted(rest, 'group')}" if rest else ""
    return (
        f"UNDETERMINED: no broker knows the {'group' if len(names) == 1 else 'groups'} {some} (misspelt, or "
        f"without members and commits){well}."
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
    """Groups of which not even the coordinator is known: silence about them is no good news."""
    groups = {question.group for question in diagnosis.open if presentation_of(question.code).is_essential}
    return tuple(sorted(group for group in groups if group is not None))


def _said(chapter: Chapter, total: int) -> str:
    groups = chapter.groups
    if not groups:
        return chapter.findings[0].summary.rstrip(".")
    if _is_over(chapter):
        what = chapter.presentation.when_over or chapter.name
        return f"{_of(len(groups), total)} had {what}, which is over"
    one, many = chapter.presentation.of_one, chapter.presentation.of_many
    if not one:
        return f"{_of(len(groups), total)}: {chapter.name.replace('-', ' ')}"
    return f"{_of(len(groups), total)} {one if len(groups) == 1 else many}"


def _of(number: int, total: int) -> str:
    return f"{number:,} of {counted(total, 'group')}"


def others(diagnosis: Diagnosis) -> str:
    """What there is besides the worst, as a sentence; empty if that is all."""
    rest = chapters(diagnosis)[1:]
    counts = {
        severity: sum(finding.severity is severity for finding in rest) for severity in reversed(Severity)
    }
    words = {Severity.CRITICAL: "critical finding", Severity.WARNING: "warning", Severity.NOTICE: "notice"}
    parts = [counted(number, words[severity]) for severity, number in counts.items() if number]
    return f"Also {listed(parts)}." if parts else ""


def blast_radius(diagnosis: Diagnosis) -> BlastRadius:
    worst = diagnosis.worst
    hit = [finding for finding in diagnosis.findings if finding.severity is worst and worst > Severity.NOTICE]
    cluster = diagnosis.cluster
    dead = dead_brokers(cluster)
    return BlastRadius(
        groups=tuple(sorted({finding.group for finding in hit if finding.group is not None})),
        partitions=tuple(sorted({name for finding in hit for name in finding.partitions}, key=_by_number)),
        brokers=tuple(sorted({node for finding in hit for node in finding.brokers} | set(dead))),
        dead_brokers=dead,
        leaderless=leaderless(cluster),
    )


def leaderless(cluster: ClusterView) -> tuple[int, ...]:
    names = (TopicPartition(OFFSETS_TOPIC, number) for number in range(cluster.offsets_partitions or 0))
    return tuple(name.partition for name in names if cluster.has_leader(name) is False)


def dead_brokers(cluster: ClusterView) -> tuple[int, ...]:
    return tuple(sorted(node for node, broker in cluster.brokers.items() if broker.alive is False))


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


def brokers(nodes: Sequence[int]) -> str:
    """In words; of many, in short: "brokers 0-7, 17"."""
    if len(nodes) == 1:
        return f"broker {nodes[0]}"
    return f"brokers {listed(nodes) if len(nodes) < _MANY else ranges(nodes)}"


def _by_number(name: str) -> tuple[str, int]:
    topic, _, number = name.rpartition("-")
    return (topic, int(number)) if number.isdecimal() else (name, -1)
