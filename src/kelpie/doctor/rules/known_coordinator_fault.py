"""KLP110 known-coordinator-fault

What it sees: what happens to the group looks like a known fault in the release of its
coordinator.

Why it matters: whoever knows that it is a fault of the broker does not look for it in
the consumers, and knows what ends it and which release corrects it.

How it decides: by a table of faults of Kafka's group coordinator, each with the releases
that have it and what is seen of it: KAFKA-8653 (KLP201), KAFKA-9752 and KAFKA-14422
(KLP202), KAFKA-13636 (KLP302), KAFKA-19862 (KLP102), KAFKA-4362 and KAFKA-20115 (two
brokers list the group at the same time). Both must fit: the release of the broker that
coordinates the group, and a finding of this group that is a warning or worse. It is a
notice, and never says that the fault is the cause: other causes look the same. Which
releases have a fault was looked up in the code of the published jars. Two things are
inferred: that 2.2 is the first with KAFKA-9752, and that 0.10.0 has KAFKA-4362 (its
code is the same; the tracker names 0.10.1.0 only).

What it needs: the release. A look knows it from the versions of requests that the
broker speaks, mostly as a range (2.4 to 2.7), and then says "may have"; the log of the
broker has it exactly. And what the other finding needs. Where a symptom is there and
the release is not known, it is undetermined.

What to do: what the finding names; then upgrade the brokers.

When it is wrong: vendors correct faults in releases of their own, and the same trouble
comes from other causes, which the other finding names. While a coordinator moves, two
brokers may list a group for a moment.

Reproduce: kelpie lab run known-coordinator-fault
"""

from typing import NamedTuple

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.known_faults import (
    FAULTS,
    LISTED_TWICE,
    KnownFault,
    Version,
    has,
    listed_by,
    may_have,
    range_of,
)
from kelpie.doctor.membership import describing
from kelpie.doctor.rule import JudgeGroup, Presentation, Rule
from kelpie.doctor.rules import (
    coordinator_loading,
    offsets_expired,
    rebalance_storm,
    rebalance_stuck,
)
from kelpie.doctor.signs import Sign
from kelpie.model.time import Instant
from kelpie.model.words import listed
from kelpie.observations import BrokerView

_SYMPTOMS: dict[str, JudgeGroup] = {
    "KLP102": coordinator_loading.judge,
    "KLP201": rebalance_storm.judge,
    "KLP202": rebalance_stuck.judge,
    "KLP302": offsets_expired.judge,
}
_FEW_GENERATIONS = 2


class _Symptom(NamedTuple):
    text: str
    evidence: Evidence
    since: Instant | None = None


def judge(case: Case) -> Judgement:
    if _is_quiet(case):
        return ABSENT
    broker = _coordinator(case)
    versions = range_of(broker.release) if broker is not None else None
    faults = [fault for fault in FAULTS if versions is None or may_have(fault, versions)]
    seen: dict[str, _Symptom | None] = {}
    for fault in faults:
        if fault.symptom not in seen:
            seen[fault.symptom] = _symptom(case, fault.symptom)
        symptom = seen[fault.symptom]
        if symptom is None or not fault.condition(case):
            continue
        if versions is None or broker is None:
            return undetermined("the release of its coordinator")
        return _found(case, fault, symptom, broker, versions)
    return ABSENT


def _is_quiet(case: Case) -> bool:
    """Most groups: described without an error, not rebalancing, and nothing removed. They have no symptom."""
    state = case.state
    if state is None or state.error or case.is_rebalancing or case.events or case.cluster.events:
        return False
    if len(case.generations) > _FEW_GENERATIONS or any(answer.error for answer in case.answers):
        return False
    if any(row.removed for rows in case.commits.values() for row in rows):
        return False
    return len(listed_by(case)) <= 1


def _coordinator(case: Case) -> BrokerView | None:
    partition = case.offsets_partition
    view = case.cluster.view(partition) if partition is not None else None
    broker = case.cluster.brokers.get(view.leader) if view is not None else None
    if broker is not None and broker.release:
        return broker
    # A dead broker tells no release; the others have mostly the same.
    return next((each for each in case.cluster.brokers.values() if each.release), broker)


def _symptom(case: Case, code: str) -> _Symptom | None:
    if code == LISTED_TWICE:
        brokers = listed_by(case)
        text = f"brokers {listed(brokers)} list it as theirs at the same time"
        return _Symptom(text, Evidence(text)) if len(brokers) > 1 else None
    judgement = _SYMPTOMS[code](case)
    if not isinstance(judgement, Finding) or judgement.severity < Severity.WARNING:
        return None
    quote = Evidence(f"{judgement.code}: {judgement.summary}")
    return _Symptom(judgement.code, quote, judgement.since)


def _found(
    case: Case, fault: KnownFault, symptom: _Symptom, broker: BrokerView, versions: tuple[Version, Version]
) -> Finding:
    verb = "has" if has(fault, versions) else "may have"
    fixed = ".".join(map(str, fault.fixed)) + "".join(f", {release}" for release in fault.also_fixed)
    return RULE.finding(
        Severity.NOTICE,
        case.group,
        f"Group {case.group} may be hit by {fault.issue}, which its coordinator's release, {broker.release}, "
        f"{verb}: {fault.what}. What points to it: {symptom.text}.",
        why="It is one possible cause among others. Nothing that was seen proves that it is this one.",
        evidence=[
            Evidence.of(broker, f"{broker}: release {broker.release}"),
            symptom.evidence,
        ],
        remedies=[Remedy(f"Upgrade the brokers: {fault.issue} is corrected in {fixed} and later.")],
        cause=fault.issue,
        brokers=[broker.node_id],
        since=symptom.since,
        check=describing(case, "--state"),
    )


RULE = Rule.of(
    __name__,
    judge,
    Presentation(
        "may be hit by a known fault of its coordinator's release",
        "may be hit by known faults of their coordinators' releases",
    ),
    asked_for=Sign.LOG_LINES
    | Sign.CLUSTER_LOG_LINES
    | Sign.LISTED_TWICE
    | Sign.NOT_DESCRIBED
    | Sign.NO_REPLY
    | Sign.LOADING
    | Sign.REBALANCING
    | Sign.MEMBERS
    | Sign.REMOVED
    | Sign.UNTOLD_OFFSET
    | Sign.TOPIC_IN_DOUBT
    | Sign.OFFSET_REFUSED,
)
