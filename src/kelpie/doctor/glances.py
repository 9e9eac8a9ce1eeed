"""One look over the rows of each group, so that rules are asked only where they may find something.

A rule names the signs without which its judgement is the same for every group: absent, or undetermined for
want of logs. A healthy group has hardly any sign, and no rule looks at it. What concerns a partition, a topic
or an offsets partition is worked out once for all groups.
"""

import sys
from collections.abc import Collection

from kelpie.cluster.health import is_below_min_insync
from kelpie.cluster.topics import Existence
from kelpie.cluster.view import ClusterView
from kelpie.doctor.case import OFFSET_FETCH, Case, newest_description
from kelpie.doctor.case import REBALANCING as REBALANCING_STATES
from kelpie.doctor.coordinator_replies import AUTHORISATION_ERRORS, FIND_COORDINATOR
from kelpie.doctor.group_positions import LastOffsets, committed_since
from kelpie.doctor.known_faults import listed_by
from kelpie.doctor.membership import size_limit
from kelpie.doctor.partition_order import PartitionOrder
from kelpie.doctor.plain_positions import ANYWHERE, ReadPartition, ReadTogether, were_told_twice
from kelpie.doctor.positions import CLOCKS_APART_MS, NOISE
from kelpie.doctor.signs import ALL, FEWEST_IN_A_STORM, LATELY_MS, Sign
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.observations import (
    OFFSETS_TOPIC,
    Commit,
    Committed,
    CoordinatorAnswer,
    GroupState,
    PartitionView,
)
from kelpie.observations.groups import CLASSIC
from kelpie.observations.positions import NO_OFFSET

_NONE = 0
_REFUSALS = {
    ErrorCode.NOT_COORDINATOR: Sign.DISOWNED,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: Sign.LOADING,
    **dict.fromkeys(AUTHORISATION_ERRORS, Sign.NOT_AUTHORISED),
}
"""By what a broker answered in place of telling of the group."""
_IN_ANOTHER_TOPIC = Sign.ANOTHER_TOPIC | ANYWHERE


