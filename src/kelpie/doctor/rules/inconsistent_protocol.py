"""KLP206 inconsistent-protocol

What it sees: a consumer is refused with INCONSISTENT_GROUP_PROTOCOL (23): it has
no assignor in common with the members that are there, or is no consumer at all.

Why it matters: the refused one ends with an error, or tries for ever, while the
others go on. In a rolling change of partition.assignment.strategy every new
member is refused until the last old one is gone: the group runs with fewer and
fewer members.

How it decides: a consumer's log says so. No request shows it afterwards: the
coordinator keeps no record of members that it refused.

What it needs: the logs of the consumers that were refused. Without logs of this
group's consumers it is undetermined.

What to do: change assignors in two steps: first deploy all members with both the
old and the new one, then with the new one alone. A group of Kafka Connect and a
group of consumers cannot share a name; give one of them another.

When it is wrong: it is what the broker answered; it is not wrong. But it may be
over: the finding says when it was last.

Reproduce: kelpie lab run inconsistent-protocol
"""

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.membership import CLIENT_LOGS, LogLines, describing
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import Sign
from kelpie.model.words import counted
from kelpie.observations import EventKind


def judge(case: Case) -> Judgement:
    refusals = case.events_of(EventKind.PROTOCOL_REFUSED)
    if refusals:
        return _found(case, LogLines(case, refusals, refusals))
    return ABSENT if case.has_client_logs else undetermined(CLIENT_LOGS)


def _found(case: Case, lines: LogLines) -> Finding:
    state = case.described
    evidence = lines.evidence
    theirs = ""
    if state is not None and (state.protocol or state.protocol_type):
        theirs = f" Its members use {state.protocol or 'no assignor'} (type {state.protocol_type})."
        members = counted(len(state.members), "member")
        text = f"protocol {state.protocol}, type {state.protocol_type}, {members}"
        evidence.append(Evidence.of(state, text))
    return RULE.finding(
        lines.severity(Severity.WARNING),
        case.group,
        f"Group {case.group} refused {lines.who}: it has no assignor in common with the members that are "
        f"there; {lines.how_often}.{theirs}",
        why="The refused consumer reads nothing; the members of the group have to do its work.",
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
        members=lines.names,
        since=lines.first,
        check=describing(case, "--state"),
    )


RULE = Rule.of(
    __name__,
    judge,
    Presentation(
        "refuses consumers with another assignor or protocol",
        "refuse consumers with another assignor or protocol",
    ),
    asked_for=Sign.LOG_LINES,
    otherwise=undetermined(CLIENT_LOGS),
)
