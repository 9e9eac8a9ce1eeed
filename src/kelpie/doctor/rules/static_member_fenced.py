"""KLP205 static-member-fenced

What it sees: two consumers use the same group.instance.id: one of them is thrown
out of the group, or not let in.

Why it matters: with the classic protocol the coordinator keeps the one that came
last. The other one gets FENCED_INSTANCE_ID (82), after which a Java consumer ends.
Where a scheduler starts it again, it throws out the first one in turn, and so on;
what either of them read last may be read twice. With KIP-848 the first one stays:
the second is refused with UNRELEASED_INSTANCE_ID (111) and ends, as long as the
first one has neither left nor lost its session.

How it decides: a consumer's log says that it was fenced; or the coordinator's log
shows requests of a member whose place another one has, which only a living one can
send; or the same instance changed its member id three times within the time of one
session, in that log or in the records of __consumer_offsets. One change alone is
what a restart of a static member looks like, and is none.

What it needs: the logs of the consumers or of the group's coordinator; or, for
groups of the classic protocol, the right to read __consumer_offsets. Without them
it is undetermined, unless no member is static.

What to do: give every process its own id, for example from the ordinal of its pod
or its host name. Two replicas of one deployment must not share a fixed one.

When it is wrong: a process that was declared dead, and replaced, and that then
came to life again.

Reproduce: kelpie lab run static-member-fenced
"""

from collections import defaultdict
from typing import NamedTuple

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, quotes, undetermined
from kelpie.doctor.membership import (
    BROKER_LOGS,
    CLIENT_LOGS,
    MOST_EVIDENCE,
    SESSION_MS,
    by_age,
    describing,
    people,
    timeouts,
)
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import Sign
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.model.words import counted, moment
from kelpie.observations import Event, EventKind
from kelpie.observations.groups import CONSUMER

_CHANGES = 3
_OF_INSTANCES = (ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNRELEASED_INSTANCE_ID)
_FENCING = (EventKind.FENCED, EventKind.MEMBER_FENCED)


class _Change(NamedTuple):
    """An instance got another member id."""

    instance: str
    evidence: Evidence


def judge(case: Case) -> Judgement:
    fenced = _fenced(case)
    changes = _changes(case)
    instances = sorted({event.instance_id for event in fenced if event.instance_id})
    instances += [name for name in _fought_over(case, changes) if name not in instances]
    if fenced or instances:
        shown = [change.evidence for change in changes if change.instance in instances]
        return _found(case, fenced, shown, instances)
    members = [member for roster in case.rosters for member in roster]
    is_dynamic = bool(members) and all(member.instance_id is None for member in members)
    if is_dynamic or case.has_client_logs or case.has_broker_log:
        return ABSENT
    return undetermined(CLIENT_LOGS, BROKER_LOGS)


def _fenced(case: Case) -> list[Event]:
    """Lines of the fenced and of the coordinator. The latter do not always name the group."""
    lines = [event for kind in _FENCING for event in case.events_of(kind) if _is_static(event)]
    members = {event.member for event in case.events if event.member}
    instances = {event.instance_id for event in case.events if event.instance_id}
    for roster in case.rosters:
        members |= {member.member_id for member in roster}
        instances |= {member.instance_id for member in roster if member.instance_id}
    lines += [
        event
        for event in case.cluster.events
        if event.kind in _FENCING
        and (event.member in members or (event.instance_id in instances and event.member is None))
    ]
    return sorted(lines, key=lambda event: event.at or 0)


def _is_static(event: Event) -> bool:
    """A member of the new protocol may be fenced by its epoch as well; that is no quarrel."""
    return event.instance_id is not None or event.error in _OF_INSTANCES


def _changes(case: Case) -> list[_Change]:
    """By time; of the records, or of the coordinator's log, whichever tells of more."""
    logged = [
        _Change(event.instance_id, Evidence.of(event, event.text))
        for event in case.events_of(EventKind.MEMBER_JOINED, EventKind.MEMBER_FENCED)
        if event.instance_id and event.details.get("replaced")
    ]
    return max(logged, _recorded(case), key=len)