class Glances:
    """One cluster; `at` is asked for each of its groups."""

    def __init__(self, cluster: ClusterView) -> None:
        self._cluster = cluster
        self._partitions: dict[TopicPartition, ReadPartition] = {}
        self._together: dict[tuple[TopicPartition, ...], ReadTogether] = {}
        self._homes: dict[TopicPartition | None, int] = {}
        self._by_source: dict[tuple[str, ...], int] = {}
        self._limits: dict[tuple[str, int], int] = {}
        self._with_settings = {of for of, _ in cluster.settings if of.startswith("group ")}
        self._always = Sign.SETTINGS if ("broker", "session.timeout.ms") in cluster.settings else _NONE
        if cluster.events:
            self._always |= Sign.CLUSTER_LOG_LINES

    def at(self, case: Case) -> int:
        """All signs of a group."""
        described = newest_description(case.states)
        if case.in_zookeeper or case.is_share:
            return ALL
        signs = self._always | self._home(case) | self._replies(case) | self._membership(case, described)
        if case.events:
            signs |= Sign.LOG_LINES
        if len(case.known_from) > 1:
            signs |= self._listings(case)
        if self._with_settings and f"group {case.group}" in self._with_settings:
            signs |= Sign.SETTINGS
        if committed_since(case.commits, self._cluster.now - LATELY_MS):
            signs |= Sign.COMMITTED_LATELY
        return signs | self._positions(case, _has_members(case, described))

    def _listings(self, case: Case) -> int:
        known = self._by_source.get(case.known_from)
        if known is None:
            known = Sign.LISTED_TWICE if len(listed_by(case)) > 1 else _NONE
            self._by_source[case.known_from] = known
        return known

    # Coordinators and members.

    def _home(self, case: Case) -> int:
        home = self._cluster.home_of(case.group)
        known = self._homes.get(home)
        if known is None:
            known = self._homes[home] = self._signs_of_home(home)
        return known

    def _signs_of_home(self, home: TopicPartition | None) -> int:
        cluster = self._cluster
        view = cluster.view(home) if home is not None else None
        if home is None or view is None:
            return Sign.HOME_IN_DOUBT
        signs = Sign.HOME_BELOW_MIN_INSYNC if is_below_min_insync(cluster, view) else _NONE
        has_leader = cluster.has_leader(home)
        if has_leader is None or home in cluster.partition_events:
            return signs | Sign.HOME_IN_DOUBT
        if not has_leader:
            return signs | Sign.HOME_LEADERLESS
        return signs | (Sign.HOME_IN_DOUBT if self._is_in_doubt(home, view) else _NONE)

    def _is_in_doubt(self, home: TopicPartition, view: PartitionView) -> bool:
        """Of an offsets partition with a living leader."""
        cluster = self._cluster
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
        offsets: CoordinatorAnswer | None = None
        for answer in case.answers:
            if answer.asked != FIND_COORDINATOR:
                replies += 1
                if answer.asked == OFFSET_FETCH:
                    offsets = answer
            elif answer.error is ErrorCode.NONE:
                signs |= Sign.LOOKED_UP
            if answer.error is not ErrorCode.NONE:
                signs |= _REFUSALS.get(answer.error, _NONE)
        if (offsets is None or offsets.error is not ErrorCode.NONE) and not case.offsets_are_known:
            signs |= Sign.OFFSETS_UNKNOWN
        return signs if replies else signs | Sign.NO_REPLY

    def _membership(self, case: Case, described: GroupState | None) -> int:
        signs = _NONE
        for state in case.states:
            if state.error is not ErrorCode.NONE:
                signs |= _REFUSALS.get(state.error, _NONE)
            if state.members:
                signs |= Sign.MEMBERS
            if state.state in REBALANCING_STATES:
                signs |= Sign.REBALANCING
        if described is None:
            signs |= Sign.NOT_DESCRIBED if case.generations else Sign.NOT_DESCRIBED | Sign.MEMBERS_UNKNOWN
        elif described.kind != CLASSIC:
            is_described = described.is_described
            signs |= Sign.NOT_CLASSIC if is_described else Sign.NOT_DESCRIBED | Sign.MEMBERS_UNKNOWN
        if case.generations:
            signs |= Sign.MEMBERS
            if len(case.generations) >= FEWEST_IN_A_STORM or case.history_from is None:
                signs |= Sign.MANY_GENERATIONS
        if case.history_from is not None:
            signs |= Sign.HISTORY_READ
        return signs | self._limit(described)

    def _limit(self, state: GroupState | None) -> int:
        key = (state.kind, state.coordinator) if state is not None else ("", -1)
        limit = self._limits.get(key)
        if limit is None:
            limit = self._limits[key] = size_limit(self._cluster, state)[1] or 0
        return _NONE if (len(state.members) if state is not None else 0) < limit else Sign.SIZE_LIMIT

    # Partitions.

    def _positions(self, case: Case, has_members: bool) -> int:
        committed, commits, looks = case.committed, case.commits, case.committed_over_time
        names = committed.told.names if isinstance(committed, LastOffsets) else tuple(committed)
        read = self._together.get(names) or self._read_together(names)
        plain = None if has_members or not names else read.signs_of_plain(case)
        if plain is not None:
            is_compared = case.history_from is not None or were_told_twice(looks)
            return plain if is_compared and not plain & Sign.TOPIC_IN_DOUBT else plain | Sign.SEEN_ONCE
        signs = Sign.NOT_AT_ENDS if case.history_from is not None else Sign.NOT_AT_ENDS | Sign.SEEN_ONCE
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
        if has_members:
            return signs | self._read_by_members(case)
        return signs | (read.of_topics if is_read else Sign.NOTHING_READ)

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

    def _read_together(self, names: tuple[TopicPartition, ...]) -> ReadTogether:
        partitions = {name: self._partitions.get(name) or self._partition(name) for name in names}
        order = PartitionOrder.of(self._cluster, names)
        found = self._together[names] = ReadTogether(order, partitions, self._of_topics(names))
        return found

    def _of_topics(self, committed: Collection[TopicPartition]) -> int:
        """Without members, a group reads the topics in which it has offsets."""
        for topic in {topic for topic, _ in committed}:
            if not set(self._cluster.topics.get(topic, ())).issubset(committed):
                return Sign.UNCOMMITTED
        return _NONE

    def _partition(self, name: TopicPartition) -> ReadPartition:
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
        found = self._partitions[name] = ReadPartition(
            ALL if topic == OFFSETS_TOPIC else signs,
            start if start is not None else -1,
            end.latest if end is not None else -1,
            epoch,
            _epoch_ends(cluster, name, epoch),
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


def _epoch_ends(cluster: ClusterView, name: TopicPartition, epoch: int) -> dict[int, int]:
    """By leader epoch before this one, as far as the leader told it: the last offset that the epoch has."""
    return {
        row.asked: row.end if row.end >= 0 else sys.maxsize
        for row in cluster.epoch_ends.get(name, ())
        if not row.error and 0 <= row.asked < epoch
    }


def _has_members(case: Case, described: GroupState | None) -> bool:
    """Whether any member is known, now or in the last generation."""
    if described is not None:
        return bool(described.members) and described.is_described
    return bool(case.generations and case.generations[-1].members)


def _goes_back(looks: tuple[Committed, ...]) -> bool:
    before = 0
    for look in looks:
        if look.offset < before:
            return True
        before = look.offset
    return False


def _of_row(
    row: Committed,
    history: tuple[Commit, ...] | None,
    looks: tuple[Committed, ...] | None,
    partition: ReadPartition,
) -> int:
    """Of a committed offset, with its commits in the offsets topic and what looks saw, each by time."""
    signs, start, latest, _, _, topic_id, is_proven, _ = partition
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
            signs |= ANYWHERE
        elif len(looks) > 1 and _goes_back(looks):
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
    elif not partition.has(offset, epoch):
        signs |= Sign.EPOCH_DIFFERS
    return signs


def _of_history(history: tuple[Commit, ...]) -> int:
    signs = ANYWHERE if history[0].at is None else _NONE
    before = 0
    for row in history:
        offset = row.offset
        if offset < before:
            signs |= ANYWHERE
            if offset == NO_OFFSET:
                signs |= Sign.REMOVED
        before = offset
    return signs


def _may_be_back(look: Committed, last: Commit) -> bool:
    """Whether the last look and the last commit may show that the offset went back: see `Case.track`."""
    if look.offset > last.offset or look.at is None or last.at is None:
        return True
    return look.at > last.at + CLOCKS_APART_MS
