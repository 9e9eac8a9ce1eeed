"""Findings in the order in which people read them: causes, worst first, each with what follows from it."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from kelpie.cluster import ClusterView
from kelpie.doctor.diagnosis import Diagnosis
from kelpie.doctor.finding import Finding, Severity
from kelpie.doctor.rule import Presentation
from kelpie.doctor.rules import rules
from kelpie.observations.acknowledgement import Acknowledgement

_TOLD, _IN_LINES = 3, 6
"""So many chapters are told on one screen; so many more have a line."""


@dataclass(frozen=True, slots=True)
class Part:
    """Findings of one code."""

    code: str
    name: str
    findings: tuple[Finding, ...]
    """Worst first: by severity, then by how long how many records wait."""

    @property
    def severity(self) -> Severity:
        return max(finding.severity for finding in self.findings)

    @property
    def presentation(self) -> Presentation:
        return presentation_of(self.code)

    @property
    def groups(self) -> tuple[str, ...]:
        """In the order of the findings."""
        return tuple(dict.fromkeys(each.group for each in self.findings if each.group is not None))

    @property
    def is_over(self) -> bool:
        return all(finding.until is not None for finding in self.findings)


@dataclass(frozen=True, slots=True)
class Chapter:
    """Findings of one code that no other finding explains, and under them all that they explain."""

    cause: Part
    consequences: tuple[Part, ...]
    """The nearest first."""
    severity: Severity
    """Of the worst of them all."""

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.cause, *self.consequences

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(finding for part in self.parts for finding in part.findings)

    @property
    def groups(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(group for part in self.parts for group in part.groups))

    @property
    def is_over(self) -> bool:
        return all(part.is_over for part in self.parts)


def presentation_of(code: str) -> Presentation:
    """Of a rule; tables may hold findings of a rule that this release does not have."""
    rule = rules().get(code)
    return rule.presentation if rule is not None else Presentation()


def chapters(diagnosis: Diagnosis) -> tuple[Chapter, ...]:
    """Worst first: by severity, then by how long how many records wait.

    What is over, and what is but a risk, comes after what is wrong now. Acknowledged findings are left out.
    """
    found = {finding.id: finding for finding in diagnosis.unacknowledged}
    places = _places(found)
    trees: defaultdict[str, list[Finding]] = defaultdict(list)
    for name, (root, _) in places.items():
        trees[root].append(found[name])
    by_code: defaultdict[tuple[str, str, Severity, bool], list[Finding]] = defaultdict(list)
    for root, tree in trees.items():
        severity = max(finding.severity for finding in tree)
        is_over = all(finding.until is not None for finding in tree)
        by_code[found[root].code, found[root].name, severity, is_over] += tree
    of_all = [
        _chapter(diagnosis, findings, severity, places) for (_, _, severity, _), findings in by_code.items()
    ]
    return tuple(sorted(of_all, key=lambda chapter: _order(diagnosis, chapter)))


def _places(found: Mapping[str, Finding]) -> dict[str, tuple[str, int]]:
    """For each finding: the first cause of its causes, and how far it is from there."""
    places: dict[str, tuple[str, int]] = {}
    for name in found:
        path = [name]
        while path[-1] not in places:
            above = next((cause for cause in found[path[-1]].caused_by if cause in found), None)
            if above is None:
                places[path[-1]] = (path[-1], 0)
            else:
                path.append(above)
        root, depth = places[path.pop()]
        for below in reversed(path):
            depth += 1
            places[below] = (root, depth)
    return places


def _chapter(
    diagnosis: Diagnosis,
    findings: Sequence[Finding],
    severity: Severity,
    places: Mapping[str, tuple[str, int]],
) -> Chapter:
    by_code: defaultdict[tuple[int, str, str], list[Finding]] = defaultdict(list)
    for finding in findings:
        is_cause = places[finding.id][1] == 0
        by_code[0 if is_cause else 1, finding.code, finding.name].append(finding)
    near = {key: min(places[finding.id][1] for finding in findings) for key, findings in by_code.items()}
    parts = [
        Part(code, name, tuple(sorted(by_code[at, code, name], key=partial(_worst_first, diagnosis))))
        for at, code, name in sorted(by_code, key=lambda key: (near[key], key))
    ]
    return Chapter(parts[0], tuple(parts[1:]), severity)


def _worst_first(diagnosis: Diagnosis, finding: Finding) -> tuple[int, int, int, str, str]:
    """Of findings about the cluster, those first that concern the home of most groups."""
    living_there = 0
    if finding.group is None:
        homes = diagnosis.cluster.once(_homes, diagnosis.groups)
        living_there = sum(homes[name] for name in finding.partitions)
    waiting = _weight(diagnosis, [finding.group])
    return -finding.severity, -waiting, -living_there, finding.cause, finding.group or ""


def _homes(cluster: ClusterView, groups: tuple[str, ...]) -> Counter[str]:
    """How many of these groups live on each partition of the offsets topic."""
    return Counter(str(cluster.home_of(group)) for group in groups)


def _weight(diagnosis: Diagnosis, groups: Iterable[str | None]) -> int:
    """How long how many records wait for these groups."""
    known = (diagnosis.waiting.get(group) for group in groups if group is not None)
    return sum(waiting.weight(diagnosis.cluster.now) for waiting in known if waiting is not None)


def _order(diagnosis: Diagnosis, chapter: Chapter) -> tuple[int, bool, bool, int, str]:
    is_a_risk = chapter.cause.presentation.is_risk_alone and not chapter.groups
    weight = _weight(diagnosis, chapter.groups)
    return -chapter.severity, chapter.is_over, is_a_risk, -weight, chapter.cause.code


@dataclass(frozen=True, slots=True)
class Brief:
    """A diagnosis on one screen: every finding is in one of these."""

    chapters: tuple[Chapter, ...]
    """Told: what is wrong, whom it hits, what to do."""
    lines: tuple[Chapter, ...]
    """A line each."""
    counted: tuple[Chapter, ...]
    """Only counted."""
    notices: tuple[Chapter, ...]
    """Named together in a sentence."""
    acknowledged: tuple[tuple[Acknowledgement, tuple[Finding, ...]], ...]


def brief(diagnosis: Diagnosis) -> Brief:
    of_all = chapters(diagnosis)
    worth_telling: list[Chapter] = []
    less: list[Chapter] = []
    for each in of_all:
        (worth_telling if each.severity > Severity.NOTICE else less).append(each)
    known: dict[Acknowledgement, list[Finding]] = {}
    for finding in diagnosis.findings:
        if finding.acknowledged is not None:
            known.setdefault(finding.acknowledged, []).append(finding)
    return Brief(
        tuple(worth_telling[:_TOLD]),
        tuple(worth_telling[_TOLD : _TOLD + _IN_LINES]),
        tuple(worth_telling[_TOLD + _IN_LINES :]),
        tuple(less),
        tuple((each, tuple(findings)) for each, findings in known.items()),
    )
