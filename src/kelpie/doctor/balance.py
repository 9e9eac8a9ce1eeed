"""How evenly a group's partitions could be dealt out, given who subscribes to what."""

from collections import Counter
from collections.abc import Mapping, Sequence

from kelpie.observations import GroupState, Member

MUCH = 1.5
"""A member that has so many times the best possible share has too much."""
_LARGEST = 200_000
"""Members times partitions. Beyond that, only groups in which all subscribe to the same are computed."""


def load(member: Member) -> int:
    return len(member.assigned or ())


def is_uneven(state: GroupState) -> bool:
    """Whether one member has two partitions more than another, and half as many again as the average."""
    loads = sorted(map(load, state.members))
    return bool(loads) and loads[-1] - loads[0] >= 2 and loads[-1] >= MUCH * _average(state)


def is_lopsided(state: GroupState) -> bool:
    """Whether it is uneven, and could be dealt out more evenly."""
    best = fair_share(state) if is_uneven(state) else None
    return best is not None and max(map(load, state.members)) >= MUCH * best


def _average(state: GroupState) -> int:
    return -(-sum(map(load, state.members)) // len(state.members))


def fair_share(state: GroupState) -> int | None:
    """The smallest number of partitions that the most loaded member could have.

    Partitions of topics count as assigned now. None: the group is too large to be computed.
    """
    partitions = Counter(name.topic for member in state.members for name in member.assigned or ())
    members, even = len(state.members), _average(state)
    if _is_uniform(state):
        return even
    if members * sum(partitions.values()) > _LARGEST:
        return None
    readers = {
        topic: [at for at, member in enumerate(state.members) if _reads(member, topic)]
        for topic in partitions
    }
    low, high = even, max(map(load, state.members))
    while low < high:
        middle = (low + high) // 2
        if _fits(partitions, readers, members, middle):
            high = middle
        else:
            low = middle + 1
    return low


def _is_uniform(state: GroupState) -> bool:
    return len({(frozenset(member.subscribed or ()), member.pattern) for member in state.members}) == 1


def _reads(member: Member, topic: str) -> bool:
    return topic in (member.subscribed or ()) or any(name.topic == topic for name in member.assigned or ())


def _fits(
    partitions: Mapping[str, int], readers: Mapping[str, Sequence[int]], members: int, most: int
) -> bool:
    """Whether all partitions find a reader that has no more than `most`: a flow from topics to members."""
    given: dict[int, Counter[str]] = {at: Counter() for at in range(members)}
    loads = [0] * members
    for topic, count in partitions.items():
        for _ in range(count):
            if not _place(topic, readers, given, loads, most):
                return False
    return True


def _place(
    topic: str,
    readers: Mapping[str, Sequence[int]],
    given: dict[int, Counter[str]],
    loads: list[int],
    most: int,
) -> bool:
    """Gives one partition of the topic to a reader, moving others out of the way where that helps."""
    came_from: dict[int, tuple[int, str]] = {}
    waiting = [(at, topic, -1) for at in readers[topic]]
    while waiting:
        at, moved, before = waiting.pop()
        if at in came_from:
            continue
        came_from[at] = (before, moved)
        if loads[at] < most:
            loads[at] += 1
            while at >= 0:
                before, moved = came_from[at]
                given[at][moved] += 1
                if before >= 0:
                    given[before][moved] -= 1
                at = before
            return True
        for other, count in given[at].items():
            if count:
                waiting += [(reader, other, at) for reader in readers[other] if reader not in came_from]
    return False
