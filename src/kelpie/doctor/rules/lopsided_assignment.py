"""KLP208 lopsided-assignment

What it sees: members of a stable group have very different numbers of partitions,
though they could be dealt out more evenly.

Why it matters: the group is as fast as its most loaded member. That one lags, or
its poll() comes late, while others have little to do; adding members does not
help.

How it decides: the group is Stable, one member has at least two partitions more than
another and at least half as many again as a fair share. The fair share is what the
most loaded member would have in the most even assignment that the subscriptions
allow: a topic that only one member subscribes to is that member's alone. The range
assignor is lopsided by design: it deals out each topic on its own, always beginning
with the same members, so that what does not divide evenly piles up on the first
ones. Share groups, applications of Kafka Streams (which balance tasks and keep state
where it is) and workers of Kafka Connect are not judged.

What it needs: the right to describe the group. Where the description has no
subscriptions (Kafka's own tools do not print them) it is undetermined; also for a
group of cooperative-sticky while a partition is assigned to nobody: its members give
partitions up in one rebalance and get them in the next.

What to do: with many topics, use cooperative-sticky or roundrobin instead of
range, which deal out all partitions together; or give the topics a number of
partitions that the number of members divides.

When it is wrong: an assignor of one's own that weighs partitions; topics of which
only some carry load; co-partitioned topics, which need range.

Reproduce: kelpie lab run lopsided-assignment
"""

from collections import Counter

from kelpie.doctor.balance import MUCH, fair_share, is_lopsided, is_uneven, load
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.membership import describing, person_of, shortened
from kelpie.doctor.position_words import SECOND_LOOK
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import Sign
from kelpie.model.words import counted
from kelpie.observations import GroupState, Member

_STEEP = 2.0
_MOST = 8
_MOST_TOPICS = 4
KNOWN = ("range", "roundrobin", "sticky", "cooperative-sticky", "uniform", "")


def judge(case: Case) -> Judgement:
    state = case.described
    if state is None:
        return undetermined("the members of the group and what they are assigned")
    if state.state != "Stable" or state.protocol_type not in ("consumer", "") or len(state.members) < 2:
        return ABSENT
    if state.protocol not in KNOWN:
        return ABSENT  # An assignor of their own may weigh partitions.
    if any(member.assigned is None or member.subscribed is None for member in state.members):
        return undetermined("what its members subscribe to and are assigned")
    if not is_uneven(state):
        return ABSENT
    if state.protocol == "cooperative-sticky" and _is_under_way(case, state):
        return undetermined(SECOND_LOOK)
    fair = fair_share(state)
    if fair is None:
        return undetermined(
            "how evenly so many topics could be dealt out to members of different subscriptions"
        )
    return _found(case, state, fair) if is_lopsided(state) else ABSENT


def _is_under_way(case: Case, state: GroupState) -> bool:
    """Cooperative members first give partitions up; a second rebalance, right after, assigns them."""
    assigned = {name for member in state.members for name in member.assigned or ()}
    topics = {topic for member in state.members for topic in member.subscribed or ()}
    return any(name not in assigned for topic in topics for name in case.cluster.topics.get(topic, ()))


def _found(case: Case, state: GroupState, fair: int) -> Finding:
    ordered = sorted(state.members, key=lambda member: -load(member))
    first, last = ordered[0], ordered[-1]
    return RULE.finding(
        Severity.WARNING if load(first) >= _STEEP * fair else Severity.NOTICE,
        case.group,
        f"In group {case.group}, the assignment is lopsided: {person_of(first)} has "
        f"{counted(load(first), 'partition')}, {person_of(last)} has {load(last)}; {fair} would be fair."
        f"{_how(state, first)}",
        why="The group is as fast as its most loaded member, however many members it has.",
        evidence=[Evidence.of(state, _described(member)) for member in shortened(ordered, _MOST)],
        remedies=_remedies(state),
        members=[person_of(member) for member in ordered if load(member) >= MUCH * fair],
        check=describing(case, "--members"),
    )


def _how(state: GroupState, most: Member) -> str:
    topics = len({name.topic for name in most.assigned or ()})
    if state.protocol == "range" and topics > 1:
        return (
            f" The range assignor deals out each of the {topics} topics on its own, and begins with the same "
            "members each time."
        )
    return f" The assignor is {state.protocol}." if state.protocol else ""


def _described(member: Member) -> str:
    counts = Counter(name.topic for name in member.assigned or ())
    per_topic = ", ".join(f"{topic} {count}" for topic, count in counts.most_common(_MOST_TOPICS))
    more = f", {len(counts) - _MOST_TOPICS:d} more topics" if len(counts) > _MOST_TOPICS else ""
    detail = f" ({per_topic}{more})" if counts else ""
    return f"{member.member_id}: {counted(load(member), 'partition')}{detail}"


def _remedies(state: GroupState) -> list[Remedy]:
    if state.protocol == "range":
        return [
            Remedy(
                "Use another assignor, in two deployments: first partition.assignment.strategy="
                "cooperative-sticky,range on all members, then cooperative-sticky alone."
            ),
            Remedy("Or make the number of partitions of each topic a multiple of the number of members."),
        ]
    return [
        Remedy("Restart the members one by one: the assignor begins anew."),
        Remedy("If it stays so, look at what the leader's log says of the assignment."),
    ]


RULE = Rule.of(
    __name__,
    judge,
    Presentation("has a lopsided assignment", "have lopsided assignments"),
    asked_for=Sign.NOT_DESCRIBED | Sign.MEMBERS,
)