def _recorded(case: Case) -> list[_Change]:
    """Nobody gets a member id again that another one has replaced. Where it looks so, the row is older than
    its time says: all rows of an earlier survey have the time at which that survey ended.
    """
    owner: dict[str, str] = {}
    replaced: set[str] = set()
    changes: list[_Change] = []
    for row in sorted(case.member_rows, key=lambda row: row.at or 0):
        for member in row.members:
            if member.instance_id is None or member.member_id in replaced:
                continue
            before = owner.get(member.instance_id)
            if before is not None and before != member.member_id:
                text = f"instance {member.instance_id}: member {before} became {member.member_id}"
                changes.append(_Change(member.instance_id, Evidence.of(row, text)))
                replaced.add(before)
            owner[member.instance_id] = member.member_id
    return changes


def _fought_over(case: Case, changes: list[_Change]) -> list[str]:
    """Instances that changed hands again and again, faster than a process restarts."""
    session = timeouts(case).session_ms or SESSION_MS
    times_by_instance: defaultdict[str, list[Instant]] = defaultdict(list)
    for instance, evidence in changes:
        if evidence.at is not None:
            times_by_instance[instance].append(evidence.at)
    return sorted(
        instance
        for instance, times in times_by_instance.items()
        if any(last - first <= session for first, last in zip(times, times[_CHANGES - 1 :], strict=False))
    )


def _found(case: Case, fenced: list[Event], changes: list[Evidence], instances: list[str]) -> Finding:
    evidence = [*quotes(fenced), *changes]
    times = [each.at for each in evidence if each.at is not None]
    last = max(times, default=None)
    names = people(instances) if instances else "one group.instance.id"
    count = max(len(fenced), len(changes))
    if _is_refused(case, fenced):
        effect = "and the second one is not let in"
        why = (
            "With this protocol (KIP-848) the coordinator keeps the first one and refuses the second with "
            "UNRELEASED_INSTANCE_ID (111), until the first has left or its session has ended."
        )
    else:
        effect = "and throw each other out"
        why = (
            "The coordinator keeps the one that came last; the other one ends with FENCED_INSTANCE_ID (82). "
            "Restarted, it throws out the first in turn."
        )
    return RULE.finding(
        by_age(case, last, Severity.WARNING if count < _CHANGES else Severity.CRITICAL),
        case.group,
        f"In group {case.group}, two consumers share the group.instance.id {names} {effect}: "
        f"{counted(count, 'time')}, the last at {moment(last)}.",
        why=why,
        evidence=evidence[:MOST_EVIDENCE],
        remedies=[
            Remedy(
                "Give every process its own group.instance.id, from its ordinal or host name; start both "
                "again."
            ),
            Remedy(
                "See which member has it now, and on which host; another process has the same setting.",
                describing(case, "--members"),
            ),
        ],
        members=instances,
        since=min(times, default=None),
        check=describing(case, "--members"),
    )


def _is_refused(case: Case, fenced: list[Event]) -> bool:
    """Whether the second one is refused, as with KIP-848, and does not throw the first one out."""
    if any(event.error == ErrorCode.FENCED_INSTANCE_ID for event in fenced):
        return False
    is_refused = any(event.error == ErrorCode.UNRELEASED_INSTANCE_ID for event in fenced)
    return is_refused or (case.described is not None and case.described.kind == CONSUMER)


RULE = Rule.of(
    __name__,
    judge,
    Presentation(
        "has consumers with the same group.instance.id", "have consumers with the same group.instance.id"
    ),
    asked_for=Sign.LOG_LINES | Sign.MEMBERS,
    otherwise=undetermined(CLIENT_LOGS, BROKER_LOGS),
)
