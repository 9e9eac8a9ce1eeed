"""KLP205 static-member-fenced

What it sees: two consumers use the same group.instance.id, and throw each other
out of the group.

Why it matters: the coordinator keeps the one that came last. The other one gets
FENCED_INSTANCE_ID (82), after which a Java consumer ends. Where a scheduler starts
it again, it throws out the first one in turn, and so on; what either of them read
last may be read twice.

How it decides: a consumer's log says that it was fenced; or the coordinator's log
shows requests of a member whose place another one has, which only a living one can
send; or the same instance changed its member id three times within the time of one
session, in that log or in the records of __consumer_offsets. One change alone is
what a restart of a static member looks like, and is none.

What to do: give every process its own id, for example from the ordinal of its pod
or its host name. Two replicas of one deployment must not share a fixed one.

When it is wrong: a process that was declared dead, and replaced, and that then
came to life again.

Reproduce: kelpie lab run static-member-fenced
"""

from collections.abc import Iterable
from typing import NamedTuple

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.membership import (
    BROKER_LOGS,
    CLIENT_LOGS,
    MOST_EVIDENCE,
    broker_told,
    by_age,
    client_told,
    describing,
    people,
    rosters,
    said,
    timeouts,
)
from kelpie.doctor.rule import Rule
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.model.words import counted, moment
from kelpie.observations import Event, EventKind, Member

_CHANGES = 3
_SESSION_MS = 45_000


class Change(NamedTuple):
    """An instance got another member id."""

    instance: str
    at: Instant | None
    evidence: Evidence


def judge(case: Case) -> Judgement:
    fenced = _fenced(case)
    changes = _changes(case)
    instances = sorted({event.instance_id for event in fenced if event.instance_id})
    instances += [name for name in _fought_over(case, changes) if name not in instances]
    if fenced or instances:
        return _found(case, fenced, [change for change in changes if change.instance in instances], instances)
    if _is_dynamic(case) or client_told(case) or broker_told(case):
        return ABSENT
    return undetermined(CLIENT_LOGS, BROKER_LOGS)


def _fenced(case: Case) -> list[Event]:
    """Lines of the fenced and of the coordinator. The latter do not always name the group."""
    lines = [event for event in said(case, EventKind.FENCED) if _is_static(event)]
    lines += [event for event in said(case, EventKind.MEMBER_FENCED) if _is_static(event)]
    members, instances = _known(case)
    lines += [
        event
        for event in case.cluster.events
        if event.kind in (EventKind.FENCED, EventKind.MEMBER_FENCED)
        and (event.member in members or (event.instance_id in instances and event.member is None))
    ]
    return sorted(lines, key=lambda event: event.at or 0)


def _is_static(event: Event) -> bool:
    """A member of the new protocol may be fenced by its epoch as well; that is no quarrel."""
    return event.instance_id is not None or event.error == ErrorCode.FENCED_INSTANCE_ID


def _known(case: Case) -> tuple[set[str], set[str]]:
    members = {event.member for event in case.events if event.member}
    instances = {event.instance_id for event in case.events if event.instance_id}
    for roster in rosters(case):
        members |= {member.member_id for member in roster}
        instances |= {member.instance_id for member in roster if member.instance_id}
    return members, instances


def _changes(case: Case) -> list[Change]:
    """By time; of the records, or of the coordinator's log, whichever tells of more."""
    logged = [
        Change(event.instance_id, event.at, Evidence(event.text, event.source, event.at))
        for event in said(case, EventKind.MEMBER_JOINED, EventKind.MEMBER_FENCED)
        if event.instance_id and event.details.get("replaced")
    ]
    return max(logged, _recorded(case), key=len)


def _recorded(case: Case) -> list[Change]:
    owner: dict[str, str] = {}
    changes: list[Change] = []
    rows: list[tuple[Instant | None, Iterable[Member], str]] = [
        (row.at, row.members, row.source) for row in case.generations
    ]
    rows += [(state.at, state.members, state.source) for state in case.states]
    for at, members, source in sorted(rows, key=lambda row: row[0] or 0):
        for member in members:
            if member.instance_id is None:
                continue
            before = owner.get(member.instance_id)
            if before is not None and before != member.member_id:
                text = f"instance {member.instance_id}: member {before} became {member.member_id}"
                changes.append(Change(member.instance_id, at, Evidence(text, source, at)))
            owner[member.instance_id] = member.member_id
    return changes


def _fought_over(case: Case, changes: list[Change]) -> list[str]:
    """Instances that changed hands again and again, faster than anybody restarts."""
    session = timeouts(case).session_ms or _SESSION_MS
    times: dict[str, list[Instant]] = {}
    for change in changes:
        if change.at is not None:
            times.setdefault(change.instance, []).append(change.at)
    return sorted(
        name
        for name, own in times.items()
        if any(last - first <= session for first, last in zip(own, own[_CHANGES - 1 :], strict=False))
    )


def _is_dynamic(case: Case) -> bool:
    """Whether everybody is known, and nobody has an instance id."""
    there = [member for roster in rosters(case) for member in roster]
    return bool(there) and all(member.instance_id is None for member in there)


def _found(case: Case, fenced: list[Event], changes: list[Change], instances: list[str]) -> Finding:
    times = [
        at for at in (*(event.at for event in fenced), *(change.at for change in changes)) if at is not None
    ]
    last = max(times, default=None)
    names = people(instances) if instances else "one group.instance.id"
    count = max(len(fenced), len(changes))
    evidence = [Evidence(event.text, event.source, event.at) for event in fenced[:MOST_EVIDENCE]]
    evidence += [change.evidence for change in changes[: MOST_EVIDENCE - len(evidence)]]
    return RULE.finding(
        by_age(case, last, Severity.WARNING if count < _CHANGES else Severity.CRITICAL),
        case.group,
        f"In group {case.group}, two consumers share the group.instance.id {names} and throw each other out: "
        f"{counted(count, 'time')}, the last at {moment(last)}.",
        why="The coordinator keeps the one that came last; the other one ends with FENCED_INSTANCE_ID (82). "
        "Restarted, it throws out the first in turn.",
        evidence=evidence,
        remedies=_remedies(case),
        members=instances,
        since=min(times, default=None),
    )


def _remedies(case: Case) -> list[Remedy]:
    return [
        Remedy(
            "Give every process its own group.instance.id, from its ordinal or host name; start both again."
        ),
        Remedy(
            "Who has it now, and on which host, and who else runs with the same configuration:",
            describing(case, "--members"),
        ),
    ]


RULE = Rule.of(__name__, judge)
