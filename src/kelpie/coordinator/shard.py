"""All groups and offsets of one partition of `__consumer_offsets`: every event enters here.

A shard begins empty and loading: `replay` fills it from the log, `loaded` opens it. From then on an event
decides, and its records come back through `replay` once the high watermark has passed them. Only `replay`
changes offsets. It does not change live groups: a record holds only a part of a group (not its parked calls,
not its sessions), so the live group is ahead of its record (Kafka 4 does not replay these records either).
For the same reason the tombstone of a group takes effect when it is appended, not when it is replayed.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import Any

from kelpie.coordinator import offset_commit, offset_fetch, removal
from kelpie.coordinator.classic import groups, join, lifecycle, membership, sync
from kelpie.coordinator.classic.description import described
from kelpie.coordinator.classic.member import ParkedJoin
from kelpie.coordinator.classic.static_members import Joiner
from kelpie.coordinator.config import GroupConfig
from kelpie.coordinator.event import ShardEvent
from kelpie.coordinator.group_list import listed
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
            groups.create(state, group_id, since=None)

    def replay_marker(self, producer_id: int, committed: bool) -> None:
        self.state.offsets.end_transaction(producer_id, committed)

    def loaded(self, now: Instant) -> Outcome:
        """The log is read: from now on the shard serves requests."""
        assert self.state.loading, "loaded twice"
        self.state.loading = False
        event = self._event(now)
        lifecycle.loaded(self.state, event)
        event.wake(_EXPIRY, now + event.config.offsets_retention_check_interval_ms)
        return event.outcome()

    def unloaded(self) -> Outcome:
        """Another broker leads now. Waiting calls are answered NOT_COORDINATOR; all groups are Dead."""
        event = self._event(0)
        self.state.unloaded = True
        lifecycle.unloaded(self.state, event)
        for fetch in self.state.fetches:
            event.answer(fetch.to, offset_fetch.refused(fetch.group, ErrorCode.NOT_COORDINATOR, version=8))
        self.state.fetches.clear()
        return event.outcome()

    # Time.

    def timer(self, key: Hashable, now: Instant) -> Outcome:
        assert isinstance(key, tuple), f"{key!r} is not a timer of this shard"
        event = self._event(now)
        if key == _EXPIRY:
            removal.expire(self.state, event)
            event.wake(_EXPIRY, now + event.config.offsets_retention_check_interval_ms)
        elif key[0] == "fetch":
            offset_fetch.fetch_timer(self.state, event, key[1])
        else:
            lifecycle.timer(self.state, event, key)
        return event.outcome()

    def expire(self, now: Instant) -> Outcome:
        """Offsets that are too old go, and groups that have nothing left."""
        event = self._event(now)
        removal.expire(self.state, event)
        return event.outcome()

    def topic_deleted(self, topics: Iterable[str], now: Instant) -> Outcome:
        event = self._event(now)
        removal.topic_deleted(self.state, event, topics)
        return event.outcome()

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
        event = self._event(now)
        join.join(self.state, event, Joiner(request, ParkedJoin(to, version), client_id, client_host))
        groups.forget_if_dead(self.state, request.group_id)
        return event.outcome()

    def sync(self, to: Any, request: SyncGroupRequest, version: int, now: Instant) -> Outcome:  # noqa: ARG002
        event = self._event(now)
        sync.sync(self.state, event, to, request)
        groups.forget_if_dead(self.state, request.group_id)
        return event.outcome()

    def heartbeat(self, to: Any, request: HeartbeatRequest, version: int, now: Instant) -> Outcome:  # noqa: ARG002
        event = self._event(now)
        membership.heartbeat(self.state, event, to, request)
        return event.outcome()

    def leave(self, to: Any, request: LeaveGroupRequest, version: int, now: Instant) -> Outcome:
        event = self._event(now)
        membership.leave(self.state, event, to, request, version)
        groups.forget_if_dead(self.state, request.group_id)
        return event.outcome()

    # Offsets.

    def commit_offsets(self, to: Any, request: OffsetCommitRequest, version: int, now: Instant) -> Outcome:
        event = self._event(now)
        offset_commit.commit(self.state, event, to, request, version)
        return event.outcome()

    def commit_offsets_in_transaction(
        self,
        to: Any,
        request: TxnOffsetCommitRequest,
        version: int,  # noqa: ARG002
        now: Instant,
    ) -> Outcome:
        """The records belong to the producer's transaction: see `Outcome.producer`."""
        event = self._event(now)
        offset_commit.commit_in_transaction(self.state, event, to, request)
        return event.outcome()

    def fetch_offsets(
        self, to: Any, group: OffsetFetchRequestGroup, require_stable: bool, now: Instant
    ) -> Outcome:
        """One group's part. With `require_stable`, Kafka 4 waits for commits that are being written."""
        event = self._event(now)
        offset_fetch.fetch(self.state, event, to, group, require_stable)
        return event.outcome()

    def offsets_of(
        self, group_id: str, topics: Sequence[OffsetFetchRequestTopics] | None, require_stable: bool
    ) -> OffsetFetchResponseGroup:
        """The same without waiting. Without topics, all of the group."""
        return offset_fetch.offsets_of(self.state, group_id, topics, require_stable)

    def delete_offsets(self, to: Any, request: OffsetDeleteRequest, now: Instant) -> Outcome:
        event = self._event(now)
        removal.delete_offsets(self.state, event, to, request)
        return event.outcome()

    # Groups.

    def describe(self, group_id: str, version: int) -> DescribedGroup:
        return described(self.state, group_id, version)

    def listed(self, states: Collection[str] = (), types: Collection[str] = ()) -> list[ListedGroup]:
        return listed(self.state, states, types)

    def delete_group(self, to: Any, group_id: str, now: Instant) -> Outcome:
        event = self._event(now)
        removal.delete_group(self.state, event, to, group_id)
        return event.outcome()

    def _event(self, now: Instant) -> ShardEvent:
        return ShardEvent(self.state.config, self.state.behaviour, now)
