"""What the other parts of a consumer need of its membership, whichever protocol it uses."""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from kelpie.consumer.effects import Effects, Problem
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


class Membership(Protocol):
    commits: Commits
    muted: bool
    """No heartbeats are sent: for experiments."""

    @property
    def identity(self) -> Identity: ...

    @property
    def is_joined(self) -> bool:
        """Whether the consumer is a member and has taken on its assignment."""

    @property
    def is_closed(self) -> bool: ...

    def committer(self) -> Identity | Problem:
        """The identity to commit with, or why a commit is not possible now."""

    def refused(self, effects: Effects, error: int, sent: Identity) -> None:
        """The coordinator refused a request of `sent`: 22, 25, 27, 82, 110 or 113."""

    def background(self, effects: Effects) -> None:
        """What happens with and without polls: heartbeats, and what they lead to."""

    def advance(self, effects: Effects) -> Reach:
        """What happens in polls: joining, taking on partitions."""

    def polled(self, effects: Effects) -> None:
        """The application polls."""

    def close(self, effects: Effects) -> None:
        """Leave the group, if the consumer is a member."""

    def deadline(self, now: Instant, polling: bool) -> Instant | None: ...


class NoMembership:
    """The application chooses the partitions. A group, if there is one, is not joined."""

    commits: Commits
    muted = False
    is_joined = False
    is_closed = True
    identity = NOT_A_MEMBER

    def committer(self) -> Identity | Problem:
        return NOT_A_MEMBER

    def refused(self, effects: Effects, error: int, sent: Identity) -> None:
        """There is no membership to lose."""

    def background(self, effects: Effects) -> None:
        """There are no heartbeats."""

    def advance(self, effects: Effects) -> Reach:
        del effects
        return Reach.ALL

    def polled(self, effects: Effects) -> None:
        """No group watches the polls."""

    def close(self, effects: Effects) -> None:
        """There is no group to leave."""

    def deadline(self, now: Instant, polling: bool) -> Instant | None:
        del now, polling
        return None
