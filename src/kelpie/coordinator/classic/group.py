"""A classic group: its members, its leader, and the protocol that they share. Other modules hold what happens
to it (rebalance.py, join.py, sync.py, membership.py).

Follows ClassicGroup of Kafka 4. Where Kafka takes "the first" of a hash map of members, this takes the one
that joined first; Kafka's choice is arbitrary, so no client may rely on it.
"""

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import replace

from kelpie.coordinator.classic.member import ClassicMember, ParkedJoin
from kelpie.coordinator.classic.state import MAY_FOLLOW, WITH_MEMBERS, ClassicGroupState
from kelpie.coordinator.event import ShardEvent
from kelpie.coordinator.notes import NoteKind
from kelpie.coordinator.offsets import OffsetAndMetadata
from kelpie.coordinator.outcome import CoordinatorRecord
from kelpie.coordinator.release_behaviour import GroupBehaviour
from kelpie.coordinator.shard_state import ShardState
from kelpie.errors import ErrorCode
from kelpie.model.partitioning import java_hash
from kelpie.model.time import Instant
from kelpie.wire import compiler, prefixed
from kelpie.wire.api.offset_commit import OffsetCommitRequest
from kelpie.wire.api.txn_offset_commit import TxnOffsetCommitRequest
from kelpie.wire.consumer_protocol import PROTOCOL_TYPE, Subscription
from kelpie.wire.malformed import Malformed
from kelpie.wire.offsets_topic import encode_key
from kelpie.wire.offsets_topic.group_metadata import GroupMetadataKey


