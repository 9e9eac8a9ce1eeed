"""What logs of brokers and clients say, whatever client and release wrote them: an event is one meaning."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum

from kelpie.model.time import Instant


class EventKind(StrEnum):
    """Said by clients, unless it says broker or controller."""

    COORDINATOR_FOUND = "coordinator-found"
    COORDINATOR_LOST = "coordinator-lost"
    LOOKUP_FAILED = "lookup-failed"
    """FindCoordinator failed; `error` is the error code, if the line has it."""
    CONNECTION_FAILED = "connection-failed"
    NOT_AUTHORISED = "not-authorised"
    JOINING = "joining"
    JOINED = "joined"
    ASSIGNED = "assigned"
    REVOKED = "revoked"
    LEAVING = "leaving"
    """`reason` says why, if the client logs it."""
    POLL_INTERVAL_EXCEEDED = "poll-interval-exceeded"
    SESSION_LOST = "session-lost"
    """The client itself says that its session timed out."""
    HEARTBEAT_FAILED = "heartbeat-failed"
    FENCED = "fenced"
    """A static member was replaced (82), or a member fenced by its epoch."""
    PROTOCOL_REFUSED = "protocol-refused"
    """INCONSISTENT_GROUP_PROTOCOL."""
    GROUP_FULL = "group-full"
    REBALANCE_FAILED = "rebalance-failed"
    """The consumer of Kafka 0.8 has used up rebalance.max.retries; details: `form`, `retries`."""
    CLIENT_FAILED = "client-failed"
    """The client itself says that it cannot go on; `reason` says why."""
    COMMIT_FAILED = "commit-failed"
    NO_COMMITTED_OFFSET = "no-committed-offset"
    POSITION_RESET = "position-reset"
    OUT_OF_RANGE = "out-of-range"
    TRUNCATION_DETECTED = "truncation-detected"
    UNSTABLE_OFFSET = "unstable-offset"
    CONSUMED = "consumed"
    """A line that shows that records arrive."""

    REBALANCE_STARTED = "broker: rebalance-started"
    GENERATION_JOINED = "broker: generation-joined"
    """All members have joined ("Stabilized group")."""
    ASSIGNMENT_RECEIVED = "broker: assignment-received"
    MEMBER_JOINED = "broker: member-joined"
    MEMBER_LEFT = "broker: member-left"
    MEMBER_EXPIRED = "broker: member-expired"
    MEMBER_FENCED = "broker: member-fenced"
    GROUP_EMPTY = "broker: group-empty"
    GROUP_REMOVED = "broker: group-removed"
    """`reason`: deleted or expired, if the line says it."""
    OFFSETS_EXPIRED = "broker: offsets-expired"
    COORDINATOR_LOADING = "broker: coordinator-loading"
    COORDINATOR_LOADED = "broker: coordinator-loaded"
    COORDINATOR_UNLOADED = "broker: coordinator-unloaded"
    COORDINATOR_REFUSED = "broker: coordinator-refused"
    """The broker says that it could not serve: topic not creatable, load failed, append refused."""
    BROKER_STARTED = "broker: started"
    BROKER_STOPPED = "broker: stopped"
    PEER_UNREACHABLE = "broker: peer-unreachable"
    """One broker cannot reach another (`node` is the other one)."""

    BROKER_FENCED = "controller: broker-fenced"
    BROKER_UNFENCED = "controller: broker-unfenced"
    PARTITIONS_CHANGED = "controller: partitions-changed"
    LEADER_CHANGED = "controller: leader-changed"


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a log (with the lines that belong to it) that means something."""

    kind: EventKind
    at: Instant | None
    source: str
    text: str
    """The line as it stands there."""
    group: str | None = None
    member: str | None = None
    instance_id: str | None = None
    client_id: str | None = None
    node: int | None = None
    """The broker that the line is about; whose log it is, `source` says."""
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    generation: int | None = None
    error: int | None = None
    reason: str = ""
    details: Mapping[str, str] = field(default_factory=dict)
    """Numbers and names that only this kind has: "pause_ms", "limit_ms", "state", "members" …"""


FACTS = tuple(
    field.name for field in fields(Event) if field.name not in ("kind", "at", "source", "text", "details")
)
"""Fields that a line may fill, whatever it means."""
