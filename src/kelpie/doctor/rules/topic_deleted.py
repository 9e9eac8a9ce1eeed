"""KLP315 topic-deleted

What it sees: a topic that the group reads, or read at an earlier look, does not
exist any more.

Why it matters: nobody can read its records again; with the topic, Kafka removes
the group's offsets in it. A classic Java consumer (seen with 4.3.1) that had a
partition of it tries to commit there again and again, is refused
(UNKNOWN_TOPIC_OR_PARTITION), and reads nothing of its other topics either, until
it is restarted or the topic is there again. Consumers of KIP-848 and of
librdkafka go on with their other topics.

How it decides: every broker that was asked for the topic by name says that there
is none; brokers say so only to a caller who may describe it. If a member
subscribes to the topic or has a partition of it, it is a warning. Otherwise it is a
notice: only an earlier look, or offsets that were left, show that the group read
it. It is a notice, too, if members subscribe to a topic, and nothing shows that it ever
existed: no look, no commit, no assignment. A topic that the caller may not describe is not called deleted.

What it needs: Describe on the group and the topic. Without Describe on the topic, or
where neither members nor offsets tell which topics the group reads, it is
undetermined. Brokers before Kafka 2.1 are asked for all topics, and leave out those
that the caller may not describe: there it is undetermined as well, unless the
coordinator told offsets of the group in that topic.

What to do: if it was deleted on purpose, take the topic out of the consumers'
subscription and restart them. If not, create it again with as many partitions as it
had; the records do not come back.

When it is wrong: a topic is created again in this moment, with its consumers running.

Reproduce: kelpie lab run topic-deleted
"""

from kelpie.cluster import commands
from kelpie.cluster.topics import Existence
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.membership import topics_of_members
from kelpie.doctor.position_words import MOST_EVIDENCE, evidence_of, some
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import Sign
from kelpie.observations import OFFSETS_TOPIC, Event, EventKind

_DESCRIBE = "the right to describe the topic (Describe)"


def judge(case: Case) -> Judgement:
    named = topics_of_members(case)
    once = {name.topic for name in (*case.committed, *case.committed_over_time)}
    topics = sorted((named | once) - {OFFSETS_TOPIC})
    known = case.cluster.known_topics
    gone, missing = [], []
    for topic in topics:
        existence = known.existence(topic)
        if existence is Existence.GONE or (existence is Existence.UNLISTED and _may_describe(case, topic)):
            gone.append(topic)
        elif existence in (Existence.HIDDEN, Existence.UNLISTED):
            missing.append(f"whether topic {topic} exists: {_DESCRIBE}")
        elif existence is Existence.DISPUTED:
            missing.append(f"whether topic {topic} exists: some brokers know it, others do not")
        elif existence is Existence.UNKNOWN and topic not in case.cluster.topics:
            missing.append(f"whether topic {topic} exists: no broker was asked for it, or none answered")
    if gone:
        return _found(case, gone, named)
    if missing:
        return undetermined(*missing)
    if not topics:
        return undetermined("which topics it reads: it has neither members nor committed offsets")
    return ABSENT


def _may_describe(case: Case, topic: str) -> bool:
    """Coordinators tell offsets only in topics that the caller may describe."""
    return any(row.topic == topic and not row.error for row in case.committed.values())


def _found(case: Case, gone: list[str], named: set[str]) -> Finding:
    read = [topic for topic in gone if topic in named]
    others = sorted(named - set(gone))
    what = f"topic {gone[0]}" if len(gone) == 1 else f"topics {some(gone)}"
    verb = "does" if len(gone) == 1 else "do"
    if not any(_was_there(case, topic) for topic in gone):
        return _never_seen(case, gone, f"{what}, which {verb} not exist")
    if read:
        who = f"its members still subscribe to {'it' if len(gone) == 1 else some(read)}"
    else:
        who = "an earlier look, or offsets that are left, show that it read there"
    why = "Its records cannot be read any more, and Kafka removes the group's offsets in it."
    if read and others:
        why += (
            " A classic Java consumer that had a partition of it neither commits nor reads on in its other "
            f"topics ({some(others)}) until it is restarted."
        )
    return RULE.finding(
        Severity.WARNING if read else Severity.NOTICE,
        case.group,
        f"Group {case.group} reads {what}, which {verb} not exist any more: {who}."
        if read
        else f"Group {case.group} read {what}, which {verb} not exist any more: {who}.",
        why=why,
        evidence=_evidence(case, gone),
        remedies=_remedies(gone, bool(read)),
        cause=gone[0],
        members=[member.member_id for member in case.members or ()] if read else (),
        check=commands.kafka("kafka-topics", case.cluster, "--describe", "--topic", gone[0]),
    )


def _was_there(case: Case, topic: str) -> bool:
    """Whether anything shows that the topic existed: a look, a commit, an assignment."""
    assigned = (name for member in case.members or () for name in member.assigned or ())
    names = (*case.committed, *case.committed_over_time, *case.commits, *assigned)
    looks = case.cluster.known_topics.views.get(topic, ())
    return any(name.topic == topic for name in names) or any(not look.error for look in looks)


def _never_seen(case: Case, gone: list[str], what: str) -> Finding:
    return RULE.finding(
        Severity.NOTICE,
        case.group,
        f"Group {case.group} subscribes to {what}; nothing shows that it ever did.",
        why="Its consumers read it once it is created. If the name is misspelt, that never happens.",
        evidence=_evidence(case, gone),
        cause=gone[0],
        check=commands.kafka("kafka-topics", case.cluster, "--describe", "--topic", gone[0]),
    )


def _evidence(case: Case, gone: list[str]) -> list[Evidence]:
    evidence = []
    for topic in gone[: MOST_EVIDENCE // 3]:
        newest = case.cluster.known_topics.newest(topic)
        evidence += [Evidence.of(row, f"topic {topic}: there is no such topic") for row in newest[:1]]
        looks = [
            row for name, rows in case.committed_over_time.items() if name.topic == topic for row in rows
        ]
        evidence += evidence_of(*looks[-1:])
    return evidence + [Evidence.of(event, event.text) for event in _refused_commits(case, gone)[-1:]]


def _refused_commits(case: Case, gone: list[str]) -> list[Event]:
    return [event for event in case.events_of(EventKind.COMMIT_FAILED) if event.topic in gone]


def _remedies(gone: list[str], is_read: bool) -> list[Remedy]:
    if not is_read:
        return []
    return [
        Remedy(
            f"If {some(gone)} was deleted on purpose: take it out of the consumers' subscription, and "
            "restart them."
        ),
        Remedy("If not: create it again with as many partitions as it had. Its records do not come back."),
    ]


RULE = Rule.of(
    __name__,
    judge,
    Presentation("reads a deleted topic", "read a deleted topic"),
    asked_for=Sign.TOPIC_IN_DOUBT | Sign.UNTOLD_OFFSET | Sign.NOTHING_READ,
)
