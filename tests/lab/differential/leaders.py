"""Who leads when Kafka takes anyone.

If the leader has gone, or has not come back, Kafka takes the first member in the order of a hash map, which
is as good as chance. The lab takes the one that came first. To go on comparing, the lab is made to follow the
real broker's choice; only where there is a choice, and only to one of those that may be chosen.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from kelpie.coordinator.classic.group import ClassicGroup
from kelpie.coordinator.classic.member import ClassicMember
from tests.lab.differential.names import first_part

Leaders = dict[tuple[str, int], str]
"""By group and generation: the first part of the leader's member id."""


@contextmanager
def following(leaders: Leaders) -> Iterator[None]:
    """While this lasts, the lab's free choices are those in `leaders`, which may grow meanwhile."""
    remove, elect = ClassicGroup.remove, ClassicGroup.elect_joined_leader
    free: set[str] = set()

    def removed(group: ClassicGroup, member_id: str) -> ClassicMember | None:
        led = group.leader == member_id
        gone = remove(group, member_id)
        if led:
            free.add(group.group_id)
        return gone

    def elected(group: ClassicGroup) -> bool:
        if group.leader is None:
            return elect(group)
        may_choose = group.group_id in free or group.members[group.leader].join is None
        wanted = leaders.get((group.group_id, group.generation + 1))
        for member in group.members.values():
            if may_choose and member.join is not None and first_part(member.member_id) == wanted:
                group.leader = member.member_id
        done = elect(group)
        if done:
            free.discard(group.group_id)
        return done

    with (
        patch.object(ClassicGroup, "remove", removed),
        patch.object(ClassicGroup, "elect_joined_leader", elected),
    ):
        yield
