"""KLP206 inconsistent-protocol

What it sees: a consumer is refused with INCONSISTENT_GROUP_PROTOCOL (23): it has
no assignor in common with the members that are there, or is no consumer at all.

Why it matters: the refused one ends with an error, or tries for ever, while the
others go on. In a rolling change of partition.assignment.strategy every new
member is refused until the last old one is gone: the group runs with fewer and
fewer members.

How it decides: a consumer's log says so. No request shows it afterwards: the
coordinator keeps no record of members that it refused.

What to do: change assignors in two steps: first deploy all members with both the
old and the new one, then with the new one alone. A group of Kafka Connect and a
group of consumers cannot share a name; give one of them another.

When it is wrong: it is what the broker answered; it is not wrong. But it may be
over: the finding says when it was last.

Reproduce: kelpie lab run inconsistent-protocol
"""

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.membership import (
    CLIENT_LOGS,
    by_age,
    client_told,
    describing,
    evidence_of,
    first_time,
    last_time,
    people,
    person_in,
    said,
)
from kelpie.doctor.rule import Rule
from kelpie.model.words import counted, moment
from kelpie.observations import Event, EventKind


def judge(case: Case) -> Judgement:
    lines = said(case, EventKind.PROTOCOL_REFUSED)
    if lines:
        return _found(case, lines)
    return ABSENT if client_told(case) else undetermined(CLIENT_LOGS)


def _found(case: Case, lines: list[Event]) -> Finding:
    who = [person_in(event) for event in lines]
    last = last_time(lines)
    state = case.described
    evidence = evidence_of(lines)
    theirs = ""
    if state is not None and (state.protocol or state.protocol_type):
        theirs = f" Those who are in it use {state.protocol or 'no assignor'} (type {state.protocol_type})."
        evidence.append(
            Evidence(
                f"protocol {state.protocol}, type {state.protocol_type}, "
                f"{counted(len(state.members), 'member')}",
                state.source,
                state.at,
            )
        )
    return RULE.finding(
        by_age(case, last, Severity.WARNING),
        case.group,
        f"Group {case.group} refused {people(set(who))}: it has no assignor in common with the members that "
        f"are there; {counted(len(lines), 'time')}, the last at {moment(last)}.{theirs}",
        why="The refused consumer reads nothing; those who are in the group have to do its work.",
        evidence=evidence,
        remedies=[
            Remedy("See which assignor the group uses:", describing(case, "--state")),
            Remedy(
                "Deploy all members with both assignors first (partition.assignment.strategy=new,old), and "
                "with the new one alone afterwards."
            ),
            Remedy(
                "If the refused one is no consumer of this group (Connect, another application), give it "
                "another group.id."
            ),
        ],
        members=sorted(set(who)),
        since=first_time(lines),
    )


RULE = Rule.of(__name__, judge)
