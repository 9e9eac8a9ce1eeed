"""What one look over the rows of a group shows, so that rules are asked only where they may find something.

A rule names the signs without which its judgement is the same for every group: absent, or undetermined for
want of logs. A healthy group has hardly any sign, and no rule looks at it. A sign too many costs time; a
sign that is missing would hide a fault. So in doubt a sign is set: for rows without a time, for another topic
of the same name, for a group of another kind.

What concerns a partition, a topic or an offsets partition is worked out once for all groups.
"""

from collections.abc import Collection
from itertools import pairwise
from typing import NamedTuple

from kelpie.cluster.topics import Existence
from kelpie.cluster.view import ClusterView
from kelpie.doctor.case import REBALANCING as REBALANCING_STATES
from kelpie.doctor.case import Case
from kelpie.doctor.coordinator_replies import FIND_COORDINATOR
from kelpie.doctor.membership import size_limit
from kelpie.doctor.positions import CLOCKS_APART_MS, NOISE
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.observations import OFFSETS_TOPIC, Commit, Committed, GroupState
from kelpie.observations.groups import CLASSIC
from kelpie.observations.positions import NO_OFFSET

FEWEST_IN_A_STORM = 8
"""Generations; KLP201 looks at no fewer."""


class Sign:
    """Bits. A sign is also set where the rows do not exclude it."""

    LOG_LINES = 1 << 0
    """Lines of logs name the group."""
    # Its coordinator.
    HOME_IN_DOUBT = 1 << 1
    """Its offsets partition has, or had, no leader, or brokers differ about it, or logs tell of it."""
    LOOKED_UP = 1 << 2
    """Brokers were asked who its coordinator is."""
    REFUSED = 1 << 3
    """The coordinator answered with an error."""
    NO_REPLY = 1 << 4
    # Its members.
    NOT_DESCRIBED = 1 << 5
    MEMBERS = 1 << 6
    """It has members, or had some."""
    MEMBERS_UNKNOWN = 1 << 7
    REBALANCING = 1 << 8
    """Now, or at an earlier look."""
    MANY_GENERATIONS = 1 << 9
    NO_HISTORY = 1 << 10
    """The offsets topic was not read."""
    NOT_CLASSIC = 1 << 11
    SETTINGS = 1 << 12
    """Settings of its consumers are known."""
    SIZE_LIMIT = 1 << 13
    """It has as many members as the brokers allow, or how many they allow is not known."""
    # What it reads.
    NOTHING_READ = 1 << 14
    NOT_TRACKED = 1 << 15
    """Members read a partition in which nothing is committed."""
    UNCOMMITTED = 1 << 16
    """A partition of a topic that it reads has no committed offset."""
    OFFSETS_UNKNOWN = 1 << 17
    NO_OFFSETS = 1 << 18
    OFFSET_REFUSED = 1 << 19
    """The coordinator told an error in place of an offset, or that an offset was removed."""
    UNTOLD_OFFSET = 1 << 20
    """Commits or earlier looks have an offset that the coordinator does not tell now."""
    TOPIC_IN_DOUBT = 1 << 21
    """A topic is gone, hidden, or not known."""
    ANOTHER_TOPIC = 1 << 22
    """A commit is of an earlier topic of the same name, or the topic was created again."""
    TOPIC_UNPROVEN = 1 << 23
    """Nothing tells in which of two topics of the same name an offset was committed."""
    LEADERLESS = 1 << 24
    """A partition that it reads has no living leader, or nobody knows."""
    # Where it stands.
    BEHIND = 1 << 25
    HELD_BACK = 1 << 26
    """The last stable offset of a partition is before its end, or unknown."""
    NO_ENDS = 1 << 27
    """Where a log begins or ends is not known."""
    BELOW_START = 1 << 28
    BEYOND_END = 1 << 29
    MOVED_BACK = 1 << 30
    REMOVED = 1 << 31
    """The history has a removed offset."""
    EPOCH_DIFFERS = 1 << 32
    """A commit was made in another leader epoch than the present one."""
    NO_EPOCH = 1 << 33
    """A commit carries no leader epoch."""


ALL = (1 << 34) - 1
POSITION_OPEN = (
    Sign.BEHIND
    | Sign.NO_ENDS
    | Sign.NOTHING_READ
    | Sign.NOT_TRACKED
    | Sign.OFFSET_REFUSED
    | Sign.ANOTHER_TOPIC
)
"""Without these, the group has read everything in each partition that it reads."""

_NONE = 0
_ANYWHERE = Sign.BEHIND | Sign.MOVED_BACK
"""Where the group stands does not follow from its newest rows alone."""
_IN_ANOTHER_TOPIC = Sign.ANOTHER_TOPIC | _ANYWHERE


class _Partition(NamedTuple):
    """What is the same for all groups that read a partition."""

    signs: int
    start: int
    latest: int
    epoch: int
    topic_id: str
    is_topic_proven: bool
    """Looks at different times saw the topic, or nobody asks for topics."""
    is_gone: bool


