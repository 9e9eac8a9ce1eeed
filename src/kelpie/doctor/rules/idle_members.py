"""KLP207 idle-members

What it sees: members of a stable group that have no partition at all: there are
more members than partitions, or what they subscribe to does not exist (any more).

Why it matters: idle members do no harm, but no work either: more of them do not
make the group faster. A member that subscribes to a topic that is not there reads
nothing, without an error.

How it decides: the group is Stable, a member's assignment is empty, and the topics
that it subscribes to have fewer partitions than members that want them, or none.
If there are partitions enough, the assignment is lopsided, which is KLP208.

What to do: add partitions, or run fewer members. If a subscribed topic is missing,
correct its name or create it.

When it is wrong: members that are meant as spare ones.

Reproduce: kelpie lab run idle-members
"""

from collections.abc import Sequence
from dataclasses import replace

from kelpie.cluster import commands
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.membership import MOST_EVIDENCE, people, person_of
from kelpie.doctor.rule import Rule
from kelpie.model.words import counted, first_of
from kelpie.observations import GroupState, Member

_MOST_TOPICS = 5


def judge(case: Case) -> Judgement:
    state = _with_subscriptions(case, case.described)
    if state is None:
        return undetermined("the members of the group and what they are assigned")
    if state.state != "Stable" or not state.members or state.protocol_type not in ("consumer", ""):
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
    lost = [member for member in idle if not _topics(case, member)]
    surplus = [member for member in idle if member not in lost and _is_surplus(case, state, member)]
    return _found(case, state, surplus, lost) if surplus or lost else ABSENT


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
    return replace(state, members=tuple(members))


def _has_nothing(case: Case, member: Member) -> bool:
    """Partitions of a topic that was deleted are nothing: clients notice it minutes later."""
    return member.assigned is not None and all(case.is_gone(name) for name in member.assigned)


def _topics(case: Case, member: Member) -> set[str]:
    """What it subscribes to and is there."""
    return {topic for topic in member.subscribed or () if topic in case.cluster.topics}


def _is_surplus(case: Case, state: GroupState, member: Member) -> bool:
    """Whether more members want its topics than these have partitions."""
    wanted = _topics(case, member)
    rivals = [other for other in state.members if wanted & {*(other.subscribed or ())}]
    return sum(len(case.cluster.topics[topic]) for topic in wanted) < len(rivals)


def _found(case: Case, state: GroupState, surplus: Sequence[Member], lost: Sequence[Member]) -> Finding:
    clauses, remedies = [], []
    why = "A topic that was deleted, or was never there, is no error to a consumer: it waits for it."
    if surplus:
        why = "A partition is read by one member of a group at a time: members beyond that number stand by."
        wanted = _subscribed(surplus)
        count = sum(len(case.cluster.topics.get(topic, ())) for topic in wanted)
        clauses.append(
            f"{counted(len(surplus), 'member')} of {len(state.members)} got no partition: "
            f"{_some(wanted)} {'has' if len(wanted) == 1 else 'have'} {counted(count, 'partition')}"
        )
        topic = min(_topics(case, surplus[0]))
        enough = len(case.cluster.topics[topic]) + len(surplus)
        words = ("--alter", "--topic", topic, "--partitions", enough)
        remedies = [
            Remedy("Run fewer members, if they are not meant as spare ones."),
            Remedy(
                "Or add partitions (records with the same key may go to another one from then on):",
                commands.kafka("kafka-topics", case.cluster, *words),
            ),
        ]
    if lost:
        who = people([person_of(member) for member in lost])
        clauses.append(f"{who} subscribed to {_some(_subscribed(lost))}, which is not there")
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
                f"{member.member_id}: subscribed to {_some(member.subscribed or ())}, "
                f"assigned {_some(member.assigned or ())}",
            )
            for member in idle[:MOST_EVIDENCE]
        ],
        remedies=remedies,
        members=sorted(person_of(member) for member in idle),
    )


def _subscribed(members: Sequence[Member]) -> list[str]:
    return sorted({topic for member in members for topic in member.subscribed or ()})


def _some(things: Sequence[object]) -> str:
    return first_of(things, _MOST_TOPICS) or "nothing"


RULE = Rule.of(__name__, judge)
