"""KLP207 idle-members

What it sees: members of a stable group that have no partition at all: there are
more members than partitions, or than the assignor can give partitions to, or what
they subscribe to does not exist (any more).

Why it matters: idle members do no harm, but no work either: more of them do not
make the group faster. A member that subscribes to a topic that is not there reads
nothing, without an error.

How it decides: the group is Stable, a member's assignment is empty, and the topics
that it subscribes to have fewer partitions than members that want them, or none.
The range assignor deals out each topic on its own: there a member is idle if each
single topic has fewer partitions than members that want it, however many topics
there are. If the group could be balanced much better, it is lopsided, which is
KLP208. Share groups give a partition to several members, and members of a Streams
application without active tasks may have standbys or warm-ups: there only a missing
topic counts. Workers of Kafka Connect have no partitions, and are not judged.

What it needs: the right to describe the group and its topics; for descriptions by
Kafka's own tools, which do not print subscriptions, also the records of
__consumer_offsets. A member that subscribes by a regular expression (KIP-848) is
undetermined if no known topic matches.

What to do: run fewer members. If a subscribed topic is missing, correct its name or
create it. More partitions help only where nothing depends on which partition a key
goes to: records of one key are then in two partitions, out of order, and topics that
are joined must keep the same number.

When it is wrong: members that are meant as spare ones.

Reproduce: kelpie lab run idle-members
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from kelpie.cluster import commands
from kelpie.doctor.balance import is_lopsided
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.membership import MOST_EVIDENCE, describing, people, person_of
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import Sign
from kelpie.model.words import counted, first_of
from kelpie.observations import OFFSETS_TOPIC, GroupState, Member
from kelpie.observations.groups import SHARE, STREAMS

_MOST_TOPICS = 5
_KINDS = ("consumer", "", SHARE, STREAMS)
"""Protocol types of groups whose members are assigned partitions."""


def judge(case: Case) -> Judgement:
    state = _with_subscriptions(case, case.described)
    if state is None:
        return undetermined("the members of the group and what they are assigned")
    if not state.is_described:
        return undetermined("the members of the group and what they are assigned")
    if state.state != "Stable" or not state.members or state.protocol_type not in _KINDS:
        return ABSENT
    idle = [member for member in state.members if _has_nothing(case, member)]
    if any(member.assigned is None for member in state.members) and not idle:
        return undetermined("what its members are assigned")
    if not idle:
        return ABSENT
    if any(member.subscribed is None for member in idle):
        return undetermined("what its members subscribe to")
    if not case.cluster.topics:
        return undetermined("which topics there are")
    unmatched = [member for member in idle if member.pattern and not _topics(case, member)]
    lost = [member for member in idle if member not in unmatched and not _topics(case, member)]
    others = [member for member in idle if member not in (*lost, *unmatched)]
    surplus = [member for member in others if _is_surplus(case, state, member)]
    if surplus or lost:
        return _found(case, state, surplus, lost)
    if unmatched:
        return undetermined(f"which topics match {first_of(sorted({each.pattern for each in unmatched}), 3)}")
    return ABSENT


def _with_subscriptions(case: Case, state: GroupState | None) -> GroupState | None:
    """Kafka's tools do not print what members subscribe to; records of the offsets topic tell."""
    if state is None or all(member.subscribed is not None for member in state.members):
        return state
    known = {
        member.member_id: member.subscribed
        for generation in case.generations
        for member in generation.members
    }
    members = (
        member if member.subscribed is not None else replace(member, subscribed=known.get(member.member_id))
        for member in state.members
    )
    return state._replace(members=tuple(members))


def _has_nothing(case: Case, member: Member) -> bool:
    """Partitions of a topic that was deleted are nothing: clients notice it minutes later."""
    return member.assigned is not None and all(case.is_gone(name) for name in member.assigned)


def _topics(case: Case, member: Member) -> set[str]:
    """What it subscribes to and is there."""
    topics = {topic for topic in member.subscribed or () if topic in case.cluster.topics}
    if member.pattern:
        # Brokers use RE2, whose expressions Python reads but for rare ones.
        with suppress(re.error):
            topics |= {topic for topic in case.cluster.topics if re.fullmatch(member.pattern, topic)}
    return topics - {OFFSETS_TOPIC}


