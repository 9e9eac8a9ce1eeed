"""The target of both sticky assignors: as even as possible, with as few moves as that allows.

When all members read the same topics, each of C members gets P ÷ C of the P partitions, and P mod C of them
get one more. Members that own more than P ÷ C already get the one more: this moves the fewest partitions.

When subscriptions differ, partitions are shifted until the shares are even. A shift goes along a chain of
members, each of which hands one partition on to the next; the first has at least two more than the last. Each
shift makes the sum of the squares of the shares smaller, so the shifts end; then no other assignment is more
even (an optimal semi-matching).

Kafka's general assignor tries single moves only, so it may end less even; and where there is a choice, its
choice depends on the order in Java's hash maps. These assignors keep Kafka's promises, not its every choice.
"""

from collections import defaultdict, deque
from collections.abc import Sequence

from kelpie.assignors.claims import Claims
from kelpie.assignors.members import MemberSubscription, PartitionCounts, Plan, java_order, subscribers
from kelpie.model.names import TopicPartition


def target(members: Sequence[MemberSubscription], counts: PartitionCounts, claims: Claims) -> Plan:
    ordered = sorted(members, key=lambda member: java_order(member.member_id))
    readers = {
        topic: [reader.member_id for reader in reading]
        for topic, reading in subscribers(ordered, counts).items()
    }
    kept: Plan = {member.member_id: [] for member in ordered}
    for partition, owner in claims.owner.items():
        kept[owner].append(partition)
    for partitions in kept.values():
        partitions.sort(key=_place)
    if len({frozenset(member.topics) for member in members}) <= 1:
        plan = _equal(kept, readers, counts)
    else:
        plan = _Shifting(kept, readers, counts, claims).plan()
    for partitions in plan.values():
        partitions.sort(key=_place)
    return plan


def _place(partition: TopicPartition) -> tuple[bytes, int]:
    return java_order(partition.topic), partition.partition


def _unassigned(kept: Plan, readers: dict[str, list[str]], counts: PartitionCounts) -> list[TopicPartition]:
    taken = {partition for partitions in kept.values() for partition in partitions}
    everything = (TopicPartition(topic, number) for topic in readers for number in range(counts[topic]))
    return [partition for partition in everything if partition not in taken]


def _equal(kept: Plan, readers: dict[str, list[str]], counts: PartitionCounts) -> Plan:
    if not kept:
        return kept
    total = sum(counts[topic] for topic in readers)
    share, extra = divmod(total, len(kept))
    for partitions in kept.values():
        if len(partitions) > share:
            del partitions[share + (extra > 0) :]
            extra -= extra > 0
    below = deque(member_id for member_id, partitions in kept.items() if len(partitions) < share)
    at_share = deque(member_id for member_id, partitions in kept.items() if len(partitions) == share)
    for partition in _unassigned(kept, readers, counts):
        if below:
            member_id = below.popleft()
            kept[member_id].append(partition)
            (below if len(kept[member_id]) < share else at_share).append(member_id)
        else:
            kept[at_share.popleft()].append(partition)
    return kept


class _Shifting:
    """Subscriptions differ. Partitions of a topic are alike, so chains are looked for by topic."""

    def __init__(
        self, kept: Plan, readers: dict[str, list[str]], counts: PartitionCounts, claims: Claims
    ) -> None:
        self._readers = readers
        self._owner = claims.owner
        self._held: dict[str, defaultdict[str, list[TopicPartition]]] = {}
        self._load = {member_id: len(partitions) for member_id, partitions in kept.items()}
        for member_id, partitions in kept.items():
            held = self._held[member_id] = defaultdict(list)
            for partition in partitions:
                held[partition.topic].append(partition)
        left = _unassigned(kept, readers, counts)
        left.sort(key=lambda partition: (len(readers[partition.topic]), _place(partition)))
        for partition in left:
            self._take(min(readers[partition.topic], key=self._load.__getitem__), partition)

    def plan(self) -> Plan:
        while any(self._shift(giver) for giver in sorted(self._load, key=self._load.__getitem__)[::-1]):
            pass
        return {
            member_id: [partition for partitions in held.values() for partition in partitions]
            for member_id, held in self._held.items()
        }

    def _shift(self, giver: str) -> bool:
        """Hand on one partition along a chain that makes the shares more even, if there is one.

        It chooses the chain that takes the fewest partitions from members that have owned them so far.
        """
        previous: dict[str, tuple[str, str]] = {}
        cost = {giver: 0}
        queue = deque([(0, giver)])
        while queue:
            paid, member_id = queue.popleft()
            if paid > cost[member_id]:
                continue  # A cheaper chain has led here since.
            if self._load[member_id] <= self._load[giver] - 2:
                self._hand_on(giver, member_id, previous)
                return True
            for topic, held in self._held[member_id].items():
                for reader in self._readers[topic] if held else ():
                    dear = all(self._own(partition, member_id) for partition in held)
                    if paid + dear < cost.get(reader, paid + 2):
                        cost[reader] = paid + dear
                        previous[reader] = (member_id, topic)
                        (queue.append if dear else queue.appendleft)((paid + dear, reader))
        return False

    def _hand_on(self, giver: str, taker: str, previous: dict[str, tuple[str, str]]) -> None:
        while taker != giver:
            member_id, topic = previous[taker]
            held = self._held[member_id][topic]
            # A partition that returns to its owner goes first, then one that this member did not own.
            at = min(
                range(len(held)),
                key=lambda at: (self._owner.get(held[at]) != taker, self._own(held[at], member_id)),
            )
            partition = held.pop(at)
            self._load[member_id] -= 1
            self._take(taker, partition)
            taker = member_id

    def _own(self, partition: TopicPartition, member_id: str) -> bool:
        return self._owner.get(partition) == member_id

    def _take(self, member_id: str, partition: TopicPartition) -> None:
        self._held[member_id][partition.topic].append(partition)
        self._load[member_id] += 1
