"""All rules on all cases; findings with what explains them; incidents: findings with the same cause."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import NamedTuple

from kelpie.cluster import ClusterView
from kelpie.doctor.case import Case
from kelpie.doctor.causes import linked
from kelpie.doctor.finding import (
    ABSENT,
    Finding,
    Judgement,
    Remedy,
    Severity,
    Undetermined,
    is_covered,
)
from kelpie.doctor.glances import Glances
from kelpie.doctor.open_questions import Lack, Open, OpenQuestion, OpenQuestions
from kelpie.doctor.positions import lag_ms
from kelpie.doctor.rule import JudgeGroup, Rule
from kelpie.doctor.rules import rules
from kelpie.doctor.signs import Sign
from kelpie.model.time import Instant
from kelpie.observations import Unasked
from kelpie.observations.acknowledgement import Acknowledgement
from kelpie.observations.groups import OTHER_KINDS

_STALLED = "KLP309"


def groups_of(findings: Iterable[Finding]) -> tuple[str, ...]:
    return tuple(sorted({finding.group for finding in findings if finding.group is not None}))


@dataclass(frozen=True, slots=True)
class Incident:
    """Findings with the same code and cause."""

    code: str
    name: str
    cause: str
    findings: tuple[Finding, ...]

    @property
    def severity(self) -> Severity:
        return max(finding.severity for finding in self.findings)

    @property
    def groups(self) -> tuple[str, ...]:
        return groups_of(self.findings)


class Waiting(NamedTuple):
    """Records that wait for a group."""

    records: int
    since: Instant | None
    """When the oldest of them was written, at the latest. None: unknown."""

    def weight(self, now: Instant) -> int:
        """How long how many records wait: to put the worst first."""
        return self.records * max(1, now - self.since if self.since is not None else 1)


class Cost(NamedTuple):
    """What a look costs a cluster."""

    requests: int
    bytes_received: int
    by_api: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    cluster: ClusterView
    groups: tuple[str, ...]
    """All that were looked at."""
    findings: tuple[Finding, ...]
    """Worst first."""
    open: tuple[OpenQuestion, ...]
    """What rules could not decide."""
    unlisted: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Known groups that no broker lists now, each with where it is known from."""
    unheard_of: tuple[str, ...] = ()
    """Groups that the user named, and that no broker or file knows."""
    unasked: tuple[Unasked, ...] = ()
    """What could not be asked, about the cluster and about single groups."""
    of_other_kinds: tuple[str, ...] = ()
    """Share groups and groups of the Streams protocol that could not be judged: not described, or without a
    position that brokers tell.
    """
    waiting: Mapping[str, Waiting] = field(default_factory=dict)
    """By group, of those that have findings and whose position is known."""
    cost: "Cost | None" = None
    """What looking cost the cluster. None: no broker was asked."""

    def only(self, codes: Collection[str] = (), at_least: Severity = Severity.NOTICE) -> "Diagnosis":
        """With findings and open questions of these codes alone, all if there are none; and with findings
        of at least this severity.
        """
        if not codes and at_least is Severity.NOTICE:
            return self
        return replace(
            self,
            findings=linked(
                [
                    finding
                    for finding in self.findings
                    if finding.severity >= at_least and (not codes or finding.code in codes)
                ]
            ),
            open=tuple(question for question in self.open if not codes or question.code in codes),
        )

    def with_commands(self, change: Callable[[str], str]) -> "Diagnosis":
        """The same, with every command to paste changed. Many findings have the same remedies: those that
        need the same broker.
        """
        changed = cache(change)

        @cache
        def remedy(given: Remedy) -> Remedy:
            return replace(given, command=changed(given.command)) if given.command else given

        def finding(given: Finding) -> Finding:
            check = changed(given.check) if given.check else ""
            return replace(given, remedies=tuple(map(remedy, given.remedies)), check=check)

        return replace(self, findings=tuple(map(finding, self.findings)))

    def acknowledged(self, known: Sequence[Acknowledgement]) -> "Diagnosis":
        """The same, with the findings marked that people know about."""
        now = self.cluster.now

        def marked(finding: Finding) -> Finding:
            covering = next((each for each in known if is_covered(finding, each, now)), None)
            return finding if covering == finding.acknowledged else replace(finding, acknowledged=covering)

        return replace(self, findings=tuple(map(marked, self.findings)))

    @property
    def unacknowledged(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.acknowledged is None)

    @property
    def worst(self) -> Severity | None:
        """Of the findings that nobody has acknowledged."""
        return max((finding.severity for finding in self.unacknowledged), default=None)

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """Worst first, then by how many groups they hit."""
        by_cause: dict[tuple[str, str], list[Finding]] = {}
        for finding in self.findings:
            by_cause.setdefault((finding.code, finding.cause), []).append(finding)
        incidents = [
            Incident(code, findings[0].name, cause, tuple(findings))
            for (code, cause), findings in by_cause.items()
        ]
        return tuple(sorted(incidents, key=_order))


def _order(incident: Incident) -> tuple[int, str, int, str]:
    return -incident.severity, incident.code, -len(incident.findings), incident.cause


def diagnose(case: Case, glances: Glances | None = None) -> tuple[list[Finding], list[Open]]:
    """All rules on one group. The live doctor and the pipeline both call this.

    `glances`: of the case's cluster, for callers who judge many groups of it.
    """
    findings: list[Finding] = []
    undecided = OpenQuestions()
    _diagnose(case, glances or Glances(case.cluster), findings, undecided)
    return findings, undecided.rows()


