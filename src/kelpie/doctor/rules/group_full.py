"""KLP209 group-full

What it sees: the group has as many members as the brokers allow, and refuses
others with GROUP_MAX_SIZE_REACHED (81).

Why it matters: the refused consumer ends with an error and reads nothing. In a
rolling restart it may be an old member that finds no room when it comes back.

How it decides: a consumer's log says so; or the number of members has reached
group.max.size (group.consumer.max.size for groups of the new protocol) of the
brokers, and then the next one will be refused.

What to do: raise the limit on all brokers, or run fewer members. More members than
partitions do not help anyway (KLP207).

When it is wrong: brokers that are set differently: the coordinator's own setting
counts.

Reproduce: kelpie lab run group-full
"""

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.membership import (
    CLIENT_LOGS,
    by_age,
    client_told,
    evidence_of,
    first_time,
    last_time,
    people,
    person_in,
    said,
)
from kelpie.doctor.rule import Rule
from kelpie.model.words import counted, moment
from kelpie.observations import Event, EventKind, GroupState
from kelpie.observations.groups import CONSUMER

_UNLIMITED = 2**31 - 1


def judge(case: Case) -> Judgement:
    lines = said(case, EventKind.GROUP_FULL)
    state = case.described
    limit = _limit(case, state)
    full = state is not None and limit is not None and len(state.members) >= limit
    if lines or full:
        return _found(case, lines, state, limit)
    if limit is not None or client_told(case):
        return ABSENT
    return undetermined(f"{_setting(state)} of the brokers", CLIENT_LOGS)


def _setting(state: GroupState | None) -> str:
    return "group.consumer.max.size" if state is not None and state.kind == CONSUMER else "group.max.size"


def _limit(case: Case, state: GroupState | None) -> int | None:
    name = _setting(state)
    own = f"broker {state.coordinator}" if state is not None else "broker"
    value = case.cluster.setting(name, of=own) or case.cluster.setting(name)
    return int(value) if value is not None and value.isdecimal() else None


def _found(case: Case, lines: list[Event], state: GroupState | None, limit: int | None) -> Finding:
    name = _setting(state)
    who = [person_in(event) for event in lines]
    known = limit is not None and limit < _UNLIMITED
    there = f" It has {counted(len(state.members), 'member')}" if state is not None else ""
    allowed = f"; {name} allows {limit}." if known else "." if there else ""
    evidence = evidence_of(lines)
    if state is not None:
        evidence.append(
            Evidence(f"{counted(len(state.members), 'member')}, state {state.state}", state.source, state.at)
        )
    if known:
        evidence.append(Evidence(f"{name}={limit}", "settings of the brokers"))
    last = last_time(lines)
    if lines:
        times = f"{counted(len(lines), 'time')}, the last at {moment(last)}"
        told = f"refused {people(set(who))}, {times}: it is full."
        severity = by_age(case, last, Severity.WARNING)
    else:
        told = "is full: the next member will be refused."
        severity = Severity.NOTICE
    return RULE.finding(
        severity,
        case.group,
        f"Group {case.group} {told}{there}{allowed}",
        why="A refused consumer ends with GROUP_MAX_SIZE_REACHED (81) and reads nothing.",
        evidence=evidence,
        remedies=[
            Remedy("Run fewer members: more than there are partitions do not help."),
            Remedy(f"Or raise {name} on all brokers (server.properties, then a rolling restart)."),
        ],
        members=sorted(set(who)),
        since=first_time(lines),
    )


RULE = Rule.of(__name__, judge)
