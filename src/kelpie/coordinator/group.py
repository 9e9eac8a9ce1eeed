"""What the coordinator asks of a group, whatever its kind (the interface Group of Kafka 4).

Offsets, their expiry, DeleteGroups and ListGroups know a group only as this. Classic groups implement it in
`classic/`. Another kind, such as the consumer groups of KIP-848, gets a package beside `classic/`: a class
that implements `Group`, its own requests, and a call in shard.py wherever that calls `classic.lifecycle`
(replay of its records, loaded, unloaded, timers).
"""

from typing import Protocol

from kelpie.coordinator.event import ShardEvent
from kelpie.coordinator.offsets import OffsetAndMetadata
from kelpie.coordinator.outcome import CoordinatorRecord
from kelpie.coordinator.release_behaviour import GroupBehaviour
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.wire.api.offset_commit import OffsetCommitRequest
from kelpie.wire.api.txn_offset_commit import TxnOffsetCommitRequest


class Group(Protocol):
    group_id: str
    protocol_type: str | None

    @property
    def group_type(self) -> str:
        """The type that ListGroups shows (KIP-848)."""

    @property
    def is_empty(self) -> bool:
        """It has no members. Offsets may be left."""

    @property
    def is_dead(self) -> bool:
        """It is deleted, or another coordinator has it."""

    def state_name(self, behaviour: GroupBehaviour) -> str: ...

    def commit_refusal(self, request: OffsetCommitRequest, event: ShardEvent) -> ErrorCode | None:
        """Why this sender may not commit offsets; None if it may."""

    def transaction_refusal(self, request: TxnOffsetCommitRequest, event: ShardEvent) -> ErrorCode | None:
        """The same for a commit inside a transaction."""

    def commit_accepted(self, member_id: str, event: ShardEvent) -> None:
        """A commit of this member counts as a sign of life."""

    def offset_deletion_refusal(self) -> ErrorCode:
        """Why no offset of the group may be deleted; NONE if that depends on the topic."""

    def is_subscribed_to(self, topic: str) -> bool: ...

    def retention_start(self, committed: OffsetAndMetadata) -> Instant | None:
        """From when on the retention of this offset counts; None if the offset does not expire now."""

    def dissolve(self, event: ShardEvent) -> list[CoordinatorRecord]:
        """The shard forgets the group. Stops its timers, and returns the tombstones to write."""