class Glances:
    """One cluster; `at` is asked for each of its groups."""

    def __init__(self, cluster: ClusterView) -> None:
        self._cluster = cluster
        self._partitions: dict[TopicPartition, _Partition] = {}
        self._topics: dict[str, frozenset[TopicPartition]] = {}
        self._homes: dict[TopicPartition | None, int] = {}
        self._limits: dict[tuple[str, int], int] = {}
        self._with_settings = {of for of, _ in cluster.settings if of.startswith("group ")}
        self._always = Sign.SETTINGS if ("broker", "session.timeout.ms") in cluster.settings else _NONE

    def at(self, case: Case) -> int:
        """All signs of a group."""
        if case.in_zookeeper or case.is_share:
            return ALL
        signs = self._always | self._home(case) | self._replies(case) | self._membership(case)
        if case.events:
            signs |= Sign.LOG_LINES
        if not case.offsets_are_known:
            signs |= Sign.OFFSETS_UNKNOWN
        if self._with_settings and f"group {case.group}" in self._with_settings:
            signs |= Sign.SETTINGS
        return signs | self._positions(case)

    # Coordinators and members.

    def _home(self, case: Case) -> int:
        home = case.offsets_partition
        known = self._homes.get(home)
        if known is None:
            known = self._homes[home] = Sign.HOME_IN_DOUBT if self._is_in_doubt(home) else _NONE
        return known

    def _is_in_doubt(self, home: TopicPartition | None) -> bool:
        cluster = self._cluster
        view = cluster.view(home) if home is not None else None
        if home is None or view is None or not cluster.has_leader(home) or home in cluster.partition_events:
            return True
        living = [each for each in cluster.views.get(home, ()) if each.told_by is not None]
        return (
            len({each.leader for each in living}) > 1
            or any(each.leader < 0 for each in cluster.earlier_views.get(home, ()))
            or any(cluster.outages.get(node) for node in view.replicas)
        )

    @staticmethod
    def _replies(case: Case) -> int:
        signs = _NONE
        replies = len(case.states)
        for answer in case.answers:
            if answer.asked == FIND_COORDINATOR:
                signs |= Sign.LOOKED_UP
            else:
                replies += 1
            if answer.error is not ErrorCode.NONE:
                signs |= Sign.REFUSED
        return signs if replies else signs | Sign.NO_REPLY

    def _membership(self, case: Case) -> int:
        signs = _NONE
        for state in case.states:
            if state.error is not ErrorCode.NONE:
                signs |= Sign.REFUSED
            if state.members:
                signs |= Sign.MEMBERS
            if state.state in REBALANCING_STATES:
                signs |= Sign.REBALANCING
        described = case.described
        if described is None or not described.is_described:
            signs |= Sign.NOT_DESCRIBED
        elif described.kind != CLASSIC:
            signs |= Sign.NOT_CLASSIC
        if case.members is None:
            signs |= Sign.MEMBERS_UNKNOWN
        if case.generations:
            signs |= Sign.MEMBERS
            if len(case.generations) >= FEWEST_IN_A_STORM:
                signs |= Sign.MANY_GENERATIONS
        if case.history_from is None:
            signs |= Sign.NO_HISTORY
        return signs | self._limit(described)

    def _limit(self, state: GroupState | None) -> int:
        key = (state.kind, state.coordinator) if state is not None else ("", -1)
        limit = self._limits.get(key)
        if limit is None:
            limit = self._limits[key] = size_limit(self._cluster, state)[1] or 0
        return _NONE if (len(state.members) if state is not None else 0) < limit else Sign.SIZE_LIMIT

    # Partitions.

    def _positions(self, case: Case) -> int:
        committed, commits, looks = case.committed, case.commits, case.committed_over_time
        signs = _NONE
        if not commits.keys() <= committed.keys() or not looks.keys() <= committed.keys():
            signs |= Sign.UNTOLD_OFFSET
        is_known = is_read = False
        partitions = self._partitions
        for name, row in committed.items():
            partition = partitions.get(name) or self._partition(name)
            signs |= partition.signs
            if row.error or row.offset < 0:
                is_read = is_read or (row.error != 0 and not partition.is_gone)
                signs |= Sign.OFFSET_REFUSED | Sign.UNCOMMITTED
                continue
            if partition.is_gone:
                continue
            is_known = is_read = True
            signs |= _of_row(row, commits.get(name), looks.get(name), partition)
        if not is_known:
            signs |= Sign.NO_OFFSETS
        if case.members:
            return signs | self._read_by_members(case)
        return signs | (self._read_by_nobody(committed) if is_read else Sign.NOTHING_READ)

    def _read_by_members(self, case: Case) -> int:
        names = case.reads.partitions
        signs = _NONE if names else Sign.NOTHING_READ
        for name in names:
            signs |= (self._partitions.get(name) or self._partition(name)).signs
        if not all(map(case.has_offset, names)):
            signs |= Sign.UNCOMMITTED | Sign.NOT_TRACKED
        topics = {topic for member in case.members or () for topic in member.subscribed or ()}
        topics.update(name.topic for member in case.members or () for name in member.assigned or ())
        if any(map(self._is_topic_in_doubt, topics)):
            signs |= Sign.TOPIC_IN_DOUBT
        return signs

    def _read_by_nobody(self, committed: Collection[TopicPartition]) -> int:
        """Without members, it reads the topics in which it has offsets."""
        for topic in {topic for topic, _ in committed}:
            known = self._topics.get(topic)
            if known is None:
                known = self._topics[topic] = frozenset(self._cluster.topics.get(topic, ()))
            if not known.issubset(committed):
                return Sign.UNCOMMITTED
        return _NONE

    def _partition(self, name: TopicPartition) -> _Partition:
        cluster, topic = self._cluster, name.topic
        ends = cluster.ends_over_time(name)
        end = ends[-1] if ends else None
        starts = (row.earliest for row in reversed(cluster.ends.get(name, ())) if not row.error)
        start = next((earliest for earliest in starts if earliest != NO_OFFSET), None)
        signs = _NONE
        if end is None or start is None:
            signs |= Sign.NO_ENDS
        if end is None or end.stable == NO_OFFSET or end.stable < end.latest:
            signs |= Sign.HELD_BACK
        if not cluster.has_leader(name):
            signs |= Sign.LEADERLESS
        if self._is_topic_in_doubt(topic):
            signs |= Sign.TOPIC_IN_DOUBT
        if topic in cluster.known_topics.recreations:
            signs |= _IN_ANOTHER_TOPIC
        epoch = cluster.newest_epoch(name)
        if epoch < 0:
            signs |= Sign.EPOCH_DIFFERS
        views = cluster.known_topics.views
        times = {row.at for row in views.get(topic, ()) if row.topic_id}
        found = self._partitions[name] = _Partition(
            ALL if topic == OFFSETS_TOPIC else signs,
            start if start is not None else -1,
            end.latest if end is not None else -1,
            epoch,
            cluster.known_topics.id_of(topic),
            len(times) > 1 or not views,
            cluster.is_gone(topic),
        )
        return found

    def _is_topic_in_doubt(self, topic: str) -> bool:
        existence = self._cluster.known_topics.existence(topic)
        if existence is Existence.UNKNOWN:
            return topic not in self._cluster.topics
        return existence is not Existence.EXISTS


