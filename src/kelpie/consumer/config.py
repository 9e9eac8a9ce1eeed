"""The settings of a consumer. Names and defaults are those of Kafka 4, except where noted."""

from dataclasses import dataclass
from enum import IntEnum, StrEnum

from kelpie.assignors import ASSIGNORS
from kelpie.consumer.positions.reset_policy import LATEST, ResetPolicy
from kelpie.model.names import TopicPartition


class IsolationLevel(IntEnum):
    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class GroupProtocol(StrEnum):
    CLASSIC = "classic"
    CONSUMER = "consumer"
    """KIP-848."""


class BadConfig(ValueError):
    """A setting that is not allowed; the text says which one, and what is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerConfig:
    """Either `topics`, whose partitions the group assigns, or `partitions`, which this consumer chooses.

    With `partitions` a group may be given too: then its offsets are read, and committed on demand, but it is
    not joined.
    """

    group_id: str | None = None
    topics: tuple[str, ...] = ()
    partitions: tuple[TopicPartition, ...] = ()
    client_id: str = "kelpie"
    group_instance_id: str | None = None
    group_protocol: GroupProtocol = GroupProtocol.CLASSIC
    assignors: tuple[str, ...] = ("range", "cooperative-sticky")
    """The group uses the first that all members have. A member is cooperative only if all of these are."""
    group_remote_assignor: str | None = None
    session_timeout_ms: int = 45_000
    """Kafka 0.9 allows 30 s at most (group.max.session.timeout.ms)."""
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    auto_offset_reset: ResetPolicy = LATEST
    validate_positions: bool = True
    """False: positions are not checked after a change of leader, as by clients before 2.1 (KIP-320)."""
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    enable_auto_commit: bool = False
    """Kafka's default is True; here commits are on demand."""
    auto_commit_interval_ms: int = 5_000
    max_poll_records: int = 500
    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 52_428_800
    fetch_max_wait_ms: int = 500
    max_partition_fetch_bytes: int = 1_048_576
    check_crcs: bool = True
    allow_auto_create_topics: bool = False
    """Kafka's default is True. Brokers before 0.11 create any named topic; so they are asked for all."""
    request_timeout_ms: int = 30_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1_000
    metadata_max_age_ms: int = 300_000
    connections_max_idle_ms: int = 540_000
    """A connection that nothing was asked on for so long is closed."""

    def __post_init__(self) -> None:
        if bool(self.topics) == bool(self.partitions):
            raise BadConfig("Give topics to subscribe to, or partitions to read: one of the two.")
        if self.topics and self.group_id is None:
            raise BadConfig("Topics are shared out by a group: give a group_id, or partitions to read.")
        if self.group_id == "" and self.topics:
            raise BadConfig("A group that is joined needs a name; the empty one is not allowed.")
        for name in self.assignors:
            if name not in ASSIGNORS:
                raise BadConfig(f"There is no assignor {name!r}; there are {', '.join(ASSIGNORS)}.")
        if not self.assignors:
            raise BadConfig("At least one assignor is needed.")
        for setting in _ABOVE_ZERO:
            if getattr(self, setting) <= 0:
                raise BadConfig(f"{setting} is {getattr(self, setting)}; it must be above 0.")
        beats = self.group_protocol is GroupProtocol.CLASSIC and bool(self.topics)
        if beats and self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise BadConfig(
                f"heartbeat_interval_ms ({self.heartbeat_interval_ms}) must be below session_timeout_ms "
                f"({self.session_timeout_ms}), or the session ends between two heartbeats."
            )

    @property
    def is_cooperative(self) -> bool:
        """Whether the member keeps its partitions while it joins: only if every assignor allows that."""
        return all(ASSIGNORS[name].is_cooperative for name in self.assignors)


_ABOVE_ZERO = (
    "session_timeout_ms",
    "heartbeat_interval_ms",
    "max_poll_interval_ms",
    "auto_commit_interval_ms",
    "max_poll_records",
    "fetch_max_bytes",
    "max_partition_fetch_bytes",
    "request_timeout_ms",
    "retry_backoff_ms",
    "retry_backoff_max_ms",
    "reconnect_backoff_ms",
    "reconnect_backoff_max_ms",
    "metadata_max_age_ms",
)