class ClassicGroup:
    def __init__(self, group_id: str, state: ClassicGroupState, since: Instant | None) -> None:
        self.group_id = group_id
        self.state = state
        self.previous_state = ClassicGroupState.DEAD
        self.since = since
        """When the state was entered; None if it was loaded from a record that does not say."""
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.subscribed: frozenset[str] | None = None
        """Topics of the last generation's subscriptions; None if they are not known."""
        self.members: dict[str, ClassicMember] = {}
        self.static: dict[str, str] = {}
        """Instance id to member id."""
        self.pending: dict[str, Instant] = {}
        """Member ids given out that have not joined yet (KIP-394), and when they expire."""
        self.pending_sync: set[str] = set()
        """Members of this generation that have not sent SyncGroup."""
        self.parked_joins = 0
        self.join_deadline: Instant | None = None
        self.sync_deadline: Instant | None = None
        self.initial_delay: tuple[int, int] | None = None
        """The delay that runs, and how much more there may be (KIP-134); None if it is not the first join."""
        self.new_member_added = False
        self._support: Counter[str] = Counter()

    def transition(self, state: ClassicGroupState, now: Instant) -> None:
        assert self.state in MAY_FOLLOW[state], f"{self.group_id}: {self.state} cannot become {state}"
        self.previous_state, self.state, self.since = self.state, state, now

    # Members.

    def add(self, member: ClassicMember, call: ParkedJoin | None = None) -> None:
        if member.instance_id is not None:
            assert member.instance_id not in self.static, f"{member.instance_id} is in the group already"
            self.static[member.instance_id] = member.member_id
        if not self.members:
            self.protocol_type = member.protocol_type
        assert member.protocol_type == self.protocol_type, f"{member.member_id} has another protocol type"
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self._support.update(member.protocol_names)
        self.pending.pop(member.member_id, None)
        if call is not None:
            self.park_join(member, call)

    def remove(self, member_id: str) -> ClassicMember | None:
        """Takes a member, or an id given out, away. Its parked calls must have been answered."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._support.subtract(member.protocol_names)
            if member.instance_id is not None:
                del self.static[member.instance_id]
            assert member.join is None, f"{member_id} still waits for an answer"
            assert member.sync is None, f"{member_id} still waits for an assignment"
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending.pop(member_id, None)
        self.pending_sync.discard(member_id)
        return member

    def rename_static(self, old: ClassicMember, new_id: str) -> ClassicMember:
        """The same instance under another member id. `pending_sync` still holds the old id."""
        assert old.instance_id is not None
        assert old.join is None
        assert old.sync is None
        new = replace(old, member_id=new_id, is_new=False, deadline=None)
        del self.members[old.member_id]
        self.members[new_id] = new
        self.static[old.instance_id] = new_id
        if self.leader == old.member_id:
            self.leader = new_id
        return new

    def change_protocols(self, member: ClassicMember, protocols: tuple[tuple[str, bytes], ...]) -> None:
        self._support.subtract(member.protocol_names)
        member.protocols = protocols
        self._support.update(member.protocol_names)

    def park_join(self, member: ClassicMember, call: ParkedJoin) -> ParkedJoin | None:
        """Returns the call that was parked before, if any: Kafka never answers it."""
        before, member.join = member.join, call
        self.parked_joins += before is None
        return before

    def take_join(self, member: ClassicMember) -> ParkedJoin | None:
        """The parked join, which is the caller's to answer."""
        call, member.join = member.join, None
        self.parked_joins -= call is not None
        return call

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def all_have_joined(self) -> bool:
        return self.parked_joins == len(self.members) and not self.pending

    @property
    def is_simple(self) -> bool:
        """No member ever joined; the group exists for its offsets."""
        return self.is_empty and self.protocol_type is None and not self.pending

    def elect_joined_leader(self) -> bool:
        """Keeps a leader that has rejoined, or elects a member that has. False if no member has."""
        if self.leader is None:
            return False
        if self.members[self.leader].join is not None:
            return True
        joined = next((m.member_id for m in self.members.values() if m.join is not None), None)
        if joined is None:
            return False
        self.leader = joined
        return True

    # Sessions. Timers: see rebalance.py.

    def session_key(self, member_id: str) -> Hashable:
        return ("session", self.group_id, member_id)

    def renew_session(self, member: ClassicMember, event: ShardEvent, timeout_ms: int | None = None) -> None:
        """The member has sent a request: its session begins anew."""
        member.deadline = event.now + (member.session_timeout_ms if timeout_ms is None else timeout_ms)
        event.wake(self.session_key(member.member_id), member.deadline)

    def check_member(
        self, member_id: str, instance_id: str | None, event: ShardEvent, during: str
    ) -> ErrorCode | None:
        """Why this is no member; None if it is one. `during` is Kafka's name for the operation."""
        if instance_id is not None:
            known = self.static.get(instance_id)
            if known is not None and known != member_id:
                event.note(
                    NoteKind.FENCED,
                    group=self.group_id,
                    member=member_id,
                    instance=instance_id,
                    owner=known,
                    during=during,
                )
                return ErrorCode.FENCED_INSTANCE_ID
            if known is None and event.behaviour.refuses_unknown_instances:
                return ErrorCode.UNKNOWN_MEMBER_ID
        return None if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    # What is asked of groups of every kind.

    @property
    def group_type(self) -> str:
        return "classic"

    @property
    def is_empty(self) -> bool:
        return self.state is ClassicGroupState.EMPTY

    @property
    def is_dead(self) -> bool:
        return self.state is ClassicGroupState.DEAD

    def state_name(self, behaviour: GroupBehaviour) -> str:
        completing = self.state is ClassicGroupState.COMPLETING_REBALANCE
        return behaviour.completing_name if completing else self.state.value

    def commit_refusal(self, request: OffsetCommitRequest, event: ShardEvent) -> ErrorCode | None:
        behaviour = event.behaviour
        generation = request.generation_id_or_member_epoch
        if self.is_dead:
            return behaviour.dead_error
        completing = self.state is ClassicGroupState.COMPLETING_REBALANCE
        if completing and behaviour.state_before_member:
            return ErrorCode.REBALANCE_IN_PROGRESS
        if generation < 0 and self.is_empty:
            return None
        error = self.check_member(request.member_id, request.group_instance_id, event, "offset-commit")
        if error is not None:
            return error
        if generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        # The member knows the new generation, so it has the answer to its join. It has to sync first.
        return ErrorCode.REBALANCE_IN_PROGRESS if completing else None

    def transaction_refusal(self, request: TxnOffsetCommitRequest, event: ShardEvent) -> ErrorCode | None:
        behaviour = event.behaviour
        generation, member_id, instance = request.generation_id, request.member_id, request.group_instance_id
        if self.is_dead:
            return behaviour.dead_error
        if behaviour.transaction_checks_what_is_given:
            if instance is not None and self.static.get(instance, member_id) != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
            if member_id and member_id not in self.members:
                return ErrorCode.UNKNOWN_MEMBER_ID
            return ErrorCode.ILLEGAL_GENERATION if generation not in (-1, self.generation) else None
        if generation < 0 and self.is_empty:
            return None
        if generation < 0 and not member_id and instance is None:
            return None
        error = self.check_member(member_id, instance, event, "txn-offset-commit")
        if error is None and generation != self.generation:
            error = ErrorCode.ILLEGAL_GENERATION
        return error

    def commit_accepted(self, member_id: str, event: ShardEvent) -> None:
        if self.state in (ClassicGroupState.STABLE, ClassicGroupState.PREPARING_REBALANCE):
            self.renew_session(self.members[member_id], event)

    def offset_deletion_refusal(self) -> ErrorCode:
        refused = self.state in WITH_MEMBERS and not self.is_consumer
        return ErrorCode.NON_EMPTY_GROUP if refused else ErrorCode.NONE

    def retention_start(self, committed: OffsetAndMetadata) -> Instant | None:
        if self.protocol_type is not None:
            if self.is_empty and self.since is not None:
                return self.since
            subscriptions_known = self.state is ClassicGroupState.STABLE and self.subscribed is not None
            if not self.is_empty and not subscriptions_known:
                return None
        return committed.commit_timestamp

    def dissolve(self, event: ShardEvent) -> list[CoordinatorRecord]:
        """Its tombstone, if there is a record to cover. Member ids that were given out become void."""
        for member_id in self.pending:
            event.wake(self.session_key(member_id), None)
        written = self.generation > 0 or event.behaviour.tombstones_simple_groups
        return [self.tombstone()] if written else []

    def tombstone(self) -> CoordinatorRecord:
        return CoordinatorRecord(encode_key(GroupMetadataKey(group=self.group_id)), None)

    # Protocols.

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Whether a member with these can be in the group."""
        if self.state is ClassicGroupState.EMPTY or self.protocol_type is None:
            return protocol_type != "" and any(True for _ in names)
        return self.protocol_type == protocol_type and any(
            self._support[name] == len(self.members) for name in names
        )

    def select_protocol(self) -> str:
        """Each member votes for its first protocol of those that all support. Most votes win."""
        assert self.members, "no member to vote"
        candidates = {name for name, count in self._support.items() if count == len(self.members)}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        most = max(votes.values())
        return min((name for name, count in votes.items() if count == most), key=_java_bucket)

    def next_generation(self, now: Instant) -> None:
        self.generation += 1
        self.protocol = self.select_protocol() if self.members else None
        self.subscribed = self.subscriptions()
        self.transition(
            ClassicGroupState.COMPLETING_REBALANCE if self.members else ClassicGroupState.EMPTY, now
        )
        self.pending_sync.clear()

    @property
    def is_consumer(self) -> bool:
        return self.protocol_type == PROTOCOL_TYPE

    def is_subscribed_to(self, topic: str) -> bool:
        """If the subscriptions of consumers are not known, every topic counts."""
        return self.is_consumer if self.subscribed is None else topic in self.subscribed

    def subscriptions(self) -> frozenset[str] | None:
        """The topics in the members' metadata; None if they are not consumers, or cannot be read."""
        if not self.is_consumer:
            return None
        if not self.members:
            return frozenset()
        if self.protocol is None:
            return None
        topics: set[str] = set()
        try:
            for member in self.members.values():
                blob = member.metadata(self.protocol)
                prefixed.number(blob, "version of Subscription")
                # Every version begins with the fields of version 0, and is read as that, even one below 0.
                topics.update(compiler.decode_prefix(Subscription, 0, blob, prefixed.SIZE)[0].topics)
        except Malformed:
            return None
        return frozenset(topics)


def find_group(shard: ShardState, group_id: str) -> ClassicGroup | None:
    """The group of this id. Where shards hold groups of another kind too, this is where they are refused."""
    group = shard.groups.get(group_id)
    assert group is None or isinstance(group, ClassicGroup), f"{group_id} is not a classic group"
    return group


def create_group(shard: ShardState, group_id: str, since: Instant | None) -> ClassicGroup:
    """A group without members, which so far exists in memory only."""
    assert group_id not in shard.groups
    state = ClassicGroupState.EMPTY if shard.behaviour.has_empty_state else ClassicGroupState.STABLE
    group = shard.groups[group_id] = ClassicGroup(group_id, state, since)
    return group


def forget_if_dead(shard: ShardState, group_id: str) -> None:
    """In Kafka 0.9 a group dies with its last member. A shard that was unloaded keeps its dead groups."""
    group = shard.groups.get(group_id)
    if group is not None and group.is_dead and not shard.unloaded:
        del shard.groups[group_id]


def _java_bucket(name: str) -> int:
    """The place of a key in a small java.util.HashMap, which decides among equals in Kafka."""
    hashed = java_hash(name) & 0xFFFF_FFFF
    return (hashed ^ (hashed >> 16)) & 15
