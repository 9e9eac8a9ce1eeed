"""All groups and offsets of one partition of `__consumer_offsets`: every event enters here.

A shard begins empty and loading: `replay` fills it from the log, `loaded` opens it. From then on an event
decides, and its records come back through `replay` once the high watermark has passed them. Only `replay`
changes offsets. It does not change live groups: a record holds only a part of a group (not its parked calls,
not its sessions), so the live group is ahead of its record (Kafka 4 does not replay these records either).
For the same reason the tombstone of a group takes effect when it is appended, not when it is replayed.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import Any, Concatenate, ParamSpec

from kelpie.coordinator import offset_commit, offset_fetch, removal
from kelpie.coordinator.classic import join, lifecycle, membership, responses, sync
from kelpie.coordinator.classic.group import create_group, forget_if_dead
from kelpie.coordinator.classic.member import ParkedJoin
from kelpie.coordinator.classic.static_members import Joiner
from kelpie.coordinator.config import GroupConfig
from kelpie.coordinator.event import ShardEvent
from kelpie.coordinator.offsets import offset_from
from kelpie.coordinator.outcome import Outcome
from kelpie.coordinator.release_behaviour import GroupBehaviour
from kelpie.coordinator.shard_state import ShardState
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
Arguments = ParamSpec("Arguments")


class GroupShard:
    def __init__(self, config: GroupConfig, behaviour: GroupBehaviour, new_id: Callable[[], str]) -> None:
        """`new_id` makes what Kafka calls a random UUID, as text."""
        self.state = ShardState(config, behaviour, new_id)

    # Loading and unloading.

    def replay(self, key: bytes, value: bytes | None, *, offset: int, producer_id: int = -1) -> None:
        """One record of the log; not one of a control batch. Raises Malformed if it cannot be read."""
        record_type, record_key = decode_key(key)
        if record_type in _OFFSETS:
            partition = TopicPartition(record_key.topic, record_key.partition)
            self._replay_offset(record_key.group, partition, value, offset, producer_id)
        elif record_type == RecordType.GROUP_METADATA and self.state.loading:
            lifecycle.replay(self.state, record_key.group, decode_value(record_type, value))
        # Records of groups of other kinds are not replayed yet.

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
        elif state.behaviour.simple_groups and group_id not in state.groups:
            create_group(state, group_id, since=None)

    def replay_marker(self, producer_id: int, committed: bool) -> None:
        self.state.offsets.end_transaction(producer_id, committed)

    def loaded(self, now: Instant) -> Outcome:
        """The log is read: from now on the shard serves requests."""
        assert self.state.loading, "loaded twice"
        self.state.loading = False
        return self._run(now, _loaded)

    def unloaded(self) -> Outcome:
        """Another broker leads now. Waiting calls are answered NOT_COORDINATOR; all groups are Dead."""
        self.state.unloaded = True
        return self._run(0, _unloaded)

    # Time.

    def timer(self, key: Hashable, now: Instant) -> Outcome:
        assert isinstance(key, tuple), f"{key!r} is not a timer of this shard"
        if key == _EXPIRY:
            return self._run(now, _expiry_due)
        if key[0] == "fetch":
            return self._run(now, offset_fetch.fetch_timer, key[1])
        return self._run(now, lifecycle.timer, key)

    def expire(self, now: Instant) -> Outcome:
        """Offsets that are too old go, and groups that have nothing left."""
        return self._run(now, removal.expire)

    def topic_deleted(self, topics: Iterable[str], now: Instant) -> Outcome:
        return self._run(now, removal.topic_deleted, topics)

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
        outcome = self._run(now, join.join, Joiner(request, ParkedJoin(to, version), client_id, client_host))
        forget_if_dead(self.state, request.group_id)
        return outcome

    def sync(self, to: Any, request: SyncGroupRequest, now: Instant) -> Outcome:
        outcome = self._run(now, sync.sync, to, request)
        forget_if_dead(self.state, request.group_id)
        return outcome

    def heartbeat(self, to: Any, request: HeartbeatRequest, now: Instant) -> Outcome:
        return self._run(now, membership.heartbeat, to, request)

    def leave(self, to: Any, request: LeaveGroupRequest, version: int, now: Instant) -> Outcome:
        outcome = self._run(now, membership.leave, to, request, version)
        forget_if_dead(self.state, request.group_id)
        return outcome

    # Offsets.

    def commit_offsets(self, to: Any, request: OffsetCommitRequest, version: int, now: Instant) -> Outcome:
        return self._run(now, offset_commit.commit, to, request, version)

    def commit_offsets_in_transaction(
        self, to: Any, request: TxnOffsetCommitRequest, now: Instant
    ) -> Outcome:
        """The records belong to the producer's transaction: see `Outcome.producer`."""
        return self._run(now, offset_commit.commit_in_transaction, to, request)

    def fetch_offsets(
        self, to: Any, group: OffsetFetchRequestGroup, require_stable: bool, now: Instant
    ) -> Outcome:
        """One group's part. With `require_stable`, Kafka 4 waits for commits that are being written."""
        return self._run(now, offset_fetch.fetch, to, group, require_stable)

    def offsets_of(
        self, group_id: str, topics: Sequence[OffsetFetchRequestTopics] | None, require_stable: bool
    ) -> OffsetFetchResponseGroup:
        """The same without waiting. Without topics, all of the group."""
        return offset_fetch.offsets_of(self.state, group_id, topics, require_stable)

    def delete_offsets(self, to: Any, request: OffsetDeleteRequest, now: Instant) -> Outcome:
        return self._run(now, removal.delete_offsets, to, request)

    # Groups.

    def describe(self, group_id: str, version: int) -> DescribedGroup:
        return responses.described(self.state, group_id, version)

    def listed(self, states: Collection[str] = (), types: Collection[str] = ()) -> list[ListedGroup]:
        """All groups, or those in these states and of these types. Up to 2.8 the case of a state matters."""
        behaviour = self.state.behaviour
        spelling = str if behaviour.spells_states_exactly else str.lower
        wanted_states = {spelling(state) for state in states}
        wanted_types = {group_type.lower() for group_type in types}
        rows = [
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type or "",
                group_state=group.state_name(behaviour),
                group_type=group.group_type,
            )
            for group in self.state.groups.values()
            if not wanted_types or group.group_type in wanted_types
        ]
        return [row for row in rows if not wanted_states or spelling(row.group_state) in wanted_states]

    def delete_group(self, to: Any, group_id: str, now: Instant) -> Outcome:
        return self._run(now, removal.delete_group, to, group_id)

    def _run(
        self,
        now: Instant,
        handle: Callable[Concatenate[ShardState, ShardEvent, Arguments], None],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Outcome:
        event = ShardEvent(self.state.config, self.state.behaviour, now)
        handle(self.state, event, *args, **kwargs)
        return event.outcome()


def _loaded(shard: ShardState, event: ShardEvent) -> None:
    lifecycle.loaded(shard, event)
    _await_expiry(event)


def _unloaded(shard: ShardState, event: ShardEvent) -> None:
    lifecycle.unloaded(shard, event)
    for fetch in shard.fetches:
        event.answer(fetch.to, offset_fetch.refused(fetch.group, ErrorCode.NOT_COORDINATOR, version=8))
    shard.fetches.clear()


def _expiry_due(shard: ShardState, event: ShardEvent) -> None:
    removal.expire(shard, event)
    _await_expiry(event)


def _await_expiry(event: ShardEvent) -> None:
    event.wake(_EXPIRY, event.now + event.config.offsets_retention_check_interval_ms)
