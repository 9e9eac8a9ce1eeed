"""What logs of brokers and clients say, whatever client and release wrote them: an event is one meaning."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum

from kelpie.model.time import Instant


class EventKind(StrEnum):
    """Said by clients, unless it says broker, controller or zookeeper-server."""

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
    CLIENT_FAILED = "client-failed"
    """The client itself says that it cannot go on; `reason` says why."""
    COMMIT_FAILED = "commit-failed"
    NO_COMMITTED_OFFSET = "no-committed-offset"
    POSITION_RESET = "position-reset"
    OUT_OF_RANGE = "out-of-range"
    TRUNCATION_DETECTED = "truncation-detected"
    UNSTABLE_OFFSET = "unstable-offset"
    RECORD_UNREADABLE = "record-unreadable"
    """A record that the consumer could not read or process; topic, partition and offset say which."""
    SESSION_TIMEOUT_REFUSED = "session-timeout-refused"
    """INVALID_SESSION_TIMEOUT: the member's session timeout is outside of what the broker allows."""
    VERSION_UNSUPPORTED = "version-unsupported"
    """No version of a request in common: details "request", "client" and "broker" ("2 to 9")."""
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

    ZK_REGISTERED = "zookeeper: registered"
    """These are said by consumers of Kafka 0.8, which rebalance through ZooKeeper."""
    ZK_ATTEMPT = "zookeeper: attempt"
    """A try of a rebalance begins; details "attempt" counts from 0."""
    ZK_RELEASED = "zookeeper: released"
    ZK_COMPUTED = "zookeeper: computed"
    """The input of an assignment: details "partitions" of the topic, and "threads"."""
    ZK_CLAIMED = "zookeeper: claimed"
    """Also in tries that are rolled back later."""
    ZK_CONFLICT = "zookeeper: conflict"
    """Details "holder": the thread whose node is there already."""
    ZK_ATTEMPT_FAILED = "zookeeper: attempt-failed"
    ZK_REBALANCED = "zookeeper: rebalanced"
    """A try has succeeded: details "partitions" are its own from now on."""
    REBALANCE_FAILED = "zookeeper: rebalance-failed"
    """ConsumerRebalanceFailedException: details "retries", and "form": watcher, start-up or new session."""
    ZK_SESSION_BEGUN = "zookeeper: session-begun"
    ZK_SESSION_EXPIRED = "zookeeper: session-expired"
    ZK_NO_BROKERS = "zookeeper: no-brokers"
    ZK_CLOSING = "zookeeper: closing"
    ZK_CLOSED = "zookeeper: closed"

    ZK_SERVER_EXPIRED = "zookeeper-server: session-expired"
    """Details "session" and "timeout_ms"."""
    ZK_SERVER_RETURNED = "zookeeper-server: expired-session-returned"
    ZK_SERVER_CONFLICT = "zookeeper-server: conflict"
    """A partition was claimed that has an owner."""


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