def _is_surplus(case: Case, state: GroupState, member: Member) -> bool:
    """Whether more members want its topics than the assignor can give partitions of them to."""
    if state.kind == SHARE or state.is_streams:
        return False  # Share groups give a partition to several members; Streams has standbys and warm-ups.
    wanted = _topics(case, member)
    topics_of = [_topics(case, other) for other in state.members]
    if sum(len(case.cluster.topics[topic]) for topic in wanted) < sum(
        bool(wanted & its) for its in topics_of
    ):
        return True
    return (
        state.protocol == "range"
        and not is_lopsided(state)
        and all(len(case.cluster.topics[topic]) < sum(topic in its for its in topics_of) for topic in wanted)
    )


def _found(case: Case, state: GroupState, surplus: Sequence[Member], lost: Sequence[Member]) -> Finding:
    clauses, remedies = [], []
    why = "A topic that was deleted, or was never there, is no error to a consumer: it waits for it."
    if surplus:
        why = "A partition is read by one member of a group at a time: members beyond that number stand by."
        wanted = sorted({topic for member in surplus for topic in _topics(case, member)})
        count = sum(len(case.cluster.topics.get(topic, ())) for topic in wanted)
        by_topic = count >= len(state.members) and state.protocol == "range"
        each = ", and range deals out each topic on its own" if by_topic else ""
        clauses.append(
            f"{counted(len(surplus), 'member')} of {len(state.members)} got no partition: "
            f"{_some(wanted)} {'has' if len(wanted) == 1 else 'have'} {counted(count, 'partition')}{each}"
        )
        remedies = _fewer_or_more(case, min(_topics(case, surplus[0])), len(surplus), by_topic)
    if lost:
        who = people([person_of(member) for member in lost])
        clauses.append(f"{who} subscribed to {_some(_subscribed(lost))}, which does not exist")
        remedies.append(Remedy("Correct the subscription, or create the topic."))
    idle = (*surplus, *lost)
    return RULE.finding(
        Severity.WARNING if lost else Severity.NOTICE,
        case.group,
        f"In group {case.group}, {'; '.join(clauses)}.",
        why=why,
        evidence=[
            Evidence.of(
                state,
                f"{member.member_id}: subscribed to {member.pattern or _some(member.subscribed or ())}, "
                f"assigned {_some(member.assigned or ())}",
            )
            for member in idle[:MOST_EVIDENCE]
        ],
        remedies=remedies,
        members=sorted(person_of(member) for member in idle),
        check=describing(case, "--members"),
    )


def _fewer_or_more(case: Case, topic: str, surplus: int, by_topic: bool) -> list[Remedy]:
    remedies = [Remedy("Run fewer members, if they are not meant as spare ones.")]
    if by_topic:
        text = (
            "Or use cooperative-sticky instead of range: it deals out the partitions of all topics together."
        )
        return [*remedies, Remedy(text + " Topics that are joined partition by partition need range.")]
    enough = len(case.cluster.topics[topic]) + surplus
    words = ("--alter", "--topic", topic, "--partitions", enough)
    return [
        *remedies,
        Remedy(
            "Or, only if nothing depends on which partition a key goes to, add partitions. That cannot be "
            "undone: records of one key will be in two partitions, out of order, and whoever joins this "
            "topic with another one needs the same number in both.",
            commands.kafka("kafka-topics", case.cluster, *words),
        ),
    ]


def _subscribed(members: Sequence[Member]) -> list[str]:
    return sorted({topic for member in members for topic in member.subscribed or ()})


def _some(things: Sequence[object]) -> str:
    return first_of(things, _MOST_TOPICS) or "nothing"


RULE = Rule.of(
    __name__,
    judge,
    Presentation("has members that read nothing", "have members that read nothing"),
    of_share_groups=True,
    asked_for=Sign.NOT_DESCRIBED | Sign.MEMBERS,
)
