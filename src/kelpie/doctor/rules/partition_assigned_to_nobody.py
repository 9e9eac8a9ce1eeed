"""KLP211 partition-assigned-to-nobody

What it sees: a partition of a topic that members of a stable group subscribe to, and
that no member is assigned.

Why it matters: nobody reads it, without an error anywhere. The group looks healthy,
and its lag in this partition grows. Tools that show lag by member do not show it.

How it decides: two surveys, at least 6 min apart, described the group as Stable with
the same partition assigned to nobody, no survey in between saw it otherwise, and the
partition was there at the first of them. Consumers see new partitions when they
refresh what they know of topics, 5 min at most unless set otherwise
(metadata.max.age.ms): partitions that were just added are ordinary. Critical if the
group has committed there before, and records wait; else a warning. Topics that the
caller sees and members do not subscribe to by name (regular expressions) are left
out. Share groups, applications of Kafka Streams (which have tasks) and workers of
Kafka Connect are not judged.

What it needs: the right to describe the group and its topics, and a second survey
(--watch, or run it again). Without it, it is undetermined.

What to do: restart the member that leads the group, or any member: the next
rebalance deals out all partitions. If it comes back, look at the assignor that the
application brings along, at metadata.max.age.ms, and at whether the members may
describe the topic.

When it is wrong: an assignor that leaves partitions out on purpose.

Reproduce: kelpie lab run partition-assigned-to-nobody
"""

from collections.abc import Sequence

from kelpie.cluster.view import ONE_SURVEY_MS
from kelpie.doctor import position_words as words
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.membership import NEW_PARTITIONS_MS, describing
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import Sign
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.model.words import counted, duration
from kelpie.observations import OFFSETS_TOPIC, GroupState
from kelpie.observations.groups import CLASSIC, CONSUMER
from kelpie.observations.positions import NO_OFFSET


def judge(case: Case) -> Judgement:
    state = case.described
    if state is None:
        return undetermined("the members of the group and what they are assigned")
    if not _is_judged(state):
        return ABSENT
    if any(member.assigned is None or member.subscribed is None for member in state.members):
        return undetermined("what its members subscribe to and are assigned")
    left_out = _left_out(case, state)
    if not left_out:
        return ABSENT
    since = {name: _since(case, name) for name in left_out}
    long_ago = case.cluster.now - NEW_PARTITIONS_MS
    lasting = [name for name, at in since.items() if at is not None and at <= long_ago]
    if lasting:
        return _found(case, state, lasting, min(at for at in since.values() if at is not None))
    return undetermined(
        f"whether {words.some(left_out)} {'gets' if len(left_out) == 1 else 'get'} a member: partitions that "
        f"were just added are seen within 5 min; run the doctor again {duration(NEW_PARTITIONS_MS)} later"
    )


def _is_judged(state: GroupState) -> bool:
    return (
        state.state == "Stable"
        and bool(state.members)
        and state.kind in (CLASSIC, CONSUMER)
        and state.protocol_type in ("consumer", "")
        and not state.is_streams
    )


def _left_out(case: Case, state: GroupState) -> list[TopicPartition]:
    """Partitions of topics that members subscribe to by name, and that no member has."""
    topics = {topic for member in state.members for topic in member.subscribed or ()} - {OFFSETS_TOPIC}
    wanted = {name for topic in topics for name in case.cluster.topics.get(topic, ())}
    for member in state.members:
        wanted.difference_update(member.assigned or ())
    return sorted(name for name in wanted if not case.is_gone(name))


def _since(case: Case, name: TopicPartition) -> Instant | None:
    """The first look since which each saw the group stable, and the partition there without a member."""
    seen = [
        end.at
        for end in case.cluster.ends_over_time(name)
        if end.at is not None and end.earliest != NO_OFFSET
    ]
    first: Instant | None = None
    for state in reversed(case.states):
        if not _lacks(state, name) or state.at is None:
            break
        if any(at <= state.at + ONE_SURVEY_MS for at in seen):
            first = state.at
    return first


def _lacks(state: GroupState, name: TopicPartition) -> bool:
    return (
        _is_judged(state)
        and any(name.topic in (member.subscribed or ()) for member in state.members)
        and all(member.assigned is not None and name not in member.assigned for member in state.members)
    )


def _found(case: Case, state: GroupState, names: Sequence[TopicPartition], since: Instant) -> Finding:
    tracks = [case.track(name) for name in names]
    waiting = sum(track.lag or 0 for track in tracks if track.offset >= 0)
    lag = f"; {words.records(waiting)} wait there" if waiting else ""
    evidence = [Evidence.of(state, f"group is Stable with {counted(len(state.members), 'member')}")]
    for track in tracks[: words.MOST_EVIDENCE // 3]:
        evidence += words.evidence_of(*track.points[-1:], track.end, name=track.name)
    return RULE.finding(
        Severity.CRITICAL if waiting else Severity.WARNING,
        case.group,
        f"In group {case.group}, no member is assigned {words.some(names)}, which it subscribes to, for "
        f"{duration(case.cluster.now - since)} at least{lag}.",
        why="The group is stable, so nothing will change by itself: nobody reads these partitions.",
        evidence=evidence,
        remedies=[
            Remedy("Restart one member: the rebalance that follows deals out all partitions anew."),
            Remedy(
                "If it comes back: look at the assignor that the application brings along, at "
                "metadata.max.age.ms, and at whether the members may describe the topic."
            ),
        ],
        partitions=names,
        members=[member.member_id for member in state.members],
        since=since,
        check=describing(case, "--offsets"),
    )


RULE = Rule.of(
    __name__,
    judge,
    Presentation("has partitions without a member", "have partitions without a member"),
    asked_for=Sign.NOT_DESCRIBED | Sign.MEMBERS,
)
