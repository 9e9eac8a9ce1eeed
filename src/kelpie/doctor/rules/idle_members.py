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
from typing import NamedTuple

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.membership import people, person_of
from kelpie.doctor.position_words import tool
from kelpie.doctor.rule import Rule
from kelpie.model.quoting import quoted
from kelpie.model.words import counted, listed
from kelpie.observations import GroupState, Member

_MOST_TOPICS = 5


class Idle(NamedTuple):
    surplus: tuple[Member, ...]
    """More than there are partitions."""
    lost: tuple[Member, ...]
    """Nothing of what they subscribe to is there."""


def judge(case: Case) -> Judgement:
    state = _with_subscriptions(case, case.described)
    if state is None:
        return undetermined("the members of the group and what they are assigned")
    if state.state != "Stable" or not state.members or state.protocol_type not in ("consumer", ""):
        return ABSENT
    empty = [member for member in state.members if _has_nothing(case, member)]
    if any(member.assigned is None for member in state.members) and not empty:
        return undetermined("what its members are assigned")
    if not empty:
        return ABSENT
    if any(member.subscribed is None for member in empty):
        return undetermined("what its members subscribe to")
    if not case.cluster.topics:
        return undetermined("which topics there are")
    idle = _sorted(case, state, empty)
    return _found(case, state, idle) if idle.surplus or idle.lost else ABSENT


def _with_subscriptions(case: Case, state: GroupState | None) -> GroupState | None:
    """Kafka's tools do not print what members subscribe to; records of the offsets topic tell."""
    if state is None or all(member.subscribed is not None for member in state.members):
        return state
    known = {
        member.member_id: member.subscribed
        for generation in case.generations
        for member in generation.members
    }
    return replace(
        state,
        members=tuple(
            member
            if member.subscribed is not None
            else replace(member, subscribed=known.get(member.member_id))
            for member in state.members
        ),
    )


def _has_nothing(case: Case, member: Member) -> bool:
    """Partitions of a topic that was deleted are nothing: clients notice it minutes later."""
    return member.assigned is not None and all(case.is_gone(name) for name in member.assigned)


def _sorted(case: Case, state: GroupState, empty: Sequence[Member]) -> Idle:
    topics = case.cluster.topics
    lost = tuple(member for member in empty if not any(topic in topics for topic in member.subscribed or ()))
    surplus = []
    for member in empty:
        if member in lost:
            continue
        wanted = {topic for topic in member.subscribed or () if topic in topics}
        rivals = [member for member in state.members if wanted & {*(member.subscribed or ())}]
        if sum(len(topics[topic]) for topic in wanted) < len(rivals):
            surplus.append(member)
    return Idle(tuple(surplus), lost)


def _found(case: Case, state: GroupState, idle: Idle) -> Finding:
    told = []
    evidence = []
    if idle.surplus:
        wanted = sorted({topic for member in idle.surplus for topic in member.subscribed or ()})
        count = sum(len(case.cluster.topics.get(topic, ())) for topic in wanted)
        told.append(
            f"{counted(len(idle.surplus), 'member')} of {len(state.members)} got no partition: "
            f"{_some(wanted)} {'has' if len(wanted) == 1 else 'have'} {counted(count, 'partition')}"
        )
    if idle.lost:
        missing = sorted({topic for member in idle.lost for topic in member.subscribed or ()})
        told.append(
            f"{people([person_of(loss) for loss in idle.lost])} subscribed to {_some(missing) or 'nothing'}, "
            "which is not there"
        )
    for member in (*idle.surplus, *idle.lost)[:6]:
        subscribed = _some(member.subscribed or ()) or "nothing"
        assigned = _some([*map(str, member.assigned or ())]) or "nothing"
        evidence.append(
            Evidence(
                f"{member.member_id}: subscribed to {subscribed}, assigned {assigned}",
                state.source,
                state.at,
            )
        )
    return RULE.finding(
        Severity.WARNING if idle.lost else Severity.NOTICE,
        case.group,
        f"In group {case.group}, {'; '.join(told)}.",
        why=_why(idle),
        evidence=evidence,
        remedies=_remedies(case, idle),
        members=sorted(person_of(member) for member in (*idle.surplus, *idle.lost)),
    )


def _why(idle: Idle) -> str:
    if not idle.surplus:
        return "A topic that was deleted, or was never there, is no error to a consumer: it waits for it."
    return "A partition is read by one member of a group at a time: members beyond that number stand by."


def _remedies(case: Case, idle: Idle) -> list[Remedy]:
    remedies = []
    if idle.surplus:
        topic = next(
            topic for topic in sorted(idle.surplus[0].subscribed or ()) if topic in case.cluster.topics
        )
        have = len(case.cluster.topics[topic])
        remedies.append(Remedy("Run fewer members, if they are not meant as spare ones."))
        remedies.append(
            Remedy(
                "Or add partitions (records with the same key may go to another one from then on):",
                f"{tool(case.cluster, 'kafka-topics.sh')} --alter --topic {quoted(topic)} --partitions "
                f"{have + len(idle.surplus)}",
            )
        )
    if idle.lost:
        remedies.append(Remedy("Correct the subscription, or create the topic."))
    return remedies


def _some(topics: Sequence[str]) -> str:
    shown = [*topics[:_MOST_TOPICS]]
    if len(topics) > _MOST_TOPICS:
        shown.append(f"{len(topics) - _MOST_TOPICS} more")
    return listed(shown)


RULE = Rule.of(__name__, judge)