def _diagnose(case: Case, glances: Glances, findings: list[Finding], undecided: OpenQuestions) -> Case | None:
    """Adds findings and open questions. Returns the case that was judged, if there are findings and records
    may wait for the group.
    """
    signs = glances.at(case)
    plan = steps(case.in_zookeeper, case.is_share, signs)
    if not plan.asks:
        undecided.add_alike(plan.lacks, case.group)
        return None
    # A case keeps what rules derive from it. Only the copy does: many thousand cases are in memory at once.
    judged = copy(case)
    before = len(findings)
    for rule, judge, otherwise in plan.steps:
        judgement = judge(judged) if judge is not None else otherwise
        if isinstance(judgement, Undetermined):
            undecided.add(Lack(rule.code, judgement.missing, rule.name), case.group)
        elif isinstance(judgement, Finding):
            findings.append(judgement)
    return judged if len(findings) > before and signs & Sign.NOT_AT_ENDS else None


class _Step(NamedTuple):
    rule: Rule
    judge: JudgeGroup | None
    """None: the rule need not be asked."""
    otherwise: Judgement


class _Steps(NamedTuple):
    """What is done about groups of one kind with the same signs."""

    steps: list[_Step]
    asks: bool
    """Whether any rule is asked."""
    lacks: tuple[Lack, ...]
    """If none is: what is undetermined."""


@lru_cache(maxsize=10_000)
def steps(in_zookeeper: bool, is_share: bool, signs: int) -> _Steps:
    """The rules for groups of this kind with these signs, but for those that are absent in all of them.

    Healthy groups have the same few signs: this is worked out once for thousands of them.
    """
    steps = []
    for rule in rules().values():
        if rule.judge is not None and rule.judges(in_zookeeper=in_zookeeper, is_share=is_share):
            otherwise = rule.unasked(signs)
            if rule.asked_for & signs:
                steps.append(_Step(rule, rule.judge, otherwise))
            elif otherwise is not ABSENT:
                steps.append(_Step(rule, None, otherwise))
    lacks = tuple(
        Lack(rule.code, otherwise.missing, rule.name)
        for rule, _, otherwise in steps
        if isinstance(otherwise, Undetermined)
    )
    return _Steps(steps, any(step.judge is not None for step in steps), lacks)


def _waiting_for(case: Case) -> Waiting | None:
    """The records that wait for a group. None: its position, or the end of the log, is not known."""
    behind = [(track.lag, lag_ms(track)) for track in case.tracks if track.lag]
    if not behind:
        return None
    ages = [age for _, known in behind if known is not None for age in known[:1]]
    oldest = case.cluster.now - max(ages) if ages else None
    return Waiting(sum(lag for lag, _ in behind if lag is not None), oldest)


def diagnose_cluster(cluster: ClusterView, cases: Sequence[Case]) -> tuple[list[Finding], list[Open]]:
    """What concerns the cluster as a whole. Of the cases, only names and members of groups are looked at.

    Groups that ZooKeeper keeps, and names that nobody knows, have no part in it.
    """
    cases = [case for case in cases if not case.in_zookeeper and not case.is_unheard_of]
    judging = [(rule, rule.judge_cluster) for rule in rules().values() if rule.judge_cluster]
    return _sorted(((rule, judge(cluster, cases)) for rule, judge in judging))


def diagnose_all(cluster: ClusterView, cases: Sequence[Case]) -> Diagnosis:
    findings, of_cluster = diagnose_cluster(cluster, cases)
    undecided = OpenQuestions.of(of_cluster)
    waiting: dict[str, Waiting] = {}
    glances = Glances(cluster)
    for case in cases:
        judged = _diagnose(case, glances, findings, undecided)
        if judged is not None and (records := _waiting_for(judged)) is not None:
            waiting[case.group] = records
    questions = undecided.by_lack()
    unmoved = {group for question in questions if question.code == _STALLED for group in question.groups}
    findings.sort(key=lambda finding: (-finding.severity, finding.code, finding.cause, finding.group or ""))
    return Diagnosis(
        cluster,
        tuple(case.group for case in cases),
        linked(findings),
        questions,
        tuple((case.group, case.known_from) for case in cases if case.listed is False and case.known_from),
        tuple(case.group for case in cases if case.is_unheard_of),
        (*cluster.unasked, *(row for case in cases for row in case.unasked)),
        tuple(case.group for case in cases if _is_unjudged(case, unmoved)),
        waiting,
    )


def _is_unjudged(case: Case, unmoved: Collection[str]) -> bool:
    """Whether nobody knows if it consumes. `unmoved`: groups of which KLP309 could not say it."""
    state = case.state
    if state is None or state.kind not in OTHER_KINDS or state.state == "Empty":
        return False
    return bool(state.error) or not state.is_described or (case.is_share and case.group in unmoved)


def _sorted(
    judged: Iterable[tuple[Rule, Sequence[Finding] | Judgement]],
) -> tuple[list[Finding], list[Open]]:
    """Of the cluster."""
    findings: list[Finding] = []
    undecided: list[Open] = []
    for rule, judgement in judged:
        if isinstance(judgement, Undetermined):
            undecided.append(Open(rule.code, rule.name, None, judgement.missing))
        elif isinstance(judgement, Finding):
            findings.append(judgement)
        elif isinstance(judgement, Sequence):
            findings += judgement
    return findings, undecided
