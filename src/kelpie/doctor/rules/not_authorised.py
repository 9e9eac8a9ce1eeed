"""KLP107 not-authorised

What it sees: the cluster refused to answer for the group, or for a topic that
it reads, for want of a permission.

Why it matters: a consumer that is refused stops with an exception; most do not
try again. If it is the doctor that was refused, nothing can be said about the
group: that is not the same as all is well.

How it decides: error 29 (topic), 30 (group) or 31 (cluster) in an answer to the
doctor, or in a log of the group's own clients. The latter is critical, the
former a warning: with the consumers' own credentials it may be allowed. Asked for
all offsets of a group, brokers leave out topics that the caller may not describe,
without a word. So the topics that members, the history of commits and earlier looks
name are asked for by name; and an offset that the history has and the coordinator
leaves out is hidden as well.

What it needs: an answer of a broker that refuses, or logs of the group's clients. If
the coordinator was not asked and no log is there, it is undetermined. The command
that lists rights needs Describe on the cluster.

What to do: a consumer needs Read on its group and Describe and Read on its
topics; the doctor needs Describe on groups and topics (it changes nothing).
The finding has the commands.

When it is wrong: brokers before Kafka 2.1 are asked for all topics, and leave out
those that the caller may not describe; without the history, they look missing.

Reproduce: kelpie lab run not-authorised
"""

from collections.abc import Sequence

from kelpie.cluster import commands
from kelpie.cluster.topics import Existence
from kelpie.doctor.case import OFFSET_FETCH, Case
from kelpie.doctor.coordinator_replies import (
    AUTHORISATION_ERRORS,
    answer_evidence,
    first_and_last,
    last_replies,
    lookups,
)
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.membership import topics_of_members
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import Sign
from kelpie.errors import ErrorCode, describe
from kelpie.model.words import listed
from kelpie.observations import Event, EventKind

_TOPIC_REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_SAME_MOMENT_MS = 10_000
"""A commit that is newer may have come after the question."""
_MOVES_ON = {EventKind.JOINED, EventKind.ASSIGNED, EventKind.CONSUMED}


def judge(case: Case) -> Judgement:
    of_clients = _of_clients(case)
    if of_clients:
        return _clients_refused(case, of_clients)
    replies = last_replies(case)
    answers = (*replies, *lookups(case).values())
    refusals = answer_evidence(row for row in answers if row.error in AUTHORISATION_ERRORS)
    of_topics = [row for _, row in sorted(case.committed.items()) if row.error == _TOPIC_REFUSED]
    hidden = _hidden(case)
    if refusals or of_topics or hidden:
        topics = sorted({row.topic for row in of_topics} | hidden.keys())
        what = "the group" if refusals else f"topic {listed(topics)}"
        refusals += [each for _, each in sorted(hidden.items())]
        refusals += [Evidence.of(row, f"{row.name}: {describe(_TOPIC_REFUSED)}") for row in of_topics]
        return _we_are_refused(case, refusals, what, topics)
    if not answers and not case.committed and not case.events:
        return undetermined("an answer about the group")
    return ABSENT


def _hidden(case: Case) -> dict[str, Evidence]:
    """Topics of the group that the caller may not describe: brokers leave them out of all offsets of a group.

    Members, the history and earlier looks name them.
    """
    named = topics_of_members(case) | {name.topic for name in (*case.commits, *case.committed_over_time)}
    known = case.cluster.known_topics
    hidden = {
        topic: Evidence.of(known.newest(topic)[-1], f"topic {topic}: {describe(_TOPIC_REFUSED)}")
        for topic in named
        if known.existence(topic) is Existence.HIDDEN
    }
    asked = [row.at for row in case.answers if row.asked == OFFSET_FETCH and not row.error]
    if not asked or asked[-1] is None:
        return hidden
    for name, history in sorted(case.commits.items()):
        last = history[-1]
        was_there = not last.removed and last.at is not None and last.at < asked[-1] - _SAME_MOMENT_MS
        if was_there and name not in case.committed and not case.is_gone(name):
            text = f"{name}: committed {last.offset}; the coordinator leaves it out of the group's offsets"
            hidden.setdefault(name.topic, Evidence.of(last, text))
    return hidden


def _of_clients(case: Case) -> Sequence[Event]:
    """Refusals in the clients' logs after which nothing has worked."""
    worked = max((event.at or 0 for event in case.events_of(*_MOVES_ON)), default=-1)
    refusals = case.events_of(EventKind.NOT_AUTHORISED)
    return [event for event in refusals if event.at is None or event.at > worked]


def _clients_refused(case: Case, refused: Sequence[Event]) -> Finding:
    topics = sorted({event.topic for event in refused if event.topic})
    what = f"topic {listed(topics)}" if topics else "the group itself"
    return RULE.finding(
        Severity.CRITICAL,
        case.group,
        f"Group {case.group}: its consumers are refused: they have no permission for {what}.",
        why="A consumer that is refused stops with an exception, and does not try again by itself.",
        evidence=first_and_last(refused),
        remedies=_grants(case, topics, "the consumers' user", "Read"),
        members=sorted({event.client_id for event in refused if event.client_id}),
        since=refused[0].at,
        check=_rights(case, topics),
    )


def _we_are_refused(case: Case, refusals: Sequence[Evidence], what: str, topics: Sequence[str]) -> Finding:
    words = ("--command-config", "consumer.properties")
    return RULE.finding(
        Severity.WARNING,
        case.group,
        f"Group {case.group}: the cluster refuses to answer for {what} with these credentials.",
        why="Whether the group is well cannot be told. If its consumers use the same credentials, they are "
        "refused as well and do not consume.",
        evidence=refusals,
        remedies=[
            *_grants(case, topics, "the doctor's user", "Describe"),
            Remedy(
                "Or look with the credentials that the consumers use.",
                commands.kelpie("doctor", case.cluster, *words, name=case.group),
            ),
        ],
        check=_rights(case, topics),
    )


def _rights(case: Case, topics: Sequence[str]) -> str:
    """Who may do what, on Kafka's own lists."""
    resource = ("--topic", topics[0]) if topics else ("--group", case.group)
    return commands.kafka("kafka-acls", case.cluster, "--list", *resource)


def _grants(case: Case, topics: Sequence[str], whom: str, operation: str) -> list[Remedy]:
    resources = [("topic", topic) for topic in topics] or [("group", case.group)]
    allow = ("--add", "--allow-principal", "User:NAME", "--operation", operation)
    return [
        Remedy(
            f"Allow {whom} {operation} on the {kind}.",
            commands.kafka("kafka-acls", case.cluster, *allow, f"--{kind}", name),
        )
        for kind, name in resources
    ]


RULE = Rule.of(
    __name__,
    judge,
    Presentation(
        "is refused for want of a permission", "are refused for want of a permission", silences=True
    ),
    asked_for=Sign.LOG_LINES
    | Sign.NOT_AUTHORISED
    | Sign.NO_REPLY
    | Sign.OFFSET_REFUSED
    | Sign.TOPIC_IN_DOUBT
    | Sign.UNTOLD_OFFSET,
)
