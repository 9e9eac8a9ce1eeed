"""All groups and offsets of one partition of `__consumer_offsets`: the doors to the machines beside it.

A shard begins empty and loading: `replay` fills it from the log, `loaded` opens it. From then on an event
decides, and its records come back through `replay` once the high watermark has passed them. That is what
changes offsets. It does not change groups: what a group is (who waits, whose session runs) lies only partly
in its record, so that the live group is ahead of it (Kafka 4 does not replay them either). The tombstone of
a group has had its effect when it was sent on its way, for the same reason.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import Any

from kelpie.coordinator import answers, committing, fetching, joining, membership, removing, syncing
from kelpie.coordinator.classic_group import ClassicGroup
from kelpie.coordinator.config import GroupConfig
from kelpie.coordinator.describing import described, listed
from kelpie.coordinator.group_records import group_from
from kelpie.coordinator.manners import Manners
from kelpie.coordinator.member import ParkedJoin
from kelpie.coordinator.notes import What, note
from kelpie.coordinator.offsets import offset_from
from kelpie.coordinator.outcome import NOTHING, Outcome
from kelpie.coordinator.rebalance import join_timer, prepare, renew, sync_timer
from kelpie.coordinator.shard_state import ShardState
from kelpie.coordinator.state import State
from kelpie.coordinator.static import Joiner
from kelpie.coordinator.turn import Turn
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.wire.api.describe_groups import DescribedGroup
from kelpie.wire.api.heartbeat import HeartbeatRequest
from kelpie.wire.api.join_group import JoinGroupRequest
from kelpie.wire.api.leave_group import LeaveGroupRequest
from kelpie.wire.api.list_groups import ListedGroup
from kelpie.wire.api.offset_commit import OffsetCommitRequest
from kelpie.wire.api.offset_delete import OffsetDeleteRequest
from kelpie.wire.api.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)
from kelpie.wire.api.sync_group import SyncGroupRequest
from kelpie.wire.api.txn_offset_commit import TxnOffsetCommitRequest
from kelpie.wire.offsets_topic import RecordType, decode_key, decode_value

_OFFSETS = (RecordType.LEGACY_OFFSET_COMMIT, RecordType.OFFSET_COMMIT)
_EXPIRY: Hashable = ("expire",)


class GroupShard:
    def __init__(self, config: GroupConfig, manners: Manners, new_id: Callable[[], str]) -> None:
        """`new_id` makes what Kafka calls a random UUID, as text."""
        self.state = ShardState(config, manners, new_id)

    # Loading and unloading.

    def replay(self, key: bytes, value: bytes | None, *, offset: int, producer_id: int = -1) -> None:
        """One record of the log; not one of a control batch. Raises Malformed if it cannot be read."""
        record_type, found = decode_key(key)
        if record_type in _OFFSETS:
            self._replay_offset(
                found.group, TopicPartition(found.topic, found.partition), value, offset, producer_id
            )
        elif record_type == RecordType.GROUP_METADATA and self.state.loading:
            decoded = decode_value(record_type, value)
            if decoded is None:
                self.state.groups.pop(found.group, None)
            else:
                self.state.groups[found.group] = group_from(found.group, decoded, self.state.manners)
        # Groups of the newer protocols are not kept here yet.

    def _replay_offset(
        self, group_id: str, partition: TopicPartition, value: bytes | None, offset: int, producer_id: int
    ) -> None:
        state = self.state
        if value is None:
            state.offsets.forget(group_id, partition)
            return
        committed = offset_from(decode_value(RecordType.OFFSET_COMMIT, value), offset)
        state.offsets.replay(group_id, partition, committed, producer_id)
        if not state.loading:
            state.offsets.settle(group_id, [partition], producer_id != -1)
        elif state.manners.simple_groups and group_id not in state.groups:
            state.groups[group_id] = ClassicGroup(group_id, State.EMPTY, None)

    def replay_marker(self, producer_id: int, committed: bool) -> None:
        self.state.offsets.end_transaction(producer_id, committed)

    def loaded(self, now: Instant) -> Outcome:
        """The log is read. Everybody gets a new session; a group that is too large now has to rebalance."""
        assert self.state.loading, "loaded twice"
        self.state.loading = False
        turn = self._turn(now)
        if not turn.manners.tombstones_simple_groups:
            self._forget_unused()
        for group in self.state.groups.values():
            for member in group.members.values():
                renew(group, member, turn)
            turn.note(
                What.GROUP_LOADED,
                group=group.group_id,
                count=len(group.members),
                generation=group.generation,
            )
            if len(group.members) > turn.config.max_size:
                reason = note(
                    What.BY_SIZE,
                    group=group.group_id,
                    count=len(group.members),
                    limit=turn.config.max_size,
                )
                prepare(group, turn, reason)
        turn.wake(_EXPIRY, now + turn.config.offsets_retention_check_interval_ms)
        return turn.outcome()

    def _forget_unused(self) -> None:
        """Where no tombstone tells of their end, groups that only committed end with their last offset."""
        for group in list(self.state.groups.values()):
            if group.is_simple and group.generation == 0 and not self.state.offsets.has_any(group.group_id):
                del self.state.groups[group.group_id]

    def unloaded(self) -> Outcome:
        """Another broker leads now. Who waits here is sent there; groups are Dead to whoever still asks."""
        turn = self._turn(0)
        error = ErrorCode.NOT_COORDINATOR
        self.state.unloaded = True
        for group in self.state.groups.values():
            turn.note(What.GROUP_UNLOADED, group=group.group_id, generation=group.generation)
            group.transition(State.DEAD, group.since or 0)
            for member in group.members.values():
                join = group.take_join(member)
                if join is not None:
                    refusal = answers.join_refused(member.member_id, error, join.version, turn.manners)
                    turn.answer(join.to, refusal)
                sync, member.sync = member.sync, None
                if sync is not None:
                    turn.answer(sync.to, answers.sync_refused(error))
        for fetch in self.state.fetches:
            turn.answer(fetch.to, fetching.refused(fetch.group, error, version=8))
        self.state.fetches.clear()
        return turn.outcome()

    # Time.

    def timer(self, key: Hashable, now: Instant) -> Outcome:
        assert isinstance(key, tuple), f"{key!r} is not a timer of this shard"
        turn = self._turn(now)
        if key == _EXPIRY:
            removing.expire(self.state, turn)
            turn.wake(_EXPIRY, now + turn.config.offsets_retention_check_interval_ms)
            return turn.outcome()
        kind, group_id, *rest = key
        if kind == "fetch":
            fetching.fetch_timer(self.state, turn, group_id)
            return turn.outcome()
        group = self.state.groups.get(group_id)
        if group is None or group.state is State.DEAD:
            return NOTHING
        if kind == "session":
            membership.session_timer(turn, group, rest[0])
        elif kind == "join":
            join_timer(group, turn)
        else:
            assert kind == "sync", f"{key!r} is not a timer of this shard"
            sync_timer(group, turn)
        return self._close(turn, group_id)

    def expire(self, now: Instant) -> Outcome:
        """Offsets that are too old go, and groups that have nothing left."""
        turn = self._turn(now)
        removing.expire(self.state, turn)
        return turn.outcome()

    def topic_deleted(self, topics: Iterable[str], now: Instant) -> Outcome:
        turn = self._turn(now)
        removing.topic_deleted(self.state, turn, topics)
        return turn.outcome()

    # Members.

    def join(  # noqa: PLR0917
        self,
        to: Any,
        request: JoinGroupRequest,
        version: int,
        client_id: str,
        client_host: str,
        now: Instant,
    ) -> Outcome:
        turn = self._turn(now)
        joining.join(self.state, turn, Joiner(request, ParkedJoin(to, version), client_id, client_host))
        return self._close(turn, request.group_id)

    def sync(self, to: Any, request: SyncGroupRequest, version: int, now: Instant) -> Outcome:  # noqa: ARG002
        turn = self._turn(now)
        syncing.sync(self.state, turn, to, request)
        return self._close(turn, request.group_id)

    def heartbeat(self, to: Any, request: HeartbeatRequest, version: int, now: Instant) -> Outcome:  # noqa: ARG002
        turn = self._turn(now)
        membership.heartbeat(self.state, turn, to, request)
        return turn.outcome()

    def leave(self, to: Any, request: LeaveGroupRequest, version: int, now: Instant) -> Outcome:
        turn = self._turn(now)
        membership.leave(self.state, turn, to, request, version)
        return self._close(turn, request.group_id)

    # Offsets.

    def commit_offsets(self, to: Any, request: OffsetCommitRequest, version: int, now: Instant) -> Outcome:
        turn = self._turn(now)
        committing.commit(self.state, turn, to, request, version)
        return turn.outcome()

    def commit_offsets_in_transaction(
        self,
        to: Any,
        request: TxnOffsetCommitRequest,
        version: int,  # noqa: ARG002
        now: Instant,
    ) -> Outcome:
        """The records belong to the producer's transaction: see `Outcome.producer`."""
        turn = self._turn(now)
        committing.commit_in_transaction(self.state, turn, to, request)
        return turn.outcome()

    def fetch_offsets(
        self, to: Any, group: OffsetFetchRequestGroup, require_stable: bool, now: Instant
    ) -> Outcome:
        """One group's part. With `require_stable`, Kafka 4 waits for commits that are being written."""
        turn = self._turn(now)
        fetching.fetch(self.state, turn, to, group, require_stable)
        return turn.outcome()

    def offsets_of(
        self, group_id: str, topics: Sequence[OffsetFetchRequestTopics] | None, require_stable: bool
    ) -> OffsetFetchResponseGroup:
        """The same without waiting. Without topics, all of the group."""
        return fetching.offsets_of(self.state, group_id, topics, require_stable)

    def delete_offsets(self, to: Any, request: OffsetDeleteRequest, now: Instant) -> Outcome:
        turn = self._turn(now)
        removing.delete_offsets(self.state, turn, to, request)
        return turn.outcome()

    # Groups.

    def describe(self, group_id: str, version: int) -> DescribedGroup:
        return described(self.state, group_id, version)

    def listed(self, states: Collection[str] = (), types: Collection[str] = ()) -> list[ListedGroup]:
        return listed(self.state, states, types)

    def delete_group(self, to: Any, group_id: str, now: Instant) -> Outcome:
        turn = self._turn(now)
        removing.delete_group(self.state, turn, to, group_id)
        return turn.outcome()

    def _turn(self, now: Instant) -> Turn:
        return Turn(self.state.config, self.state.manners, now)

    def _close(self, turn: Turn, group_id: str) -> Outcome:
        """In Kafka 0.9 a group may have died in this event."""
        self.state.bury(group_id)
        return turn.outcome()
