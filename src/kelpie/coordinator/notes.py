"""What a coordinator writes to the broker's log: what happened, as data. Each release words it differently.

There is a note where Kafka writes a line to its log, in the same order. Values have these names, where a kind
has them: `group`, `member`, `instance` (None if it is not static), `generation`, `state` (of the group),
`members` (ids, or their number in `count`), `client_reason` (KIP-800; None if the client gave none), `reason`
(a note itself: why a rebalance begins).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any


class NoteKind(Enum):
    # Members come.
    ID_GIVEN = auto()
    """KIP-394: come back with this id."""
    ADDED = auto()
    """A new dynamic member, which had no id."""
    PENDING_ADDED = auto()
    """A member joined again with the id that it was given."""
    STATIC_ADDED = auto()
    STATIC_REPLACED = auto()
    """An instance came again: `old` is the member whose place `member` takes."""
    STATIC_KEPT = auto()
    """No member had to rebalance."""
    FENCED = auto()
    """A request of a member that was replaced: `owner` has its place; `during` is the operation."""

    # Members go.
    LEFT = auto()
    """Also `client`, `host`, `session_ms`, `rebalance_ms`, `protocols`: 3.x describes it at length."""
    PENDING_LEFT = auto()
    FAILED = auto()
    """Its session ended."""
    PENDING_FAILED = auto()
    LATE_REMOVED = auto()
    """`members` did not rejoin in time."""
    UNSYNCED_REMOVED = auto()
    """`members` joined, and did not sync in time."""

    # Rebalances.
    REBALANCE_BEGAN = auto()
    NO_MEMBER_REJOINED = auto()
    LEADER_REPLACED = auto()
    """`member` leads instead of `old`, which did not rejoin."""
    NO_LEADER_JOINED = auto()
    """`old` should lead, and neither it nor any other member rejoined."""
    GENERATION_BEGAN = auto()
    ASSIGNED = auto()
    """By the leader `member`; `static` counts static members among the `count`."""
    EMPTIED = auto()

    # Why a rebalance begins.
    BY_NEW_MEMBER = auto()
    BY_CHANGED_MEMBER = auto()
    BY_LEADER = auto()
    BY_CHANGED_STATIC_MEMBER = auto()
    BY_CHANGED_PROTOCOL = auto()
    BY_LEAVING = auto()
    BY_EXPIRY = auto()
    BY_MISSING_SYNC = auto()
    BY_FAILED_WRITE = auto()
    BY_SIZE = auto()
    """Loaded with `count` members; there may be `limit`."""

    # Groups and offsets.
    SIMPLE_GROUP_CREATED = auto()
    GROUP_DELETED = auto()
    """By an administrator, with `offsets` of them."""
    EXPIRED = auto()
    """`offsets` of them, and `tombstones` in all."""

    # The shard.
    LOADING = auto()
    """`topic`, `epoch`."""
    LOADED = auto()
    """Also `records`, `bytes`, and `ms` since it was to load."""
    GROUP_LOADED = auto()
    UNLOADING = auto()
    GROUP_UNLOADED = auto()
    UNLOADED = auto()
    """`groups` and `offsets` were forgotten."""


@dataclass(frozen=True, slots=True)
class Note:
    kind: NoteKind
    values: Mapping[str, Any] = field(default_factory=dict)


def note(kind: NoteKind, **values: Any) -> Note:
    return Note(kind, values)