def _of_row(
    row: Committed,
    history: tuple[Commit, ...] | None,
    looks: tuple[Committed, ...] | None,
    partition: _Partition,
) -> int:
    """Of a committed offset, with its commits in the offsets topic and what looks saw, each by time."""
    signs, start, latest, epoch_now, topic_id, is_proven, _ = partition
    offset, epoch = row.offset, row.leader_epoch
    lowest = offset
    if history:
        last = history[-1]
        if last.offset == offset:
            is_proven = is_proven or last.leader_epoch >= 0 or bool(last.topic_id)
        elif last.offset < lowest:
            lowest = last.offset
        if last.topic_id != topic_id and last.topic_id and topic_id:
            signs |= _IN_ANOTHER_TOPIC
        if len(history) > 1 or last.at is None or last.offset < 0:
            signs |= _of_history(history)
    if looks:
        newest = looks[-1]
        lowest = min(lowest, newest.offset)
        if looks[0].at is None:
            signs |= _ANYWHERE
        elif len(looks) > 1 and any(later.offset < sooner.offset for sooner, later in pairwise(looks)):
            signs |= Sign.MOVED_BACK
        if history and newest.offset != last.offset and _may_be_back(newest, last):
            signs |= Sign.MOVED_BACK
    if latest - lowest > NOISE:
        signs |= Sign.BEHIND
    if offset > latest:
        signs |= Sign.BEYOND_END
    if offset < start:
        signs |= Sign.BELOW_START
    if epoch < 0:
        signs |= Sign.NO_EPOCH if is_proven else Sign.NO_EPOCH | Sign.TOPIC_UNPROVEN
    elif epoch != epoch_now:
        signs |= Sign.EPOCH_DIFFERS
    return signs


def _of_history(history: tuple[Commit, ...]) -> int:
    signs = _ANYWHERE if history[0].at is None else _NONE
    before = 0
    for row in history:
        offset = row.offset
        if offset < before:
            signs |= _ANYWHERE
            if offset == NO_OFFSET:
                signs |= Sign.REMOVED
        before = offset
    return signs


def _may_be_back(look: Committed, last: Commit) -> bool:
    """Whether the last look and the last commit may show that the offset went back: see `Case.track`."""
    if look.offset > last.offset or look.at is None or last.at is None:
        return True
    return look.at > last.at + CLOCKS_APART_MS
