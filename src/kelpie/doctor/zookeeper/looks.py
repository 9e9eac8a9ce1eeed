"""Snapshots of a group's tree, and what stood in two of them.

Every member computes the assignment of the whole group from the same lists: the threads of a topic in order
of their names, and its partitions. So the tree itself says who must own what. One snapshot can catch a
rebalance half way: an owner node that is not written yet, or one that is rolled back a moment later. Every
member that rebalances deletes and writes all its owner nodes. So if registrations and owner nodes are the
same in two snapshots, down to their sessions and times, nobody has rebalanced in between.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kelpie.doctor.case import Case
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import EventKind, OwnerNode, Registration, ZooKeeperGroup
from kelpie.zookeeper.assignment import Threads, assign_all, consumer_of
from kelpie.zookeeper.config import PatternKind, Subscription

LEAST_APART_MS = 2_000
"""Two looks that are nearer to each other may both fall into one rebalance."""
_PLAIN_PATTERN = re.compile(r"(?:[A-Za-z0-9_|-]|\\?\.[*+]?){1,1000}")
_MOST_REPEATS = 3
"""Registrations are written by others. An expression that is not plain may take for ever to be matched."""


@dataclass(frozen=True)
class Look:
    """One snapshot with registrations and owners."""

    row: ZooKeeperGroup
    at: Instant
    owners: Mapping[TopicPartition, OwnerNode]
    expected: Mapping[TopicPartition, str] | None
    """Partition → the thread that must own it. None: a subscription or a number of partitions is unknown."""

    @property
    def registrations(self) -> tuple[Registration, ...]:
        return self.row.registrations or ()

    @property
    def unowned(self) -> tuple[TopicPartition, ...]:
        """Partitions that a member must own, and that have no owner node."""
        return tuple(sorted(name for name in self.expected or () if name not in self.owners))

    @property
    def idle(self) -> Mapping[str, tuple[TopicPartition, ...]]:
        """Members that own nothing, though there are partitions for them: these partitions."""
        busy = {owner.member for owner in self.owners.values()}
        waiting: dict[str, list[TopicPartition]] = {}
        for name, thread in sorted((self.expected or {}).items()):
            waiting.setdefault(consumer_of(thread), []).append(name)
        members = {row.member for row in self.registrations}
        return {
            member: tuple(names)
            for member, names in waiting.items()
            if member in members and member not in busy
        }

    @property
    def contested(self) -> tuple[tuple[TopicPartition, str, OwnerNode], ...]:
        """Partitions owned by another member than the one that must own them: with that one, and the node."""
        return tuple(
            (name, consumer_of(thread), self.owners[name])
            for name, thread in sorted((self.expected or {}).items())
            if name in self.owners and self.owners[name].member != consumer_of(thread)
        )

    @property
    def orphans(self) -> tuple[OwnerNode, ...]:
        """Owner nodes whose member is not registered, or is registered in another session."""
        sessions = {row.member: row.session for row in self.registrations}

        def is_orphan(owner: OwnerNode) -> bool:
            registered = sessions.get(owner.member)
            is_other = None not in (registered, owner.session) and registered != owner.session
            return owner.member not in sessions or is_other

        return tuple(filter(is_orphan, self.owners.values()))

    @property
    def changed_at(self) -> Instant | None:
        """When a member registered itself or claimed a partition last, by the nodes that are there."""
        times = [row.created for row in self.registrations]
        times += [owner.created for owner in self.owners.values()]
        return max((time for time in times if time is not None), default=None)


@dataclass(frozen=True)
class Standing:
    """Consecutive looks between which nobody has rebalanced."""

    first: Look
    last: Look
    is_newest: bool
    """The last look at the group is one of them: so it is now."""

    @property
    def since(self) -> Instant:
        """When the last change before it was made, as far as nodes tell; it has stood so ever since."""
        changed = self.last.changed_at
        return self.first.at if changed is None else min(changed, self.first.at)

    @property
    def until(self) -> Instant | None:
        return None if self.is_newest else self.last.at

    @property
    def length_ms(self) -> int:
        return self.last.at - self.since


def looks(case: Case) -> list[Look]:
    """By time. Snapshots without a time, registrations or owners are left out."""
    return [
        Look(
            row,
            row.at,
            {owner.name: owner for owner in row.owners},
            _expected(case, row),
        )
        for row in case.zookeeper
        if row.at is not None and row.registrations is not None and row.owners is not None
    ]


def standing(case: Case) -> list[Standing]:
    """All stretches of at least two looks that are far enough apart."""
    all_looks = looks(case)
    stretches: list[list[Look]] = []
    for look in all_looks:
        if stretches and _is_unchanged(stretches[-1][-1].row, look.row):
            stretches[-1].append(look)
        else:
            stretches.append([look])
    return [
        Standing(stretch[0], stretch[-1], stretch[-1] is all_looks[-1])
        for stretch in stretches
        if stretch[-1].at - stretch[0].at >= LEAST_APART_MS
    ]


def _is_unchanged(one: ZooKeeperGroup, other: ZooKeeperGroup) -> bool:
    def nodes(row: ZooKeeperGroup) -> tuple[set[tuple[str, int | None]], set[OwnerNode]]:
        return {(each.member, each.session) for each in row.registrations or ()}, set(row.owners or ())

    return nodes(one) == nodes(other)


def _expected(case: Case, row: ZooKeeperGroup) -> Mapping[TopicPartition, str] | None:
    counts = partition_counts(case, row)
    members: dict[str, Threads] = {}
    for registration in row.registrations or ():
        topics = _subscribed(registration, counts)
        if topics is None or any(counts.get(topic) is None for topic in topics):
            return None
        members[registration.member] = topics
    return assign_all(members, {topic: range(count) for topic, count in counts.items() if count is not None})


def _subscribed(registration: Registration, counts: Mapping[str, int | None]) -> Threads | None:
    """Topic → number of threads. None: unknown."""
    if not registration.subscription or registration.pattern not in set(PatternKind):
        return None
    subscription = Subscription(dict(registration.subscription), PatternKind(registration.pattern))
    if subscription.kind is PatternKind.STATIC:
        return subscription.threads
    patterns = list(subscription.threads)
    if len(patterns) != 1 or not _PLAIN_PATTERN.fullmatch(patterns[0]):
        return None
    return subscription.topics(counts) if len(re.findall(r"[*+]", patterns[0])) <= _MOST_REPEATS else None


def partition_counts(case: Case, row: ZooKeeperGroup) -> dict[str, int | None]:
    """Topic → its number of partitions: as brokers or ZooKeeper say, or a member's log.

    Without these, offsets and owner nodes show at least so many. None: these have gaps.
    """
    counts: dict[str, int | None] = {
        topic: len(names) if names[-1].partition == len(names) - 1 else None
        for topic, names in case.cluster.topics.items()
    }
    for event in case.events_of(EventKind.ZK_COMPUTED):
        if event.topic is not None and event.details.get("partitions"):
            counts[event.topic] = len(event.details["partitions"].split(","))
    seen: dict[str, set[int]] = {}
    names = [*(stored.name for stored in row.offsets), *(owner.name for owner in row.owners or ())]
    for name in names:
        seen.setdefault(name.topic, set()).add(name.partition)
    for topic, numbers in seen.items():
        if topic not in counts:
            counts[topic] = len(numbers) if numbers == set(range(len(numbers))) else None
    return counts


def lag_of(case: Case, names: Iterable[TopicPartition]) -> int | None:
    """Records behind the committed offsets of these partitions, as far as offsets and ends are known."""
    offsets = {row.name: row.offset for snapshot in case.zookeeper for row in snapshot.offsets}
    lags = [
        max(0, ends[-1].latest - offsets[name])
        for name in names
        if (ends := case.cluster.ends.get(name)) and name in offsets and ends[-1].latest >= 0
    ]
    return sum(lags) if lags else None
