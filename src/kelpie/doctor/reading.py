"""What a group reads, and who is there to read it: worked out of a case, for the rules on positions."""

from collections.abc import Iterable
from dataclasses import dataclass

from kelpie.doctor.case import Case
from kelpie.doctor.finding import Severity
from kelpie.doctor.once import once
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.observations import OFFSETS_TOPIC, Committed, GroupState, Member

REBALANCING = frozenset(
    {"PreparingRebalance", "CompletingRebalance", "AwaitingSync", "Assigning", "Reconciling"}
)


@dataclass(frozen=True, slots=True)
class Reading:
    """The partitions of a group."""

    partitions: tuple[TopicPartition, ...]
    """Assigned to a member, of a topic that somebody subscribes to, or, with nobody there, committed."""
    abandoned: tuple[TopicPartition, ...]
    """Committed once, of topics to which nobody in the group subscribes any more. No alarm is due."""
    assigned: frozenset[TopicPartition]


def described(case: Case) -> GroupState | None:
    """The newest description that is one."""
    return next((state for state in reversed(case.states) if state.error is ErrorCode.NONE), None)


def members(case: Case) -> tuple[Member, ...] | None:
    """Who is in the group, as last described, or by its last generation on disk. None: nobody knows."""
    state = described(case)
    if state is not None:
        return state.members
    return case.generations[-1].members if case.generations else None


def is_rebalancing(case: Case) -> bool:
    state = described(case)
    return state is not None and state.state in REBALANCING


def is_cut_off(case: Case) -> bool:
    """Whether nobody can commit for want of a coordinator: then KLP101 or KLP105 says why nothing moves."""
    partition = case.offsets_partition
    view = case.cluster.view(partition) if partition is not None else None
    if partition is None or view is None:
        return False
    broker = case.cluster.brokers.get(view.leader)
    unreachable = broker is not None and broker.alive is None and bool(broker.reason)
    return unreachable or case.cluster.has_leader(partition) is False


def offsets_were_told(case: Case) -> bool:
    """Whether the coordinator said what is committed, so that what it left out is not there."""
    newest = next((answer for answer in reversed(case.answers) if answer.asked == "OffsetFetch"), None)
    if newest is not None:
        return newest.error is ErrorCode.NONE
    return bool(case.committed_over_time) or any(row.at is not None for row in case.committed.values())


def has_offset(case: Case, name: TopicPartition) -> bool:
    row = case.committed.get(name)
    return row is not None and (row.offset >= 0 or row.error != 0)


def committed_rows(case: Case) -> list[Committed]:
    """The committed offsets that are there, of topics that are there."""
    return [
        row
        for name, row in sorted(case.committed.items())
        if row.offset >= 0 and not row.error and not is_gone(case, name)
    ]


def is_gone(case: Case, name: TopicPartition) -> bool:
    """Whether brokers listed their topics, and this is none of them: it was deleted."""
    return case.cluster.topics_were_listed and name.topic not in case.cluster.topics


def severity(case: Case, names: Iterable[TopicPartition]) -> Severity:
    """Of something that costs the group records: it is worst while somebody is there to read them."""
    abandoned = set(reading(case).abandoned)
    if all(name in abandoned for name in names):
        return Severity.NOTICE
    return Severity.CRITICAL if members(case) else Severity.WARNING


@once
def reading(case: Case) -> Reading:
    there = members(case) or ()
    committed = [name for name in case.committed if has_offset(case, name) and not is_gone(case, name)]
    assigned = frozenset(
        name for member in there for name in member.assigned or () if not is_gone(case, name)
    )
    topics = {topic for member in there for topic in member.subscribed or ()}
    topics |= {name.topic for name in assigned}
    if not topics:
        return Reading(_ordered(committed), (), assigned)
    read = {name for topic in topics for name in case.cluster.topics.get(topic, ())} | assigned
    read |= {name for name in committed if name.topic in topics}
    return Reading(_ordered(read), _ordered(name for name in committed if name.topic not in topics), assigned)


def _ordered(names: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
    return tuple(sorted(name for name in set(names) if name.topic != OFFSETS_TOPIC))
