"""What the other parts of a consumer need of its membership, whichever protocol it uses."""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from kelpie.consumer.backoff import Backoff
from kelpie.consumer.config import ConsumerConfig
from kelpie.consumer.coordinator_lookup import CoordinatorLookup
from kelpie.consumer.effects import Effects, Problem
from kelpie.consumer.metadata import ConsumerMetadata
from kelpie.consumer.pending_requests import PendingRequests
from kelpie.consumer.positions.subscription_state import SubscriptionState
from kelpie.model.time import Instant

NO_GENERATION = -1
NO_MEMBER = ""


@dataclass(frozen=True, slots=True)
class Identity:
    """How the coordinator knows a consumer."""

    member_id: str = NO_MEMBER
    generation: int = NO_GENERATION
    """In the consumer protocol (KIP-848): the member's epoch."""
    instance_id: str | None = None
    uses_consumer_protocol: bool = False

    @property
    def is_member(self) -> bool:
        return self.generation != NO_GENERATION and self.member_id != NO_MEMBER


NOT_A_MEMBER = Identity()
"""Of a consumer without a group, or one that only reads and commits its offsets."""


class Reach(Enum):
    """How far a poll may go."""

    NOTHING = 0
    """There is no coordinator."""
    FETCHES = 1
    """The member is joining: partitions that have a position may be read."""
    ALL = 2


class Commits(Protocol):
    """What a membership needs of commits before it gives partitions up."""

    @property
    def is_settled(self) -> bool: ...

    def commit_before_leaving(self, effects: Effects, limit_ms: int) -> None: ...


class MemberDeadlines:
    """Next heartbeat, end of the session, end of the time between polls (KIP-62)."""

    def __init__(self, config: ConsumerConfig) -> None:
        self._config = config
        self.next_heartbeat_at: Instant = 0
        self.session_ends_at: Instant = 0
        self.poll_ends_at: Instant | None = None
        """None: it has never polled."""

    def polled(self, now: Instant) -> None:
        self.poll_ends_at = now + self._config.max_poll_interval_ms

    def joined(self, now: Instant) -> None:
        """A join counts as a heartbeat."""
        self.heartbeat_answered(now)
        self.next_heartbeat_in(self._config.heartbeat_interval_ms, now)

    def heartbeat_answered(self, now: Instant) -> None:
        self.session_ends_at = now + self._config.session_timeout_ms

    def next_heartbeat_in(self, wait_ms: int, now: Instant) -> None:
        self.next_heartbeat_at = now + wait_ms

    def poll_expired(self, now: Instant) -> bool:
        return self.poll_ends_at is not None and now >= self.poll_ends_at


class Membership:
    """The membership of a consumer in its group.

    This one is of a consumer whose application chooses the partitions: a group, if there is one, is not
    joined. The two protocols override what they do.
    """

    commits: Commits
    muted = False
    """No heartbeats are sent: for experiments."""
    identity = NOT_A_MEMBER

    @property
    def is_joined(self) -> bool:
        """Whether the consumer is a member and has taken on its assignment."""
        return False

    @property
    def is_closed(self) -> bool:
        return True

    def committer(self) -> Identity | Problem:
        """The identity to commit with, or why a commit is not possible now."""
        return NOT_A_MEMBER

    def refused(self, effects: Effects, error: int, sent: Identity) -> None:
        """The coordinator refused a request of `sent`: 22, 25, 27, 82, 110 or 113."""

    def background(self, effects: Effects) -> None:
        """What happens with and without polls: heartbeats, and what they lead to."""

    def advance(self, effects: Effects) -> Reach:
        """What happens in polls: joining, taking on partitions."""
        del effects
        return Reach.ALL

    def polled(self, effects: Effects) -> None:
        """The application polls."""

    def close(self, effects: Effects) -> None:
        """Leave the group, if the consumer is a member."""

    def deadline(self, now: Instant, polling: bool) -> Instant | None:
        """When it must act next, if there is such a time."""


class GroupMembership(Membership):
    """What the two protocols share."""

    def __init__(
        self,
        requests: PendingRequests,
        metadata: ConsumerMetadata,
        lookup: CoordinatorLookup,
        assignment: SubscriptionState,
    ) -> None:
        config = requests.config
        assert config.group_id is not None
        self._requests = requests
        self._config = config
        self._group_id = config.group_id
        self._metadata = metadata
        self._lookup = lookup
        self._assignment = assignment
        self._deadlines = MemberDeadlines(config)
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
