"""What follows from one event in a coordinator. Machines decide; their driver carries it out.

The driver appends `records` as one batch to the coordinator's partition. Once the high watermark has passed
them, it replays them into the shard, runs `written`, and sends the `replies`, in this order. If they cannot
be written, it runs `failed` with the error of the append instead, and the replies are dropped;
REQUEST_TIMED_OUT says that they may still be written, and be replayed, later. Without records, all of it
follows at once. Replies in `at_once` leave, and timers are set, right away in either case: Kafka answers some
calls before it writes (MEMBER_ID_REQUIRED, a fenced twin, a parked call of a member that left).
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from kelpie.coordinator.notes import Note
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant


@dataclass(frozen=True, slots=True)
class CoordinatorRecord:
    """A record for the coordinator's partition, in Kafka's own format. A value of None is a tombstone."""

    key: bytes
    value: bytes | None


@dataclass(frozen=True, slots=True)
class CallReply:
    """An answer. `to` is the token that the request came with; machines hold it and never look into it."""

    to: Any
    response: Any


@dataclass(frozen=True, slots=True)
class Timer:
    """Wake the shard with `key` at `at`. It replaces an earlier timer of that key; None takes it away."""

    key: Hashable
    at: Instant | None


@dataclass(frozen=True, slots=True)
class Outcome:
    records: tuple[CoordinatorRecord, ...] = ()
    replies: tuple[CallReply, ...] = ()
    timers: tuple[Timer, ...] = ()
    written: "Callable[[Instant], Outcome] | None" = None
    failed: "Callable[[ErrorCode, Instant], Outcome] | None" = None
    producer: tuple[int, int] | None = None
    """Producer id and epoch: the records are written as part of this producer's transaction."""
    sequence: int = -1
    """The sequence number with which the batch begins."""
    at_once: tuple[CallReply, ...] = ()
    """Sent right away, whether or not the records are written."""
    abandoned: tuple[Any, ...] = ()
    """Tokens of calls that Kafka never answers. A driver need not remember them."""
    notes: tuple[Note, ...] = ()
    """For the broker's log, before anything else of this outcome follows."""
