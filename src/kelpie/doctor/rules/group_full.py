"""KLP209 group-full

What it sees: the group has as many members as the brokers allow, and refuses
others with GROUP_MAX_SIZE_REACHED (81).

Why it matters: the refused consumer ends with an error and reads nothing. In a
rolling restart it may be an old member that finds no room when it comes back.

How it decides: a consumer's log says so; or the number of members has reached
group.max.size of the brokers (group.consumer.max.size for KIP-848,
group.streams.max.size for the Streams protocol), and then the next one will be
refused.

What it needs: the right to describe the brokers' settings (DescribeConfigs on the
cluster), or the logs of the group's consumers. Without both it is undetermined.

What to do: raise the limit on all brokers, or run fewer members. More members than
partitions do not help anyway (KLP207).

When it is wrong: brokers that are set differently: the coordinator's own setting
counts.

Reproduce: kelpie lab run group-full
"""

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.membership import CLIENT_LOGS, LogLines, describing, size_limit
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import Sign
from kelpie.model.words import counted
from kelpie.observations import EventKind, GroupState

_UNLIMITED = 2**31 - 1


def judge(case: Case) -> Judgement:
    refusals = case.events_of(EventKind.GROUP_FULL)
    state = case.described
    setting, limit = size_limit(case.cluster, state)
    is_full = state is not None and limit is not None and len(state.members) >= limit
    if refusals or is_full:
        return _found(case, LogLines(case, refusals, refusals), state, setting, limit)
    if limit is not None or case.has_client_logs:
        return ABSENT
    return undetermined(f"{setting} of the brokers", CLIENT_LOGS)


def _found(case: Case, lines: LogLines, state: GroupState | None, setting: str, limit: int | None) -> Finding:
    known = limit is not None and limit < _UNLIMITED
    evidence = lines.evidence
    size = ""
    if state is not None:
        members = counted(len(state.members), "member")
        size = f" It has {members}"
        evidence.append(Evidence.of(state, f"{members}, state {state.state}"))
    if known:
        evidence.append(Evidence(f"{setting}={limit}", "settings of the brokers"))
    allowed = f"; {setting} allows {limit}." if known else "." if size else ""
    what = (
        f"refused {lines.who}, {lines.how_often}: it is full."
        if lines.events
        else "is full: the next member will be refused."
    )
    return RULE.finding(
        lines.severity(Severity.WARNING) if lines.events else Severity.NOTICE,
        case.group,
        f"Group {case.group} {what}{size}{allowed}",
        why="A refused consumer ends with GROUP_MAX_SIZE_REACHED (81) and reads nothing.",
        evidence=evidence,
        remedies=[
            Remedy("Run fewer members: more than there are partitions do not help."),
            Remedy(f"Or raise {setting} on all brokers (server.properties, then a rolling restart)."),
        ],
        members=lines.names,
        since=lines.first,
        check=describing(case, "--state"),
    )


RULE = Rule.of(
    __name__,
    judge,
    Presentation("has no room for more members", "have no room for more members"),
    asked_for=Sign.LOG_LINES | Sign.SIZE_LIMIT,
)
