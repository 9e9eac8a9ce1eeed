"""KLP107 not-authorised

What it sees: the cluster refused to answer for the group, or for a topic that
it reads, for want of a permission.

Why it matters: a consumer that is refused stops with an exception; most do not
try again. If it is the doctor that was refused, nothing can be said about the
group: that is not the same as all is well.

How it decides: error 29 (topic), 30 (group) or 31 (cluster) in an answer to the
doctor, or in a log of the group's own clients. The latter is critical, the
former a warning: with the consumers' own credentials it may be allowed.

What to do: a consumer needs Read on its group and Describe and Read on its
topics; the doctor needs Describe on groups and topics (it changes nothing).
The finding has the commands.

When it is wrong: Kafka hides topics that one may not describe: they look
missing instead.

Reproduce: kelpie lab run not-authorised
"""

from collections.abc import Sequence

from kelpie.cluster.commands import connecting
from kelpie.doctor.case import Case
from kelpie.doctor.coordinator_replies import last_replies, lookup_evidence, lookups
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.position_words import tool
from kelpie.doctor.rule import Presentation, Rule
from kelpie.errors import ErrorCode, describe
from kelpie.model.quoting import quoted
from kelpie.model.words import counted, listed
from kelpie.observations import Event, EventKind

_REFUSALS = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
}
_MOVES_ON = {EventKind.JOINED, EventKind.ASSIGNED, EventKind.CONSUMED}


def judge(case: Case) -> Judgement:
    of_clients = _of_clients(case)
    if of_clients:
        return _clients_refused(case, of_clients)
    replies = last_replies(case)
    seen = [reply.evidence for reply in replies if reply.error in _REFUSALS]
    seen += lookup_evidence(row for row in lookups(case).values() if row.error in _REFUSALS)
    topics = sorted(
        {
            name.topic
            for name, row in case.committed.items()
            if row.error == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        }
    )
    if seen or topics:
        return _we_are_refused(case, seen, topics)
    if not replies and not lookups(case) and not case.committed and not case.events:
        return undetermined("an answer about the group")
    return ABSENT


def _of_clients(case: Case) -> Sequence[Event]:
    """Refusals in the clients' logs after which nothing has worked."""
    worked = max((event.at or 0 for event in case.events if event.kind in _MOVES_ON), default=-1)
    return [
        event
        for event in case.events
        if event.kind is EventKind.NOT_AUTHORISED and (event.at is None or event.at > worked)
    ]


def _clients_refused(case: Case, refused: Sequence[Event]) -> Finding:
    topics = sorted({event.topic for event in refused if event.topic})
    first, last = refused[0], refused[-1]
    evidence = [Evidence(first.text, first.source, first.at)]
    if last is not first:
        evidence.append(
            Evidence(f"{counted(len(refused), 'such line')}, the last: {last.text}", last.source, last.at)
        )
    what = f"topic {listed(topics)}" if topics else "the group itself"
    return RULE.finding(
        Severity.CRITICAL,
        case.group,
        f"Group {case.group}: its consumers are refused: they have no permission for {what}.",
        why="A consumer that is refused stops with an exception, and does not try again by itself.",
        evidence=evidence,
        remedies=_grants(case, topics, reading=True),
        members=sorted({event.client_id for event in refused if event.client_id}),
        since=first.at,
    )


def _we_are_refused(case: Case, seen: Sequence[Evidence], topics: Sequence[str]) -> Finding:
    evidence = [
        *seen,
        *(
            Evidence(
                f"{name}: {describe(ErrorCode.TOPIC_AUTHORIZATION_FAILED)}",
                case.committed[name].source,
                case.committed[name].at,
            )
            for name in sorted(case.committed)
            if name.topic in topics and case.committed[name].error == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        ),
    ]
    what = "the group" if seen else f"topic {listed(topics)}"
    return RULE.finding(
        Severity.WARNING,
        case.group,
        f"Group {case.group}: the cluster refuses to answer for {what} with these credentials.",
        why="Whether the group is well cannot be told. If its consumers use the same credentials, they are "
        "refused as well and do not consume.",
        evidence=evidence,
        remedies=_grants(case, topics, reading=False),
    )


def _grants(case: Case, topics: Sequence[str], *, reading: bool) -> list[Remedy]:
    acls = tool(case.cluster, "kafka-acls.sh")
    operation = "Read" if reading else "Describe"
    whom = "the consumers' user" if reading else "the doctor's user"
    remedies = []
    if not topics:
        remedies.append(
            Remedy(
                f"Allow {whom} {operation} on the group.",
                f"{acls} --add --allow-principal User:NAME --operation {operation} "
                f"--group {quoted(case.group)}",
            )
        )
    remedies += [
        Remedy(
            f"Allow {whom} {operation} on the topic.",
            f"{acls} --add --allow-principal User:NAME --operation {operation} --topic {quoted(topic)}",
        )
        for topic in topics
    ]
    if not reading:
        remedies.append(
            Remedy(
                "Or look with the credentials that the consumers use.",
                f"kelpie doctor {connecting(case.cluster)}"
                f"--command-config consumer.properties {quoted(case.group)}",
            )
        )
    return remedies


RULE = Rule.of(
    __name__, judge, presentation=Presentation(of_one="is refused", of_many="are refused", silences=True)
)
