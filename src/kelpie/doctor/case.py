"""The input of a rule: one group, all that is known of it, and the cluster.

Rules get nothing else. Tuples are ordered by time; rows without a time come first. The same case comes from a
live survey, from files, and from tables. What several rules derive from a case, the case computes once.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from kelpie.cluster.failovers import FAILOVER_MS
from kelpie.cluster.topics import is_of_old_topic
from kelpie.cluster.view import ClusterView
from kelpie.doctor.finding import Severity
from kelpie.doctor.group_positions import LastOffsets, runs_of
from kelpie.doctor.partition_order import PartitionOrder
from kelpie.doctor.positions import (
    CLOCKS_APART_MS,
    STANDSTILL_MS,
    UNKNOWN_RHYTHM_MS,
    IllPeriod,
    Point,
    Rhythm,
    Track,
)
from kelpie.model.derived import derived
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import (
    OFFSETS_TOPIC,
    Commit,
    Committed,
    CoordinatorAnswer,
    Event,
    EventKind,
    Generation,
    GroupState,
    Member,
    PendingCommit,
    Unasked,
    ZooKeeperGroup,
)
from kelpie.observations.group_offsets import GroupOffsets
from kelpie.observations.groups import CONNECT, SHARE, STREAMS_ASSIGNOR
from kelpie.observations.positions import NO_OFFSET

REBALANCING = frozenset(
    {"PreparingRebalance", "CompletingRebalance", "AwaitingSync", "Assigning", "Reconciling", "NotReady"}
)
"""States in which a group rebalances, in the words of all releases. NotReady: a Streams application whose
topics are missing or do not fit together.
"""
OFFSET_FETCH = "OffsetFetch"
_STOPPED = "KLP310"
_TIME = attrgetter("at")
_BROKER, _CONTROLLER = "broker:", "controller:"
"""How kinds of events begin that are not from logs of clients."""


@dataclass(frozen=True, slots=True)
class GroupPartitions:
    """The partitions of a group."""

    partitions: tuple[TopicPartition, ...]
    """Assigned to a member, or of a topic that a member subscribes to. Without members: committed."""
    abandoned: tuple[TopicPartition, ...]
    """Committed once, of topics to which no member subscribes any more. No alarm is due."""


@dataclass(frozen=True)
class Case:
    """One group."""

    group: str
    cluster: ClusterView
    known_from: tuple[str, ...] = ()
    """Where this group is known from: "listed by broker 1", "an earlier survey", "clients/app.log" …"""
    listed: bool | None = None
    """Whether a broker lists it now. None: the broker that would know did not answer."""
    answers: tuple[CoordinatorAnswer, ...] = ()
    states: tuple[GroupState, ...] = ()
    generations: tuple[Generation, ...] = ()
    commits: Mapping[TopicPartition, tuple[Commit, ...]] = field(default_factory=dict)
    """The history in the offsets topic, as far back as it was read."""
    committed: Mapping[TopicPartition, Committed] = field(default_factory=dict)
    """What the coordinator says now, or the newest commit of the history when it cannot be asked."""
    committed_over_time: Mapping[TopicPartition, tuple[Committed, ...]] = field(default_factory=dict)
    """What the coordinator said in this survey and in earlier ones, by time."""
    pending: tuple[PendingCommit, ...] = ()
    """Commits of open transactions at the end of the history."""
    events: tuple[Event, ...] = ()
    unasked: tuple[Unasked, ...] = ()
    history_from: Instant | None = None
    """Since when commits and generations are known. None: the offsets topic was not read."""
    in_zookeeper: bool = False
    """It is a group of Kafka 0.8's kind: ZooKeeper keeps it, and it has no coordinator."""
    zookeeper: tuple[ZooKeeperGroup, ...] = ()
    """What ZooKeeper kept of it, by time."""
    group_id: str = ""
    """Its name, where `group` says more to tell it from a group of the same name that Kafka keeps."""
    ill: tuple[IllPeriod, ...] = ()
    """When earlier examinations found that it did not consume."""
    ages_uncertain_ms: int = 0
    """By so much may ages be too large that follow from times of its coordinator: its clock is not known."""

    def __copy__(self) -> "Case":
        """With what was derived of it so far. What `copy` does otherwise takes four times as long."""
        made = object.__new__(Case)
        made.__dict__.update(self.__dict__)
        return made

    def with_fields(self, **fields: Any) -> "Case":
        """The same with other values of these fields; nothing may be derived of it yet. Thousands of cases
        are made: `Case(...)` takes four times as long, and `dataclasses.replace` longer.
        """
        made = object.__new__(Case)
        made.__dict__.update(self.__dict__, **fields)
        return made

    @property
    def is_unheard_of(self) -> bool:
        """Whether a user named it, and no broker and no file knows it. Without a coordinator, none could."""
        if self.listed is not False or self.known_from:
            return False
        home = self.offsets_partition
        return home is None or self.cluster.has_leader(home) is not False

    @property
    def offsets_partition(self) -> TopicPartition | None:
        """Its partition of the offsets topic. None: it is in ZooKeeper, or their number is unknown."""
        if self.in_zookeeper:
            return None
        return self.cluster.home_of(self.group)

    @property
    def state(self) -> GroupState | None:
        """As it was described last."""
        return self.states[-1] if self.states else None

    @derived
    def described(self) -> GroupState | None:
        """The newest description without an error."""
        return newest_description(self.states)

    @derived
    def members(self) -> tuple[Member, ...] | None:
        """As last described, or of the last generation in the offsets topic. None: unknown."""
        state = newest_description(self.states)
        if state is None:
            return self.generations[-1].members if self.generations else None
        return state.members if state.members or state.is_described else None

    def events_of(self, *kinds: EventKind) -> list[Event]:
        return [event for event in self.events if event.kind in kinds]

    @property
    def has_client_logs(self) -> bool:
        """Whether there are logs of this group's consumers."""
        return any(not event.kind.value.startswith((_BROKER, _CONTROLLER)) for event in self.events)

    @property
    def has_broker_log(self) -> bool:
        """Whether there is a log of its coordinator that names the group."""
        return any(event.kind.value.startswith(_BROKER) for event in self.events)

    @property
    def rosters(self) -> list[tuple[Member, ...]]:
        """The members of each generation and of each description."""
        return [row.members for row in self.member_rows]

    @property
    def member_rows(self) -> list[Generation | GroupState]:
        """All rows that name members: the generations, then the descriptions."""
        return [*self.generations, *self.states]

    @property
    def is_share(self) -> bool:
        """Whether it is a share group: its positions are in its descriptions, and it commits nothing."""
        return bool(self.states) and self.states[-1].kind == SHARE

    @property
    def is_connect(self) -> bool:
        """Whether its members are workers of Kafka Connect. Their group reads and commits nothing."""
        return any(row.protocol_type == CONNECT for row in self.member_rows[-1:])

    @property
    def is_incremental(self) -> bool:
        """Whether members keep in a rebalance what does not move: it then takes two rounds, or more."""
        protocols = {row.protocol for row in self.member_rows}
        return (
            self.is_connect
            or any(state.is_incremental for state in self.states)
            or any(name == STREAMS_ASSIGNOR or "cooperative" in name for name in protocols)
        )

    @property
    def commits_without_joining(self) -> bool:
        """Whether its consumers assign partitions themselves, and only commit: then nobody is ever in it.

        Spark, Flink and consumers that call assign() do so. Three commits at different times show it; a reset
        by a tool is one.
        """
        state = self.described
        is_simple = state is not None and not state.members and state.is_described and not state.protocol_type
        return is_simple and bool(self.commits) and not any(self.rosters) and self.commit_rhythm.is_known

    @property
    def is_rebalancing(self) -> bool:
        state = self.described
        return state is not None and state.state in REBALANCING

    @property
    def is_empty(self) -> bool:
        """Whether its coordinator described it last as a group without members."""
        state = self.described
        return state is not None and state.state == "Empty"

    @property
    def is_cut_off(self) -> bool:
        """Whether no commit is possible for want of a coordinator: then KLP101 or KLP105 says why."""
        home = self.offsets_partition
        return home is not None and self.cluster.once(_cuts_off, home)

    @derived
    def offsets_are_known(self) -> bool:
        """Whether the coordinator said what is committed, so that what it left out does not exist."""
        for answer in reversed(self.answers):
            if answer.asked == OFFSET_FETCH:
                return not answer.error
        return bool(self.committed_over_time) or any(row.at is not None for row in self.committed.values())

    @derived
    def rest_began(self) -> Instant | None:
        """Since when it is known to be where it is now, and never to have been elsewhere. None: it was, or
        its rows do not show that at a glance.
        """
        runs = runs_of(self.committed, self.commits, self.committed_over_time)
        if runs is None:
            return None
        told, commits, looks = runs
        return PartitionOrder.of(self.cluster, told.names).rest_began(told.offsets, commits, looks)

    def has_offset(self, name: TopicPartition) -> bool:
        row = self.committed.get(name)
        return row is not None and (row.offset >= 0 or row.error != 0)

    @derived
    def committed_rows(self) -> list[Committed]:
        """The committed offsets of topics that exist."""
        return [
            row
            for name, row in sorted(self.committed.items())
            if row.offset >= 0 and not row.error and not self.is_gone(name)
        ]

    def is_gone(self, name: TopicPartition) -> bool:
        """Whether its topic was deleted. A topic that the caller may not describe is not gone."""
        return self.cluster.is_gone(name.topic)

    def is_of_old_topic(self, row: Commit) -> bool:
        """Whether it was committed in an earlier topic of the same name."""
        now = self.cluster.known_topics.id_of(row.topic)
        if row.topic_id and now:
            return row.topic_id != now
        recreation = self.cluster.known_topics.recreations.get(row.topic)
        return recreation is not None and row.at is not None and row.at <= recreation.until

    def _may_exist(self, name: TopicPartition) -> bool:
        """A task of Kafka Streams has a number that not each of its topics has a partition of."""
        known = self.cluster.topics.get(name.topic, ())
        return not self.is_gone(name) and (not known or name in known)

    def loss_severity(self, names: Iterable[TopicPartition]) -> Severity:
        """Of losing records in these partitions: it is worst while the group has members."""
        abandoned = set(self.reads.abandoned)
        if all(name in abandoned for name in names):
            return Severity.NOTICE
        return Severity.CRITICAL if self.members else Severity.WARNING

    @derived
    def reads(self) -> GroupPartitions:
        """What the group reads."""
        members = self.members or ()
        if not members and isinstance(self.committed, LastOffsets) and not self.is_share:
            told = self.committed.told
            if isinstance(told, GroupOffsets) and min(told.offsets, default=0) >= 0:
                return self.cluster.once_by_identity(committed_together, told.names)
        committed = [name for name in self.committed if self.has_offset(name) and not self.is_gone(name)]
        if self.is_share and self.described is not None:
            positions = (row.name for row in self.described.share_positions)
            committed += [name for name in positions if not self.is_gone(name)]
        assigned = {name for member in members for name in member.assigned or () if self._may_exist(name)}
        topics = {topic for member in members for topic in member.subscribed or ()}
        topics |= {name.topic for name in assigned}
        if not topics:
            return GroupPartitions(_ordered(committed), ())
        read = {name for topic in topics for name in self.cluster.topics.get(topic, ())} | assigned
        read |= {name for name in committed if name.topic in topics}
        abandoned = (name for name in committed if name.topic not in topics)
        return GroupPartitions(_ordered(read), _ordered(abandoned))

    @derived
    def commit_rhythm(self) -> Rhythm:
        """Of the group as a whole: one request commits many partitions."""
        return self._rhythm(self.commits)

    def patience_ms(self, name: TopicPartition) -> int:
        """How long it may stand still in this partition until that means something."""
        if self.is_still_stopped:
            return STANDSTILL_MS
        least = FAILOVER_MS if self.is_failing_over(name) or self.commits_without_joining else STANDSTILL_MS
        holder = self._holder(name)
        rhythm = self._rhythm_of(name)
        if holder is not None and holder.instance_id is not None:
            least = max(least, holder.session_timeout_ms)  # Until then nobody takes over: it may restart.
        if holder is not None and not rhythm.is_known:
            least = max(least, UNKNOWN_RHYTHM_MS)
        return max(rhythm.patience_ms, least)

    @derived
    def is_still_stopped(self) -> bool:
        """Whether an earlier look found that it had stopped, and it has committed nothing since. Then it has
        not begun anew because its members went, or a leader was elected.
        """
        last = self.commit_rhythm.last if self.ill else None
        return last is not None and any(period.code == _STOPPED and last < period.seen for period in self.ill)

    def has_rhythm(self, name: TopicPartition) -> bool:
        """Whether it is known how often the member commits that holds the partition."""
        return self._rhythm_of(name).is_known

    def _holder(self, name: TopicPartition) -> Member | None:
        return next((member for member in self.members or () if name in (member.assigned or ())), None)

    def _rhythm_of(self, name: TopicPartition) -> Rhythm:
        """How often the member that holds the partition commits, in any of its partitions.

        Before the present generation, other members may have held them: those commits count only if there
        are not enough of the member's own. A pause from one generation to another does not count: members
        commit when a rebalance takes partitions from them, which may be seconds after their last commit.
        """
        holder = self._holder(name)
        held = frozenset(holder.assigned or ()) if holder is not None else frozenset({name})
        if held not in self._rhythms:
            began = self.generations[-1].at if holder is not None and self.generations else None
            own = self._rhythm(held, began) if began is not None else None
            changes = self._generation_times if holder is not None else ()
            self._rhythms[held] = (
                own if own is not None and own.is_known else self._rhythm(held, changes=changes)
            )
        return self._rhythms[held]

    @derived
    def _generation_times(self) -> tuple[Instant, ...]:
        return tuple(sorted(row.at for row in self.generations if row.at is not None))

    @derived
    def _rhythms(self) -> dict[frozenset[TopicPartition], Rhythm]:
        return {}

    def _rhythm(
        self, names: Iterable[TopicPartition], since: Instant = 0, changes: Sequence[Instant] = ()
    ) -> Rhythm:
        rows = (row for name in names for row in self.commits.get(name, ()))
        times = (row.at for row in rows if row.at is not None and row.at >= since and not row.removed)
        return Rhythm.of(times, self.ill, changes)

    def is_failing_over(self, name: TopicPartition) -> bool:
        """Whether brokers or leaders that the group needs for this partition went, came back or moved."""
        if self.cluster.is_failing_over(name, self.offsets_partition):
            return True
        history, view = self.commits.get(name), self.cluster.view(name)
        if history and view is not None and view.leader_epoch > history[-1].leader_epoch >= 0:
            return True  # A leader was elected after the group had read for the last time.
        # The coordinator of its producers' transactions may be any broker.
        return self.commits_in_transactions and bool(self.cluster.unsettled_brokers)

    @derived
    def commits_in_transactions(self) -> bool:
        """Whether producers commit its offsets, in their transactions."""
        return bool(self.pending) or any(rows[-1].transactional for rows in self.commits.values())

    @property
    def silence_ms(self) -> int | None:
        """How long it has committed nothing at all. None: its history was not read."""
        last = self.commit_rhythm.last
        since = last if last is not None else self.history_from
        return None if since is None else max(0, self.cluster.now - since)

    @property
    def proven_silence_ms(self) -> int | None:
        """How long it has committed nothing, whatever its coordinator's clock says. None: not known.

        Looks use the clock here: as long as they saw the same offsets, nothing new was committed.
        """
        silence = self.silence_ms
        if silence is None:
            return None
        return max(0, silence - self.ages_uncertain_ms, min(silence, self._unchanged_ms()))

    def _unchanged_ms(self) -> int:
        """How long looks have seen the offsets that are committed now, in all partitions."""
        since = []
        for name, row in self.committed.items():
            looks = self.committed_over_time.get(name, ())
            at = self.cluster.now
            for look in reversed(looks):
                if look.offset != row.offset or look.at is None:
                    break
                at = look.at
            since.append(at)
        return self.cluster.now - max(since, default=self.cluster.now)

    def is_silent(self, names: Iterable[TopicPartition]) -> bool:
        """Nothing at all was committed, for longer than is usual in one of these partitions."""
        silence = self.silence_ms
        return silence is not None and silence >= min(map(self.patience_ms, names), default=silence + 1)

    @property
    def tracks(self) -> list[Track]:
        """Of all partitions that the group reads and has committed in.

        Not of those whose offset the coordinator would not tell: a commit is under way there (KLP307).
        """
        rows = ((name, self.committed.get(name)) for name in self.reads.partitions)
        tracks = [self.track(name) for name, row in rows if row is None or not row.error]
        return [track for track in tracks if track.offset >= 0]

    def track(self, name: TopicPartition) -> Track:
        """The group's positions in one partition."""
        if name not in self._tracks:
            self._tracks[name] = self._track(name)
        return self._tracks[name]

    @derived
    def _tracks(self) -> dict[TopicPartition, Track]:
        return {}

    def _track(self, name: TopicPartition) -> Track:
        """Surveys and the history use different clocks. Where both have an offset, the history counts: a
        survey's offset is used only for times that the history does not cover.
        """
        now, topics = self.cluster.now, self.cluster.known_topics
        history = self.commits.get(name, ())
        present = topics.id_of(name.topic)
        may_be_old = name.topic in topics.recreations or (
            bool(present) and any(row.topic_id and row.topic_id != present for row in history)
        )
        points = [
            Point(row.at if row.at < now else now, row.offset, True, row.leader_epoch, row.source)
            for row in history
            if row.at is not None and not (may_be_old and self.is_of_old_topic(row))
        ]
        first, last = (points[0].at, points[-1].at) if points else (now + 1, -CLOCKS_APART_MS)
        current = self.committed.get(name)
        rows = list(self.committed_over_time.get(name, ()))
        if current is not None and not rows:
            rows.append(current)
        points += [
            Point(row.at if row.at < now else now, row.offset, False, row.leader_epoch, row.source)
            for row in rows
            if not row.error and row.at is not None and not first <= row.at <= last + CLOCKS_APART_MS
            if not is_of_old_topic(row.topic, row.at, topics)
        ]
        points.sort(key=_TIME)
        kept = _since_removal(points)
        if points:
            offset = kept[-1].offset if kept else NO_OFFSET
        elif history:
            offset = history[-1].offset  # Rows without a time, in their own order.
        else:
            offset = current.offset if current is not None and not current.error else NO_OFFSET
        if current is None and rows:
            offset, kept = NO_OFFSET, []  # Surveys saw it, and the last one did not.
        return Track(name, offset, tuple(kept), self.cluster.ends_over_time(name), now)


def _cuts_off(cluster: ClusterView, home: TopicPartition) -> bool:
    """Whether groups of this offsets partition have no coordinator that can be reached."""
    view = cluster.view(home)
    if view is None:
        return False
    broker = cluster.brokers.get(view.leader)
    unreachable = broker is not None and broker.alive is None and bool(broker.reason)
    return unreachable or cluster.has_leader(home) is False


def newest_description(states: Sequence[GroupState]) -> GroupState | None:
    """The newest one without an error. `Case.described` keeps it."""
    for state in reversed(states):
        if not state.error:
            return state
    return None


def committed_together(cluster: ClusterView, names: tuple[TopicPartition, ...]) -> GroupPartitions:
    """What a group without members reads that has offsets in these partitions."""
    return GroupPartitions(_ordered(name for name in names if not cluster.is_gone(name.topic)), ())


def _since_removal(points: list[Point]) -> list[Point]:
    """Those after the last one without an offset."""
    if NO_OFFSET not in [point.offset for point in points]:
        return points
    removed = max(at for at, point in enumerate(points) if point.offset == NO_OFFSET)
    return points[removed + 1 :]


def _ordered(names: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
    return tuple(sorted(name for name in set(names) if name.topic != OFFSETS_TOPIC))
