"""A group's way from its coordinator, or from ZooKeeper, to the next record: step by step, and where it ends.

A step is `passed`, `failed` or `unknown`, each by itself: behind a failed one, much may be known from before.
Findings belong to the step that they are about.
"""

from collections.abc import Sequence

from kelpie.cluster.health import Health, health_of
from kelpie.doctor.case import Case
from kelpie.doctor.chapters import presentation_of
from kelpie.doctor.finding import Finding, Severity
from kelpie.doctor.journey_step import JourneyStep, Passage
from kelpie.doctor.overview import idle_members
from kelpie.doctor.zookeeper.journey import steps_in_zookeeper
from kelpie.model.words import counted, listed

_MOST_NAMES = 5
_POSITION_CODES = {"KLP301", "KLP302", "KLP303", "KLP304", "KLP305", "KLP308", "KLP314", "KLP320"}
"""Findings of the third family that are about committed offsets, and not about reading."""
_MEMBER_CODES = {"KLP504", "KLP506"}
"""Findings about sessions and settings of consumers in ZooKeeper. The others are about owners."""


def journey(case: Case, findings: Sequence[Finding]) -> list[JourneyStep]:
    if case.in_zookeeper:
        steps = steps_in_zookeeper(case)
    else:
        steps = [_home(case), _coordinator(case), _members(case), _offsets(case), _reading(case)]
    by_name = {step.name: step for step in steps}
    for finding in findings:
        if finding.until is not None:
            continue
        step = by_name.get(_place(finding.code), steps[-1])
        step.findings.append(finding)
        if finding.severity is Severity.CRITICAL or presentation_of(finding.code).stops_group:
            step.passage = Passage.FAILED
    return steps


def _place(code: str) -> str:
    """The step that a finding is about."""
    if code.startswith("KLP1"):
        return "home"
    if code.startswith("KLP2") or code in _MEMBER_CODES:
        return "members"
    if code.startswith("KLP5"):
        return "owners"
    return "offsets" if code in _POSITION_CODES else "reading"


def _home(case: Case) -> JourneyStep:
    home = case.offsets_partition
    if home is None:
        text = "How many partitions __consumer_offsets has is not known."
        return JourneyStep("home", Passage.UNKNOWN, text)
    health = health_of(case.cluster, home)
    view = case.cluster.view(home)
    if health is Health.UNKNOWN or view is None:
        return JourneyStep("home", Passage.UNKNOWN, f"The group lives on {home}; nobody describes it.")
    if not health.is_led:
        return JourneyStep("home", Passage.FAILED, f"The group lives on {home}, which has no living leader.")
    return JourneyStep("home", Passage.PASSED, f"The group lives on {home}; broker {view.leader} leads it.")


def _coordinator(case: Case) -> JourneyStep:
    state = case.state
    coordinator = case.cluster.coordinator_of(case.group)
    who = "Its coordinator" if coordinator is None else f"Its coordinator, broker {coordinator},"
    if case.is_cut_off:
        return JourneyStep("coordinator", Passage.FAILED, "Nobody coordinates the group.")
    if state is None:
        return JourneyStep("coordinator", Passage.UNKNOWN, f"{who} has not described the group.")
    if state.error:
        text = f"{who} answers with an error: {state.error}."
        return JourneyStep("coordinator", Passage.FAILED, text)
    return JourneyStep("coordinator", Passage.PASSED, f"{who} says that the group is {state.state}.")


def _members(case: Case) -> JourneyStep:
    members = None if case.is_cut_off else case.members
    if members is None:
        return JourneyStep("members", Passage.UNKNOWN, "Who its members are cannot be asked now.")
    if not members:
        text = "It has no members"
        is_own = case.commits_without_joining
        text += "; who commits for it does not join it." if is_own else ": nobody reads for it now."
        return JourneyStep("members", Passage.PASSED if is_own else Passage.UNKNOWN, text)
    idle = idle_members(case)
    text = f"It has {counted(len(members), 'member')}"
    text += f", {len(idle):,} of them without a partition." if idle else "."
    return JourneyStep("members", Passage.PASSED, text)


def _offsets(case: Case) -> JourneyStep:
    if not case.offsets_are_known:
        return JourneyStep("offsets", Passage.UNKNOWN, "Its committed offsets are not known.")
    names = case.reads.partitions
    without = [name for name in names if not case.has_offset(name)]
    if not names:
        return JourneyStep("offsets", Passage.UNKNOWN, "It has committed nothing, and reads nothing.")
    if without:
        shown = listed(without[:_MOST_NAMES])
        text = f"{counted(len(without), 'partition')} without a committed offset: {shown}."
        return JourneyStep("offsets", Passage.UNKNOWN, text)
    if len(names) == 1:
        return JourneyStep("offsets", Passage.PASSED, "It has committed an offset for its only partition.")
    text = f"It has committed an offset for each of its {counted(len(names), 'partition')}."
    return JourneyStep("offsets", Passage.PASSED, text)


def _reading(case: Case) -> JourneyStep:
    names = case.reads.partitions
    dead = [name for name in names if case.cluster.has_leader(name) is False]
    if dead:
        text = f"{counted(len(dead), 'partition')} without a leader: {listed(dead[:_MOST_NAMES])}."
        return JourneyStep("reading", Passage.FAILED, text)
    lags = [case.track(name).lag for name in names]
    known = [lag for lag in lags if lag is not None]
    if not known:
        return JourneyStep("reading", Passage.UNKNOWN, "How far it is behind is not known.")
    return JourneyStep("reading", Passage.PASSED, f"{counted(sum(known), 'record')} left to read.")
